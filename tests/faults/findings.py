"""What a trial came to."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Findings:
    """What a trial came to.

    Attributes:
        predictions: in the topic, that can be used.
        counted: in the stored traffic.
        labels: in the topic.
        requests: known to Redis.
        outcomes: in effect.
        problems: what does not hold; none, if all is well.
    """

    predictions: int = 0
    counted: int = 0
    labels: int = 0
    requests: int = 0
    outcomes: int = 0
    problems: list[str] = field(default_factory=list)

    def expect(self, holds: object, problem: str) -> None:
        """Note a problem unless something holds."""
        if not holds:
            self.problems.append(problem)
