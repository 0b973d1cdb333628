"""References for declines, collected by a leader through Redis: evenly, and not under suspicion."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
from store_site import NOW, Site, message, outcomes, record

from service.serving.documents.models import model_state
from service.store.connection import Connection

REGIONS = ("north", "south", "east", "west")
REFERENCE = 30
SECOND = 1.0


def model(**more: Any) -> dict[str, Any]:
    """Thompson sampling for the least accurate region."""
    return {
        "m": {
            "classes": ["cat", "dog"],
            "groupings": {"region": {"by": "attribute", "attribute": "region"}},
            "draw_half_life_hours": None,
            "assessments": {
                "worst": {
                    "task": "identification",
                    "grouping": "region",
                    "budget": {"labels": 1_000},
                    "max_in_flight": 8,
                }
            },
            **more,
        }
    }


class Life:
    """A leader that asks in rounds, and a labeller that answers everything between them."""

    def __init__(self, connection: Connection, **more: Any) -> None:
        self.site = Site(connection, model(**more))
        rng = np.random.default_rng(3)
        self.regions = [REGIONS[int(at)] for at in rng.integers(len(REGIONS), size=800)]
        self.site.take_in(
            [
                record(at, message(at, score=0.9, attributes={"region": region}))
                for at, region in enumerate(self.regions)
            ]
        )
        self.monitor, self.now = self.site.monitor("m"), NOW

    def rounds(self, count: int, is_right: Callable[[str], bool]) -> None:
        for _ in range(count):
            self.monitor.refresh(self.now)
            self.monitor.ask(epoch=1, now=self.now)
            self.site.answer("m", lambda item: "cat" if is_right(self.regions[item]) else "dog")
            self.now += SECOND

    def reference_labels(self) -> dict[str, int]:
        evidence = self.site.monitor("m").refresh(self.now).groupings["region"].evidence
        assert evidence is not None
        return dict(zip(evidence.groups, evidence.state.reference_labels.astype(int).tolist(), strict=True))


def flawed(seed: int = 1) -> Callable[[str], bool]:
    """One region is less accurate, so that the policy asks about it most."""
    rng = np.random.default_rng(seed)
    return lambda region: bool(rng.random() < (0.6 if region == "north" else 0.99))


def test_references_are_filled_evenly_whatever_the_policy_prefers(connection: Connection) -> None:
    life = Life(connection, reference={"labels": REFERENCE})
    life.rounds(30, flawed())
    # 240 labels: half of them are for the references of four regions, 120 in all.
    assert life.reference_labels() == dict.fromkeys(REGIONS, REFERENCE)
    taken = life.site.monitor("m").refresh(life.now)
    assert not model_state(taken, now=life.now, tick_seconds=5.0).reference.incomplete_groups


def test_without_a_share_the_policy_leaves_references_incomplete(connection: Connection) -> None:
    life = Life(connection, reference={"labels": REFERENCE, "label_share": 0})
    life.rounds(30, flawed())
    assert min(life.reference_labels().values()) < REFERENCE


def test_labels_requested_under_suspicion_are_not_of_the_reference(connection: Connection) -> None:
    life = Life(connection, reference={"labels": 60}, alerts={"min_accuracy": 0.8})
    life.rounds(20, lambda region: region != "south")
    suspected = Counter(one.fact.group for one in outcomes(life.site) if one.fact.suspected)
    labels = Counter(one.fact.group for one in outcomes(life.site))
    assert set(suspected) == {"south"}
    assert life.reference_labels()["south"] == labels["south"] - suspected["south"]
