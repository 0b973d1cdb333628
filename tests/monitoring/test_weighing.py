"""What labels from before anybody voted weigh, beside those whose votes are known and in groups by votes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from traffic_tables import JointCell, traffic_of

from service.domain.cells import AGREE, CHALLENGE, DISAGREE, MISSING, OTHER, CellSpace, Challenge, Combination
from service.domain.groupings import ALL, ByAttribute, ByChallenger, Everything
from service.domain.traffic_counts import TrafficCounts
from service.monitoring.group_index import GroupIndex, has_voteless_traffic
from service.monitoring.label_weights import vote_shares
from service.monitoring.outcome_table import OutcomeLedger
from service.monitoring.traffic_windows import traffic_history
from service.monitoring.weighted_labels import WeightedLabels, weigh_labels
from service.statistics.balance_heuristic import effective_counts
from service.store.outcome_entries import OutcomeEntry
from service.store.records import Fact, LabelFact

SPACE = CellSpace(
    ("cat", "dog"),
    (),
    {
        ALL: Everything(ALL),
        CHALLENGE: ByChallenger(CHALLENGE, CHALLENGE),
        "region": ByAttribute("region", "region"),
    },
    challenge=Challenge("v2"),
)
Shares = dict[Combination, float]
"""Of the traffic, by vote and region."""

VOTES: dict[str, dict[str, str]] = {AGREE: {"v2": "cat"}, DISAGREE: {"v2": "dog"}, MISSING: {}}


class Told:
    """Labels, as they come."""

    def __init__(self) -> None:
        self.entries: list[OutcomeEntry] = []

    def add(
        self,
        count: int,
        accuracy: float,
        *,
        by: str,
        vote: str = MISSING,
        region: str = "north",
        group: str = "",
    ) -> None:
        """So many of one kind, of which just this share says that the model is right."""
        for one in range(count):
            number = len(self.entries)
            fact = Fact(
                request_id=f"r{number}",
                item_id=f"i{number}",
                grouping=by,
                group=group,
                predicted_class="cat",
                score=0.5,
                attributes={"region": region},
                predicted_at=float(number),
                requested_at=float(number),
                votes=VOTES[vote],
                voters="v2" if by == CHALLENGE else "",
            )
            given = LabelFact("cat" if one < round(accuracy * count) else "dog", float(number), "")
            self.entries.append(OutcomeEntry((number, 0), (number, 0), "a", fact, given))

    def known(self, traffic: Shares, *, run_length: float | None = None) -> tuple[WeightedLabels, GroupIndex]:
        seen = traffic_of(
            SPACE,
            [
                JointCell(values, 0, 0, int(np.ceil(1_000 * share)), share, share / 2)
                for values, share in traffic.items()
            ],
        )
        ledger = OutcomeLedger(SPACE)
        ledger.fold(self.entries)
        ledger.place(votes_missing=has_voteless_traffic(SPACE, seen))
        index = GroupIndex(SPACE, seen, ledger.cells)
        return weigh_labels(index, ledger, decay=0.0, run_length=run_length, now=1e9), index


def share_right(estimated: Told, traffic: Shares, grouping: str, group: str) -> float:
    """Weighted share of labels in a group that say that the model is right."""
    known, index = estimated.known(traffic)
    labels = known.by_votes if grouping == CHALLENGE else known.labels
    groups = index[grouping]
    effective, right = effective_counts(
        groups=groups.numbers[labels.cells],
        group_count=len(groups.names) + 1,
        weights=labels.weights,
        freshness=labels.freshness,
        correct=labels.correct,
    )
    return float(right[groups.names.index(group)] / effective[groups.names.index(group)])


@pytest.mark.parametrize("first", [AGREE, DISAGREE])
def test_labels_from_before_beside_aimed_ones_count_either_vote_by_its_traffic(first: str) -> None:
    shares, accuracy = {AGREE: 0.8, DISAGREE: 0.2}, {AGREE: 0.9, DISAGREE: 0.5}
    traffic: Shares = {
        (vote, "north"): shares[vote] for vote in sorted(shares, key=lambda vote: vote != first)
    }
    overall = sum(shares[vote] * accuracy[vote] for vote in shares)
    estimated = Told()
    estimated.add(100, overall, by="region")
    for vote, share in shares.items():
        estimated.add(round(50 * share), accuracy[vote], by="region", vote=vote)
        estimated.add(100, accuracy[vote], by=CHALLENGE, vote=vote)
    assert share_right(estimated, traffic, "region", "north") == pytest.approx(overall)


def test_labels_from_before_count_regions_by_their_traffic_without_votes() -> None:
    # The challenger is tried out in the north alone.
    traffic: Shares = {
        (AGREE, "north"): 0.4,
        (DISAGREE, "north"): 0.05,
        (MISSING, "north"): 0.05,
        (MISSING, "south"): 0.5,
    }
    accuracy, estimated = {"north": 0.5, "south": 1.0}, Told()
    for region, right in accuracy.items():
        estimated.add(200, right, by="region", region=region)
    expected = np.average(list(accuracy.values()), weights=[traffic[MISSING, region] for region in accuracy])
    assert share_right(estimated, traffic, CHALLENGE, MISSING) == pytest.approx(expected)


@pytest.mark.parametrize("first", [AGREE, DISAGREE])
def test_a_change_of_disagreements_takes_nothing_of_labels_from_before(first: str) -> None:
    traffic: Shares = {
        (vote, "north"): 0.5 for vote in sorted((AGREE, DISAGREE), key=lambda vote: vote != first)
    }
    estimated = Told()
    for _ in range(30):
        estimated.add(2, 0.5, by="region")
    for accuracy in (1.0, 0.0):
        estimated.add(200, accuracy, by=CHALLENGE, vote=DISAGREE)
    known, _ = estimated.known(traffic, run_length=1_000.0)
    assert DISAGREE in known.change_points[CHALLENGE]
    assert known.labels.freshness.sum() - known.by_votes.freshness.sum() == pytest.approx(60, rel=0.1)


def test_a_label_that_was_drawn_for_a_group_without_traffic_shows_nothing_whoever_else_asked() -> None:
    traffic: Shares = {(AGREE, "north"): 1.0}
    estimated = Told()
    estimated.add(30, 1.0, by="region", vote=AGREE)
    estimated.add(20, 0.0, by="region", vote=AGREE, region="west")
    estimated.add(10, 1.0, by=CHALLENGE, vote=AGREE, region="west")
    known, _ = estimated.known(traffic)
    assert known.count == 40
    assert share_right(estimated, traffic, CHALLENGE, AGREE) == pytest.approx(1.0)


@given(st.integers(0, 2**32))
def test_shares_of_votes_are_those_of_cells_where_votes_depend_on_one_attribute(seed: int) -> None:
    rng = np.random.default_rng(seed)
    regions = ["north", "south", "west"]
    share, votes = rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(3), size=3)
    traffic: Shares = {
        (vote, region): float(share[r] * votes[r, v])
        for r, region in enumerate(regions)
        for v, vote in enumerate(VOTES)
    }
    estimated = Told()
    for region in regions:
        estimated.add(1, 1.0, by="region", vote=AGREE, region=region)
    _, index = estimated.known(traffic)
    found = dict(vote_shares(index))
    names, of = index.cells.values("region")
    for v, vote in enumerate(VOTES):
        expected = [votes[regions.index(names[number]), v] for number in of]
        assert found[vote] == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_labels_that_age_has_left_nothing_of_take_nothing_from_others() -> None:
    space = CellSpace(("cat", "dog"), (), {name: SPACE.groupings[name] for name in (ALL, "region")})
    before, now = (
        TrafficCounts.of(
            traffic_of(space, [JointCell((name,), 0, 0, count, 1.0, 0.5) for name in ("north", "south")])
        )
        for count in (1_000, 2_000)
    )
    seen = traffic_of(space, [JointCell((name,), 0, 0, 2_000, 1.0, 0.5) for name in ("north", "south")])
    estimated = Told()
    estimated.add(10, 1.0, by="region", region="south")
    estimated.add(30, 1.0, by="region", region="north")
    ledger = OutcomeLedger(space)
    ledger.fold(estimated.entries)
    ledger.place()
    history = traffic_history([5.0], {5.0: before}, now)
    index = GroupIndex(space, seen, ledger.cells, history)
    labels = weigh_labels(index, ledger, decay=50.0, run_length=None, now=39.0).labels
    assert labels.freshness.min() == 0.0
    effective, _ = effective_counts(
        groups=index[ALL].numbers[labels.cells],
        group_count=1,
        weights=labels.weights,
        freshness=labels.freshness,
        correct=labels.correct,
    )
    assert effective[0] == pytest.approx(1.0)


def test_labels_that_were_drawn_for_a_value_which_lost_its_row_say_nothing_of_all_other_values() -> None:
    traffic: Shares = {(AGREE, "north"): 0.8, (AGREE, OTHER): 0.2}
    estimated = Told()
    estimated.add(20, 1.0, by="region", vote=AGREE, region="rare", group=OTHER)
    estimated.add(40, 0.0, by="region", vote=AGREE, region="bad", group="bad")
    assert share_right(estimated, traffic, "region", OTHER) == pytest.approx(1.0)
    traffic[AGREE, "bad"] = 0.1
    assert share_right(estimated, traffic, "region", "bad") == pytest.approx(0.0)


def test_labels_of_a_value_that_lost_its_row_are_no_change_of_all_other_values() -> None:
    traffic: Shares = {(AGREE, "north"): 0.8, (AGREE, OTHER): 0.2}
    estimated = Told()
    estimated.add(50, 1.0, by="region", vote=AGREE, region="rare", group=OTHER)
    estimated.add(50, 0.0, by="region", vote=AGREE, region="bad", group="bad")
    known, _ = estimated.known(traffic, run_length=1_000.0)
    assert not known.change_points.get("region")
    assert known.labels.freshness.sum() == pytest.approx(50)
