"""How often the service confirms a healthy group, when groups arrive one by one and evidence is rebuilt.

Every group is exactly as accurate as it must be, and its scores are right. Labels stand in the service's
ledger, and `model_evidence` evaluates them as the rounds do; those requested while a group's posterior says
that it is less accurate are not of its reference. A run ends with one of these rebuilds:

- traffic is counted again, so that groups reappear a few at a time in another order;
- a new process computes evidence from all labels;
- the stream has kept the newest half of the labels, and their predecessors are known by a checkpoint;
- the same, but the checkpoint is lost, so that evidence restarts from the labels that are left.

    python -m benchmarks.rebuilt_evidence --groups 50 200 --runs 600
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence

import numpy as np

from benchmarks.newcomers import ALPHA, LABELS, REFERENCE, THRESHOLD, suspicions
from service.config.settings import Settings
from service.domain.arrays import Flags
from service.domain.cells import definitions
from service.domain.traffic import Traffic
from service.domain.traffic_tables import tables
from service.monitoring.anytime_tests import GroupingEvidence
from service.monitoring.group_index import GroupIndex
from service.monitoring.model_evidence import due_checkpoint, model_evidence
from service.monitoring.outcome_table import OutcomeLedger
from service.replay.tables import Cell, Table, print_tables
from service.store.checkpoints import EvidenceCheckpoint
from service.store.outcome_entries import OutcomeEntry
from service.store.records import Fact, LabelFact

EVER = (
    "one by one",
    "then traffic counted again",
    "then a new process",
    "then a checkpoint for half of the labels",
    "then the checkpoint lost",
)
"""Up to when a run is looked at."""

REAPPEARING = 5
"""Steps in which groups reappear when traffic is counted again."""

_BEGAN = 1_800_000_000.0
_SECONDS = 60.0
_CLASSES = ("no", "yes")
_SETTINGS = Settings.model_validate(
    {
        "models": {
            "m": {
                "classes": _CLASSES,
                "groupings": {"site": {"by": "attribute", "attribute": "site"}},
                "assessments": {"ask": {"grouping": "site", "budget": {"labels": 1_000_000}}},
                "alerts": {"min_accuracy": THRESHOLD},
                "reference": {"labels": REFERENCE},
            }
        }
    }
)
_MODEL, _SPACE = _SETTINGS.models["m"], _SETTINGS.cell_space("m")
_DEFINITION = definitions(_SPACE)["site"]


def _traffic(groups: Sequence[int]) -> Traffic:
    """Traffic of some groups; how much it is does not matter."""
    traffic = Traffic(tables(_SPACE))
    traffic.landmark = _BEGAN
    traffic.tables["site"].restore([f"{group}" for group in groups], np.zeros(len(groups)))
    traffic.tables["site"].block("bins").counts[: len(groups)] = 1
    traffic.whole.counts[:] = len(groups)
    return traffic


def _entries(correct: Flags) -> list[OutcomeEntry]:
    """Labels of groups that arrive one by one, in the order of their requests [groups, labels]."""
    entries = []
    labels = zip(correct.ravel().tolist(), suspicions(correct).ravel().tolist(), strict=True)
    for number, (right, is_suspected) in enumerate(labels, start=1):
        at, site = _BEGAN + number * _SECONDS, f"{(number - 1) // correct.shape[1]}"
        fact = Fact(
            request_id=f"r{number}",
            item_id=f"i{number}",
            grouping="site",
            group=site,
            predicted_class="yes",
            score=THRESHOLD,
            attributes={"site": site},
            predicted_at=at,
            requested_at=at,
            definition=_DEFINITION,
            suspected=is_suspected,
        )
        given = LabelFact("yes" if right else "no", at, "")
        entries.append(OutcomeEntry((1, number), (1, number), "ask", fact, given))
    return entries


class _Rounds:
    """Evaluations of one ledger, each of which continues the one before."""

    def __init__(self, checkpoint: EvidenceCheckpoint | None = None) -> None:
        self.ledger = OutcomeLedger(_SPACE)
        self.checkpoint = checkpoint
        self._before: Mapping[str, GroupingEvidence] = {}

    def fold(self, entries: Sequence[OutcomeEntry]) -> None:
        """Take in further labels."""
        self.ledger.fold(entries)
        self.ledger.place()

    def evidence(self, traffic: Traffic) -> GroupingEvidence:
        """What labels say now of the groups that have traffic."""
        self._before = model_evidence(
            settings=_MODEL,
            index=GroupIndex(_SPACE, traffic, self.ledger.cells),
            ledger=self.ledger,
            open_requests={},
            reference=None,
            checkpoint=self.checkpoint,
            before=self._before,
        )
        return self._before["site"]

    def confirms(self, traffic: Traffic) -> bool:
        """Whether anything is confirmed now."""
        return bool(self.evidence(traffic).alarming.any())


def evaluated(correct: Flags) -> GroupingEvidence:
    """The service's evidence by all labels of groups that arrived one by one [groups, labels]."""
    rounds = _Rounds()
    rounds.fold(_entries(correct))
    return rounds.evidence(_traffic(range(len(correct))))


def confirmed(correct: Flags, rng: np.random.Generator, every: int) -> list[bool]:
    """Whether anything is ever confirmed in a run, up to each of `EVER`.

    Args:
        correct: whether labels say that predictions are right [groups, labels].
        rng: decides in which order groups reappear.
        every: labels from one evaluation to the next.
    """
    groups, labels = correct.shape
    # A group arrives with its first label, whether it had traffic before or not.
    entries, rounds, everything, ever = _entries(correct), _Rounds(), _traffic(range(groups)), False
    for group in range(groups):
        for begin in range(group * labels, (group + 1) * labels, every):
            rounds.fold(entries[begin : min(begin + every, (group + 1) * labels)])
            ever |= rounds.confirms(everything)
    order = rng.permutation(groups).tolist()
    counts = range(groups // REAPPEARING, groups, groups // REAPPEARING)
    again = any(rounds.confirms(_traffic(order[:count])) for count in counts)
    process = _Rounds()
    process.fold(entries)
    checkpoint = due_checkpoint(
        settings=_MODEL,
        index=GroupIndex(_SPACE, everything, rounds.ledger.cells),
        ledger=rounds.ledger,
        open_requests={},
        reference=None,
        checkpoint=None,
        outcome_limit=len(entries),
    )
    if checkpoint is None:
        raise ValueError("no checkpoint was due")
    kept, lost = _Rounds(checkpoint), _Rounds()
    for after in (kept, lost):
        after.fold(entries[len(entries) // 2 :])
    found = [ever, again, *(one.confirms(everything) for one in (process, kept, lost))]
    return [ever or one for one in found]


def _table(sizes: Sequence[int], runs: int, every: int, seed: int) -> Table:
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    for groups in sizes:
        rng = np.random.default_rng([seed, groups])
        shares = [confirmed(rng.random((groups, LABELS)) < THRESHOLD, rng, every) for _ in range(runs)]
        rows.append((f"{groups}", tuple((100 * np.mean(shares, axis=0)).tolist())))
    return Table(
        f"runs in which the service ever confirms anything of a healthy group, %: {LABELS} labels of every "
        f"group, evaluated after every {every}, {runs} runs, alpha {ALPHA}",
        "groups",
        EVER,
        rows,
    )


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--groups", type=int, nargs="+", default=[50, 200], help="(default: 50 200)")
    parser.add_argument("--runs", type=int, default=600, help="(default: 600)")
    parser.add_argument("--every", type=int, default=50, help="labels between evaluations (default: 50)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--markdown", action="store_true", help="print a table for the documentation")
    options = parser.parse_args()
    table = _table(options.groups, options.runs, options.every, options.seed)
    print_tables([table], as_json=False, as_markdown=options.markdown)


if __name__ == "__main__":
    main()
