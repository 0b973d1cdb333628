"""Evidence on error rates over a trimmed stream is that of all labels, whatever becomes of requests."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from rate_checkpoint_examples import LIMIT, REGIONS, SPACE, asking, index_of, outcome

from service.config.assessments import ErrorRateSettings
from service.config.settings import Settings
from service.domain.arrays import Floats
from service.monitoring.error_rate_evidence import error_rate_evidence, rate_limits
from service.monitoring.evidence_base import Checkpoint
from service.monitoring.model_evidence import due_checkpoint
from service.monitoring.open_places import open_places
from service.monitoring.outcome_table import OutcomeLedger
from service.monitoring.rate_base import RateBase
from service.monitoring.rate_labels import evidence_labels
from service.monitoring.unanswered_requests import unanswered_requests
from service.store.checkpoints import EvidenceCheckpoint
from service.store.outcome_entries import OutcomeEntry
from service.store.records import EXPIRED, SKIPPED, LabelFact
from service.store.requests import OpenRequest

REQUESTS = 200
LATEST = 8
"""Labels that come after a request was made, before its own does: much fewer than the stream keeps."""


def strict() -> Settings:
    asked = asking(fair={})
    model = asked.models["m"].model_copy(
        update={
            "unanswered": asked.models["m"].unanswered.model_copy(
                update={"skipped": "worst_case", "expired": "worst_case"}
            )
        }
    )
    return asked.model_copy(update={"models": {"m": model}})


def history(rng: np.random.Generator) -> list[tuple[OutcomeEntry, dict[str, OpenRequest]]]:
    """Entries of the stream in their order, each with the requests that are open then.

    Labels of positive items come later than others. Some requests end without a label, and some labels are
    corrected soon.
    """
    made = [outcome(number, REGIONS[int(rng.integers(3))]) for number in range(REQUESTS)]
    ends = []
    for number, each in enumerate(made):
        label = LabelFact("flag" if rng.random() < 0.3 else "pass", float(number), "")
        kind = rng.random()
        if kind < 0.1:
            label = LabelFact("", float(number), "", unanswered=SKIPPED if kind < 0.05 else EXPIRED)
        delay = rng.uniform(0, LATEST if label.true_class == "flag" else 1)
        ends.append((number + delay, msgspec.structs.replace(each, label=label)))
        if label.true_class and rng.random() < 0.1:
            other = LabelFact("pass" if label.true_class == "flag" else "flag", float(number), "")
            ends.append((number + delay + 0.5, msgspec.structs.replace(each, label=other)))
    ends.sort(key=lambda end: end[0])
    first: dict[str, tuple[int, int]] = {}
    found = []
    for turn, (time, entry) in enumerate(ends):
        position = (1_000 + turn, 0)
        of = first.setdefault(entry.fact.request_id, position)
        opened = {
            one.fact.request_id: OpenRequest(
                "fair", one.fact.attributes["region"], {}, "flag", 0.9, 1, one.fact.requested_at
            )
            for number, one in enumerate(made)
            if number <= time and one.fact.request_id not in first
        }
        found.append((msgspec.structs.replace(entry, position=position, of=of), opened))
    return found


def log_e(
    ledger: OutcomeLedger,
    opened: dict[str, OpenRequest],
    settings: Settings,
    checkpoint: EvidenceCheckpoint | None,
) -> Floats:
    model = settings.models["m"]
    asked = model.assessments["fair"]
    assert isinstance(asked, ErrorRateSettings)
    index, base = index_of(ledger, REGIONS), Checkpoint(checkpoint, SPACE, None)
    labelled = evidence_labels(
        asked,
        index,
        ledger,
        open_places(opened, model, base.keys),
        now=1e9,
        since=None,
        any_class=unanswered_requests(model, ledger).any_class,
        base=RateBase.of(base, "fair", asked, samples_traffic=ledger.samples_traffic),
    )
    limits = rate_limits(asked, index["region"].names)
    found = error_rate_evidence(asked, labelled, limits, alpha=0.05, before={})
    return found.proofs["false_positive_rate"].log_e


@pytest.mark.parametrize("seed", range(5))
def test_evidence_over_a_trimmed_stream_is_that_of_all_labels(seed: int) -> None:
    settings, entries = strict(), history(np.random.default_rng(seed))
    kept, every, checkpoint, written = OutcomeLedger(SPACE), OutcomeLedger(SPACE), None, 0
    stream: list[OutcomeEntry] = []
    for turn, (entry, opened) in enumerate(entries):
        stream.append(entry)
        for ledger in (kept, every):
            ledger.fold([entry])
        stream = stream[-LIMIT:]
        kept.forget(stream[0].position)
        if leader_changes(turn):
            kept = OutcomeLedger(SPACE)
            kept.fold(stream)
        for ledger in (kept, every):
            ledger.place()
        found = due_checkpoint(
            settings=settings.models["m"],
            index=index_of(kept, REGIONS),
            ledger=kept,
            open_requests=opened,
            reference=None,
            checkpoint=checkpoint,
            outcome_limit=LIMIT,
        )
        if found is not None:
            checkpoint, written = found, written + 1
        if turn % 10 == 0 or turn == len(entries) - 1:
            of_all = log_e(every, opened, settings, None)
            np.testing.assert_allclose(
                log_e(kept, opened, settings, checkpoint), of_all, rtol=1e-9, atol=1e-9
            )
    assert written >= 5


def leader_changes(turn: int) -> bool:
    """Another process leads now, which reads the stream again."""
    return turn % 17 == 0
