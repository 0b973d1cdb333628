"""What the labelling page says of a model's interval reveals nothing of a single label."""

from __future__ import annotations

from dataclasses import replace

from snapshots import snapshot

from service.domain.groupings import ALL
from service.monitoring.snapshot import ModelSnapshot
from service.serving.label_page.uncertainty import LEAST_LABELS, ShownWidths

SNAPSHOT = snapshot()


def with_labels(labels: int) -> ModelSnapshot:
    """A snapshot with so many labels, and an interval that shows how many."""
    everything = SNAPSHOT.groupings[ALL]
    accuracy = replace(
        everything.accuracy, lower=everything.accuracy.mean - labels / 1_000, upper=everything.accuracy.mean
    )
    groupings = SNAPSHOT.groupings | {ALL: replace(everything, accuracy=accuracy)}
    return replace(SNAPSHOT, outcomes=labels, groupings=groupings)


def widths(*labels: int) -> list[float | None]:
    """The widths shown at snapshots with so many labels, one after the other."""
    board: dict[str, ModelSnapshot] = {}
    shown = ShownWidths(board)
    found = []
    for each in labels:
        board["m"] = with_labels(each)
        found.append(shown.width("m"))
    return found


def test_the_width_is_that_of_the_models_interval() -> None:
    assert widths(100) == [0.1]


def test_it_is_shown_from_ten_labels_on() -> None:
    assert widths(0, 1, 9, 10) == [None, None, None, 0.01]


def test_without_an_estimate_there_is_none() -> None:
    assert ShownWidths({}).width("m") is None
    empty = replace(SNAPSHOT, groupings={})
    assert ShownWidths({"m": empty}).width("m") is None


def test_fewer_labels_than_ten_show_no_effect() -> None:
    assert widths(*range(100, 100 + LEAST_LABELS)) == [0.1] * LEAST_LABELS


def test_labels_that_are_taken_back_show_no_effect_either() -> None:
    assert widths(100, 99, 98, 97, 101, 99) == [0.1] * 6


def test_many_labels_show_theirs() -> None:
    assert widths(100, 100 + 2 * LEAST_LABELS) == [0.1, 0.12]


def test_nobody_knows_which_label_shows_it() -> None:
    found = [widths(*range(100, 121)) for _ in range(200)]
    changes = {next(at for at, width in enumerate(one) if width != 0.1) for one in found}
    assert changes <= set(range(LEAST_LABELS, 2 * LEAST_LABELS))
    assert len(changes) > 5
