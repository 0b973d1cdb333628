"""Groups and score bins of recordings."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.errors import RecordingError
from service.replay.grouping import (
    Grouper,
    equal_size_bins,
    equal_width_bins,
    load_superclasses,
    score_bins,
)
from service.replay.options import Binning
from service.replay.pool import Pool
from service.replay.recording import Recording

BINNINGS: list[Binning] = ["equal_width", "equal_size"]

# Scores of few decimals have ties, and lie on edges of bins.
SCORES = st.lists(
    st.one_of(st.floats(0, 1), st.integers(0, 20).map(lambda part: part / 20)), min_size=1, max_size=60
).map(np.array)
DISTINCT_SCORES = st.lists(st.floats(0, 1), min_size=1, max_size=60, unique=True).map(np.array)
COUNTS = st.integers(1, 25)

RECORDING = Recording(
    "model",
    np.array([[0.9, 0.1, 0.0, 0.0], [0.4, 0.6, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0], [0.2, 0.8, 0.0, 0.0]]),
    np.array([0, 0, 3, 2]),
)


@pytest.mark.parametrize("binning", BINNINGS)
@given(scores=SCORES, count=COUNTS)
def test_every_score_is_in_one_of_the_bins(scores: np.ndarray, count: int, binning: Binning) -> None:
    bins = score_bins(scores, count, binning)
    assert bins.shape == scores.shape
    assert bins.min() >= 0
    assert bins.max() < count


@pytest.mark.parametrize("binning", BINNINGS)
@given(scores=SCORES, count=COUNTS)
def test_bins_ascend_with_the_score(scores: np.ndarray, count: int, binning: Binning) -> None:
    bins = score_bins(scores, count, binning)
    assert (np.diff(bins[np.argsort(scores)]) >= 0).all()


@pytest.mark.parametrize("binning", BINNINGS)
@given(scores=SCORES, count=COUNTS)
def test_equal_scores_share_a_bin(scores: np.ndarray, count: int, binning: Binning) -> None:
    bins = score_bins(scores, count, binning)
    assert len(set(zip(scores.tolist(), bins.tolist(), strict=True))) == len(np.unique(scores))


@pytest.mark.parametrize("binning", BINNINGS)
@given(scores=SCORES, count=COUNTS)
def test_a_score_of_one_is_in_the_last_bin(scores: np.ndarray, count: int, binning: Binning) -> None:
    assert score_bins(np.append(scores, 1.0), count, binning)[-1] == count - 1


@given(st.integers(1, 200), st.data())
def test_a_score_on_an_edge_is_in_the_upper_bin(count: int, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, count - 1))
    edge = np.array([place / count, np.nextafter((place + 1) / count, 0)])
    assert equal_width_bins(edge, count).tolist() == [place, place]


@given(DISTINCT_SCORES, COUNTS)
def test_without_ties_sizes_differ_by_one_at_most(scores: np.ndarray, count: int) -> None:
    sizes = np.bincount(equal_size_bins(scores, count), minlength=count)
    assert sizes.max() - sizes.min() <= 1


@given(SCORES, COUNTS)
def test_the_highest_score_is_in_the_last_bin_of_equal_size(scores: np.ndarray, count: int) -> None:
    assert equal_size_bins(scores, count)[scores.argmax()] == count - 1


@given(SCORES, COUNTS)
def test_bins_of_equal_size_are_used_where_ties_allow(scores: np.ndarray, count: int) -> None:
    assert len(np.unique(equal_size_bins(scores, count))) == min(count, len(np.unique(scores)))


@given(st.floats(0, 1), st.integers(200, 1_000), st.integers(2, 10))
def test_a_score_that_many_share_leaves_the_other_bins_even(value: float, ties: int, count: int) -> None:
    others = np.setdiff1d(np.linspace(0, 1, 101), [value])
    bins = equal_size_bins(np.append(others, np.full(ties, value)), count)
    shared = bins[-1]
    sizes = np.delete(np.bincount(bins, minlength=count), shared)
    # The bins beside the shared score may each lend it up to half of their share.
    share = len(others) / (count - 1)
    assert sizes.min() >= share / 2 - 1
    assert sizes.max() <= share + 1


def assert_is(grouped: Pool, names: list[str], groups: list[int]) -> None:
    assert grouped.names == names
    assert grouped.groups.tolist() == groups


def test_all_is_one_group() -> None:
    assert_is(Grouper().all(RECORDING), ["all"], [0, 0, 0, 0])


def test_a_class_that_is_never_predicted_is_left_out() -> None:
    assert_is(Grouper().by_predicted_class(RECORDING), ["0", "1", "3"], [0, 1, 2, 1])


def test_groups_are_by_the_predicted_class_that_the_recording_has() -> None:
    own = Recording("model", RECORDING.probabilities, RECORDING.labels, np.array([1, 1, 1, 0]))
    assert_is(Grouper().by_predicted_class(own), ["0", "1"], [1, 1, 1, 0])


def test_bins_of_equal_width_are_named_by_their_edges() -> None:
    grouped = Grouper(bin_count=4).bins_alone(RECORDING)
    assert_is(grouped, ["[0.5,0.75)", "[0.75,1]"], [1, 0, 1, 1])


def test_bins_of_equal_size_are_named_by_their_number_and_scores() -> None:
    grouped = Grouper(bin_count=2, binning="equal_size").bins_alone(RECORDING)
    assert_is(grouped, ["1/2 [0.6,0.8]", "2/2 [0.9,1]"], [1, 0, 1, 0])


def test_a_bin_of_equal_size_that_ties_leave_empty_is_left_out() -> None:
    grouped = Grouper(bin_count=5, binning="equal_size").bins_alone(RECORDING)
    assert [name[:3] for name in grouped.names] == ["2/5", "3/5", "4/5", "5/5"]
    assert grouped.groups.tolist() == [2, 0, 3, 1]


@pytest.mark.parametrize("binning", BINNINGS)
def test_every_grouping_has_the_same_bins(binning: Binning) -> None:
    grouper = Grouper(bin_count=3, binning=binning)
    expected = score_bins(RECORDING.scores, 3, binning).tolist()
    for grouped in (
        grouper.all(RECORDING),
        grouper.by_predicted_class(RECORDING),
        grouper.by_superclass(RECORDING, {"every": [0, 1, 2, 3]}),
    ):
        assert (grouped.bins.tolist(), grouped.bin_count) == (expected, 3)


def test_superclasses_are_of_the_predicted_class() -> None:
    grouped = Grouper().by_superclass(RECORDING, {"high": [3, 1], "none": [2], "low": [0]})
    assert_is(grouped, ["high", "low"], [1, 0, 0, 0])


def test_a_predicted_class_of_no_superclass_is_not_let_pass() -> None:
    with pytest.raises(ValueError, match="negative"):
        Grouper().by_superclass(RECORDING, {"most": [0, 1, 2]})


def superclass_file(folder: Path, content: object) -> Path:
    path = folder / "superclasses.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def refusal(path: Path) -> str:
    """The one line that is said about a file; it begins with the file."""
    with pytest.raises(RecordingError) as refused:
        load_superclasses(path, RECORDING)
    message = str(refused.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    return message


def test_classes_without_names_are_named_by_their_numbers(tmp_path: Path) -> None:
    path = superclass_file(tmp_path, {"even": ["0", "2"], "odd": ["1", 3]})
    assert load_superclasses(path, RECORDING) == {"even": [0, 2], "odd": [1, 3]}


def test_a_file_of_superclasses_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert "there is no such file" in refusal(tmp_path / "superclasses.json")


def test_superclasses_must_be_json(tmp_path: Path) -> None:
    assert "cannot be read as JSON" in refusal(superclass_file(tmp_path, "{'even': [0]}"))


@pytest.mark.parametrize("content", [[[0, 1], [2, 3]], 4])
def test_superclasses_must_have_names(tmp_path: Path, content: object) -> None:
    assert "must be a JSON object" in refusal(superclass_file(tmp_path, content))


@pytest.mark.parametrize("members", [[], 3, "0123", {"0": 1}])
def test_a_superclass_must_be_a_list_of_classes(tmp_path: Path, members: object) -> None:
    assert "superclass 'odd' must have a list of classes" in refusal(
        superclass_file(tmp_path, {"odd": members})
    )


@pytest.mark.parametrize("member", ["ant", 4, -1, 1.0, True, None, [1]])
def test_a_class_that_does_not_exist_is_refused(tmp_path: Path, member: object) -> None:
    path = superclass_file(tmp_path, {"some": [0, member], "others": [1, 2, 3]})
    assert "superclass 'some': item 1 (counted from 0) is no class" in refusal(path)


def test_a_class_of_two_superclasses_is_refused(tmp_path: Path) -> None:
    path = superclass_file(tmp_path, {"low": [0, 1], "middle": [1, 2], "high": [3]})
    assert "class '1' is twice in it, in 'low' and 'middle'" in refusal(path)


def test_classes_of_no_superclass_are_refused(tmp_path: Path) -> None:
    path = superclass_file(tmp_path, {"low": [0, 1]})
    assert "2 class(es) are in no superclass, the first is '2'" in refusal(path)
