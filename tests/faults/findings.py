"""What a trial came to."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Findings:
    """What a trial came to, of one model or of all.

    Attributes:
        predictions: in the topic, that can be used.
        counted: in the stored traffic.
        labels: in the topic.
        requests: known to Redis.
        further_requests: those among them that ask for the label of one more person.
        outcomes: in effect.
        gold_labels: labels of gold items that count.
        problems: what does not hold; none, if all is well.
    """

    predictions: int = 0
    counted: int = 0
    labels: int = 0
    requests: int = 0
    further_requests: int = 0
    outcomes: int = 0
    gold_labels: int = 0
    problems: list[str] = field(default_factory=list)

    def expect(self, holds: object, problem: str) -> None:
        """Note a problem unless something holds."""
        if not holds:
            self.problems.append(problem)

    def add(self, model: str, found: Findings) -> None:
        """Add what was found of one model."""
        self.predictions += found.predictions
        self.counted += found.counted
        self.labels += found.labels
        self.requests += found.requests
        self.further_requests += found.further_requests
        self.outcomes += found.outcomes
        self.gold_labels += found.gold_labels
        self.problems += [f"{model}: {problem}" for problem in found.problems]
