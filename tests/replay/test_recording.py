"""Recordings: what is read from files, and what is said about files that cannot be used."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from service.domain.errors import RecordingError
from service.replay.digits import digits_recordings
from service.replay.recording import Recording, load_recording

PROBABILITIES = np.array([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6], [0.25, 0.5, 0.25], [0.5, 0.5, 0.0]])
LABELS = np.array([0, 1, 1, 2])


def saved(folder: Path, **arrays: Any) -> Path:
    path = folder / "model.npz"
    np.savez(path, **{"probabilities": PROBABILITIES, "labels": LABELS, **arrays})
    return path


def changed(row: int, column: int, value: float) -> np.ndarray:
    probabilities = PROBABILITIES.copy()
    probabilities[row, column] = value
    return probabilities


def written(folder: Path, text: str, name: str = "model.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def tabled(folder: Path, columns: dict[str, Any], **options: Any) -> Path:
    path = folder / "model.parquet"
    parquet.write_table(pa.table(columns), path, **options)
    return path


def score_columns(probabilities: np.ndarray = PROBABILITIES) -> dict[str, Any]:
    return {f"score_{place}": column for place, column in enumerate(probabilities.T)}


def refusal(path: Path) -> str:
    """The one line that is said about a file; it begins with the file."""
    with pytest.raises(RecordingError) as refused:
        load_recording(path)
    message = str(refused.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    return message


def assert_is_the_example(recording: Recording) -> None:
    np.testing.assert_allclose(recording.probabilities, PROBABILITIES)
    assert recording.labels.tolist() == LABELS.tolist()
    assert (recording.probabilities.dtype, recording.labels.dtype) == (np.float64, np.int64)


def test_an_archive_is_read(tmp_path: Path) -> None:
    recording = load_recording(saved(tmp_path, margins=np.array(["ignored"], dtype=object)))
    assert_is_the_example(recording)
    assert (recording.name, recording.size, recording.classes) == ("model", 4, 3)


def test_the_predicted_class_is_the_first_of_the_most_probable(tmp_path: Path) -> None:
    recording = load_recording(saved(tmp_path))
    assert recording.predicted.tolist() == [0, 2, 1, 0]
    assert recording.scores.tolist() == [0.7, 0.6, 0.5, 0.5]
    assert recording.correct.tolist() == [True, False, True, False]


def test_a_predicted_class_of_the_files_own_may_score_below_one_half(tmp_path: Path) -> None:
    recording = load_recording(
        saved(
            tmp_path,
            probabilities=np.array([[0.7, 0.3], [0.9, 0.1]]),
            labels=np.array([1, 1]),
            predicted=np.array([1, 0]),
        )
    )
    assert recording.predicted.tolist() == [1, 0]
    assert recording.scores.tolist() == [0.3, 0.9]
    assert recording.correct.tolist() == [True, False]


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_rounded_probabilities_are_left_as_they_are(tmp_path: Path, kind: type[np.floating]) -> None:
    rounded = np.random.default_rng(1).dirichlet(np.ones(1_000), 20).astype(kind)
    recording = load_recording(saved(tmp_path, probabilities=rounded, labels=np.arange(20)))
    np.testing.assert_array_equal(recording.probabilities, rounded.astype(np.float64))


@pytest.mark.parametrize("value", [0.109, 0.091])
def test_rows_that_nearly_sum_to_one_are_not_normalised(tmp_path: Path, value: float) -> None:
    recording = load_recording(saved(tmp_path, probabilities=changed(0, 2, value)))
    assert recording.probabilities[0].tolist() == [0.7, 0.2, value]


@pytest.mark.parametrize("kind", [np.uint8, np.int32, np.uint64, np.float32])
def test_labels_may_be_whole_numbers_of_any_type(tmp_path: Path, kind: type[np.number]) -> None:
    assert_is_the_example(load_recording(saved(tmp_path, labels=LABELS.astype(kind))))


def test_labels_of_two_classes_may_be_true_and_false(tmp_path: Path) -> None:
    recording = load_recording(
        saved(tmp_path, probabilities=np.full((2, 2), 0.5), labels=np.array([True, False]))
    )
    assert recording.labels.tolist() == [1, 0]


def test_a_score_slightly_above_one_is_one(tmp_path: Path) -> None:
    slightly = np.array([[1.00001, -0.00001], [0.4, 0.6]])
    recording = load_recording(saved(tmp_path, probabilities=slightly, labels=np.array([0, 1])))
    assert recording.probabilities.tolist() == [[1, 0], [0.4, 0.6]]


ROWS = ["0 0.7 0.2 0.1", "1 0.1 0.3 0.6", "1 0.25 0.5 0.25", "2 0.5 0.5 0.0"]


@pytest.mark.parametrize("name", ["model.csv", "model.txt", "model.TXT"])
@pytest.mark.parametrize("separator", [",", ", ", " ", "   ", "\t"])
@pytest.mark.parametrize(
    "before", ["", "true_class score_0 score_1 score_2\n", '"label" "0" "1" "2"\n', "# made today\n\n"]
)
def test_a_text_is_read_whatever_separates_its_columns(
    tmp_path: Path, name: str, separator: str, before: str
) -> None:
    # A comment may have any words, so only columns are separated otherwise.
    header = before if before.startswith("#") else before.replace(" ", separator)
    text = header + "\n".join(row.replace(" ", separator) for row in ROWS)
    assert_is_the_example(load_recording(written(tmp_path, text, name)))


def test_comments_blank_lines_and_foreign_line_ends_are_passed_over(tmp_path: Path) -> None:
    text = "\ufeff# a comment\r\n" + "  # with reasons\r\n \r\n".join(ROWS) + "\r\n\r\n"
    assert_is_the_example(load_recording(written(tmp_path, text)))


def test_parquet_with_a_column_per_class_is_read(tmp_path: Path) -> None:
    assert_is_the_example(load_recording(tabled(tmp_path, {"label": LABELS, **score_columns()})))


@pytest.mark.parametrize("name", ["label", "labels", "true_class"])
def test_parquet_may_name_its_true_classes_in_several_ways(tmp_path: Path, name: str) -> None:
    assert_is_the_example(load_recording(tabled(tmp_path, {name: LABELS, **score_columns()})))


@pytest.mark.parametrize(
    "kind", [pa.list_(pa.float64()), pa.large_list(pa.float64()), pa.list_(pa.float64(), 3)]
)
def test_parquet_with_lists_is_read(tmp_path: Path, kind: pa.DataType) -> None:
    lists = pa.array(PROBABILITIES.tolist(), kind)
    assert_is_the_example(load_recording(tabled(tmp_path, {"label": LABELS, "probabilities": lists})))


def test_parquet_may_have_predicted_classes_of_its_own(tmp_path: Path) -> None:
    path = tabled(tmp_path, {"label": LABELS, "predicted": LABELS, **score_columns()})
    assert load_recording(path).correct.all()


@pytest.mark.parametrize("lists", [True, False])
def test_parquet_of_many_batches_keeps_its_order(tmp_path: Path, lists: bool) -> None:
    rng = np.random.default_rng(3)
    # Two batches and a part, in row groups that end elsewhere.
    probabilities, labels = rng.dirichlet(np.ones(3), 20_000), rng.integers(0, 3, 20_000)
    scores = {"probabilities": probabilities.tolist()} if lists else score_columns(probabilities)
    recording = load_recording(tabled(tmp_path, {"label": labels, **scores}, row_group_size=7_000))
    np.testing.assert_array_equal(recording.probabilities, probabilities)
    np.testing.assert_array_equal(recording.labels, labels)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert "there is no such file" in refusal(tmp_path / "model.npz")


def test_of_an_unknown_format_the_known_ones_are_told(tmp_path: Path) -> None:
    assert ".npz, .csv, .txt, .parquet" in refusal(written(tmp_path, "", "model.xlsx"))


@pytest.mark.parametrize("content", [b"", b"0 0.5 0.5\n", b"PK\x03\x04 and then nothing"])
def test_what_is_no_archive_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "model.npz"
    path.write_bytes(content)
    assert "no npz archive" in refusal(path)


def test_a_single_array_is_no_archive(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    with path.open("wb") as handle:
        np.save(handle, PROBABILITIES)
    assert "no npz archive" in refusal(path)


def test_a_truncated_archive_is_refused(tmp_path: Path) -> None:
    path = saved(tmp_path)
    path.write_bytes(path.read_bytes()[:-100])
    assert "no npz archive, or a damaged one" in refusal(path)


def test_a_damaged_array_is_named(tmp_path: Path) -> None:
    path = saved(tmp_path)
    content = bytearray(path.read_bytes())
    content[content.index(PROBABILITIES.tobytes())] ^= 1
    path.write_bytes(content)
    assert "array 'probabilities' is damaged" in refusal(path)


def test_pickled_objects_are_never_read(tmp_path: Path) -> None:
    message = refusal(saved(tmp_path, labels=np.array([0, 1, "two", None], dtype=object)))
    assert "array 'labels' is damaged, or holds Python objects" in message


@pytest.mark.parametrize("name", ["probabilities", "labels"])
def test_an_array_that_is_missing_is_named(tmp_path: Path, name: str) -> None:
    path = tmp_path / "model.npz"
    np.savez(path, **{"probabilities": PROBABILITIES, "labels": LABELS, name + "_": LABELS})
    kept = {key: value for key, value in np.load(path).items() if key != name}
    np.savez(path, **kept)
    assert f"no array '{name}'" in refusal(path)


@pytest.mark.parametrize("wrong", [PROBABILITIES[:, 0], PROBABILITIES[None]])
def test_probabilities_of_another_number_of_dimensions_are_refused(tmp_path: Path, wrong: np.ndarray) -> None:
    message = refusal(saved(tmp_path, probabilities=wrong))
    assert "probabilities must be [N, K], " in message
    assert f"have the shape {list(wrong.shape)}" in message


@pytest.mark.parametrize("name", ["labels", "predicted"])
@pytest.mark.parametrize("wrong", [LABELS[:3], LABELS[:, None]])
def test_every_row_needs_one_class(tmp_path: Path, name: str, wrong: np.ndarray) -> None:
    assert f"{name} must be [4], " in refusal(saved(tmp_path, **{name: wrong}))


def test_one_class_is_too_few(tmp_path: Path) -> None:
    assert "of 1 class(es), but at least 2" in refusal(saved(tmp_path, probabilities=np.ones((4, 1))))


def test_a_text_without_scores_has_too_few_classes(tmp_path: Path) -> None:
    assert "of 0 class(es), but at least 2" in refusal(written(tmp_path, "0\n1\n"))


@pytest.mark.parametrize("text", ["", "# nothing\n\n", "true_class,score_0,score_1\n"])
def test_a_text_without_rows_is_refused(tmp_path: Path, text: str) -> None:
    assert "there are no rows" in refusal(written(tmp_path, text))


def test_an_archive_without_rows_is_refused(tmp_path: Path) -> None:
    path = saved(tmp_path, probabilities=PROBABILITIES[:0], labels=LABELS[:0])
    assert "there are no rows" in refusal(path)


@pytest.mark.parametrize("lists", [True, False])
def test_parquet_without_rows_is_refused(tmp_path: Path, lists: bool) -> None:
    scores = (
        {"probabilities": pa.array([], pa.list_(pa.float64()))} if lists else score_columns(PROBABILITIES[:0])
    )
    assert "there are no rows" in refusal(tabled(tmp_path, {"label": LABELS[:0], **scores}))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_of_probabilities_that_are_no_numbers_the_first_row_is_named(tmp_path: Path, value: float) -> None:
    probabilities = changed(1, 2, value)
    probabilities[3] = value
    message = refusal(saved(tmp_path, probabilities=probabilities))
    assert "row 1 (counted from 0): probabilities hold a NaN or an infinity" in message


def test_in_a_text_the_line_is_named(tmp_path: Path) -> None:
    text = "true_class score_0 score_1\n# a comment\n0 0.5 0.5\n\n1 nan 0.5\n"
    assert "line 5: probabilities hold a NaN" in refusal(written(tmp_path, text))


@pytest.mark.parametrize("name", ["labels", "predicted"])
def test_of_classes_that_are_no_numbers_the_first_row_is_named(tmp_path: Path, name: str) -> None:
    wrong = np.array([0, 1, np.nan, np.nan])
    assert f"row 2 (counted from 0): {name} hold a NaN" in refusal(saved(tmp_path, **{name: wrong}))


@pytest.mark.parametrize("name", ["labels", "predicted"])
def test_classes_must_be_whole_numbers(tmp_path: Path, name: str) -> None:
    message = refusal(saved(tmp_path, **{name: np.array([0, 0.5, 1.5, 2])}))
    assert f"row 1 (counted from 0): {name} must be whole numbers" in message


@pytest.mark.parametrize("name", ["labels", "predicted", "probabilities"])
def test_words_are_no_numbers(tmp_path: Path, name: str) -> None:
    words = np.array(["cat", "dog", "cat", "dog"])
    wrong = np.tile(words[:, None], 3) if name == "probabilities" else words
    assert f"{name} are not numbers" in refusal(saved(tmp_path, **{name: wrong}))


@pytest.mark.parametrize("value", [-1, 3])
def test_of_classes_out_of_range_the_first_row_and_the_range_are_named(tmp_path: Path, value: int) -> None:
    wrong = np.array([0, 1, value, value])
    span = f"from {wrong.min()} to {wrong.max()}"
    message = refusal(saved(tmp_path, labels=wrong))
    assert f"row 2 (counted from 0): labels must be within 0 and 2, but go {span}" in message
    assert "counted from 1;" not in message


def test_labels_that_are_counted_from_one_are_recognised(tmp_path: Path) -> None:
    assert "they seem to be counted from 1; subtract 1" in refusal(saved(tmp_path, labels=LABELS + 1))


@pytest.mark.parametrize(("value", "span"), [(1.001, "from 0 to 1.001"), (-0.001, "from -0.001 to 0.7")])
def test_of_probabilities_out_of_range_the_first_row_and_the_range_are_named(
    tmp_path: Path, value: float, span: str
) -> None:
    message = refusal(saved(tmp_path, probabilities=changed(1, 1, value)))
    assert f"row 1 (counted from 0): a probability is not within 0 and 1 (all go {span})" in message


@pytest.mark.parametrize(("value", "total"), [(0.12, "1.02"), (0.08, "0.98")])
def test_rows_that_do_not_sum_to_one_are_refused(tmp_path: Path, value: float, total: str) -> None:
    message = refusal(saved(tmp_path, probabilities=changed(0, 2, value)))
    assert f"row 0 (counted from 0): the probabilities sum to {total}, not to 1" in message


@pytest.mark.parametrize("separator", [",", " "])
@pytest.mark.parametrize("row", [2, 5, 60_000])
def test_of_a_line_that_cannot_be_read_the_number_and_the_column_are_told(
    tmp_path: Path, separator: str, row: int
) -> None:
    lines = ["true_class score_0 score_1", *["0 0.5 0.5"] * row]
    lines[row - 1] = "1 0.2x 0.8"
    text = "\n".join(lines).replace(" ", separator)
    assert f"line {row}: column 2 is not a number" in refusal(written(tmp_path, text))


def test_an_empty_column_is_not_a_number(tmp_path: Path) -> None:
    assert "line 2: column 3 is not a number" in refusal(written(tmp_path, "0,0.5,0.5\n1,0.5,\n"))


def test_the_first_line_is_no_header_if_it_has_numbers(tmp_path: Path) -> None:
    assert "line 1: column 1 is not a number" in refusal(written(tmp_path, "1o,0.5,0.5\n1,0.5,0.5\n"))


@pytest.mark.parametrize(("line", "columns"), [("1 0.5", 2), ("1 0.2 0.3 0.5", 4)])
def test_of_a_row_with_another_number_of_columns_the_line_is_told(
    tmp_path: Path, line: str, columns: int
) -> None:
    text = f"# a comment\n0 0.5 0.5\n{line}\n0 0.5 0.5\n"
    assert f"line 3 has {columns} columns, but the first row has 3" in refusal(written(tmp_path, text))


def test_what_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.csv"
    path.write_bytes(b"0 0.5 0.5\n" * 10_000 + b"\xff\xfe\x00")
    assert "no text in UTF-8" in refusal(path)


def test_truncated_parquet_is_refused(tmp_path: Path) -> None:
    path = tabled(tmp_path, {"label": LABELS, **score_columns()})
    path.write_bytes(path.read_bytes()[:-20])
    assert "no Parquet file, or a damaged one" in refusal(path)


def test_parquet_with_damaged_names_is_refused(tmp_path: Path) -> None:
    path = tabled(tmp_path, {"label": LABELS, **score_columns()})
    path.write_bytes(path.read_bytes().replace(b"score_1", b"score_\xff"))
    assert "no Parquet file, or a damaged one" in refusal(path)


def test_parquet_needs_a_column_of_true_classes(tmp_path: Path) -> None:
    assert "no column of true classes; name it label" in refusal(tabled(tmp_path, score_columns()))


@pytest.mark.parametrize("missing", [0, 1])
def test_parquet_needs_a_column_for_every_class(tmp_path: Path, missing: int) -> None:
    columns = score_columns()
    del columns[f"score_{missing}"]
    assert f"no column 'score_{missing}'" in refusal(tabled(tmp_path, {"label": LABELS, **columns}))


def test_parquet_needs_probabilities(tmp_path: Path) -> None:
    assert "no column 'score_0'" in refusal(tabled(tmp_path, {"label": LABELS}))


def test_parquet_lists_must_be_equally_long(tmp_path: Path) -> None:
    lists = [[0.5, 0.5, 0.0], [0.5, 0.5], [1.0, 0.0, 0.0], None]
    message = refusal(tabled(tmp_path, {"label": LABELS, "probabilities": lists}))
    assert "row 1 (counted from 0) has 2 probabilities, but the first row has 3" in message


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        ([0.5] * 4, "of lists of numbers, but is of double"),
        ([["a", "b"]] * 4, "of numbers, but is of string"),
    ],
)
def test_parquet_probabilities_must_be_lists_of_numbers(tmp_path: Path, column: list[Any], kind: str) -> None:
    path = tabled(tmp_path, {"label": LABELS, "probabilities": column})
    assert f"column 'probabilities' must be {kind}" in refusal(path)


def test_parquet_scores_must_be_numbers(tmp_path: Path) -> None:
    path = tabled(tmp_path, {"label": LABELS, **score_columns(), "score_1": ["0.5"] * 4})
    assert "column 'score_1' must be of numbers, but is of string" in refusal(path)


def test_parquet_values_that_are_missing_are_named(tmp_path: Path) -> None:
    path = tabled(tmp_path, {"label": pa.array([0, 1, None, 2]), **score_columns()})
    assert "row 2 (counted from 0): labels hold a NaN, an infinity or nothing" in refusal(path)


def test_without_pyarrow_it_is_told_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tabled(tmp_path, {"label": LABELS, **score_columns()})
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert "pip install 'credence[replay]'" in refusal(path)


def test_the_digits_are_told_apart_well_but_not_perfectly() -> None:
    for recording in digits_recordings():
        assert (recording.size, recording.classes) == (1_647, 10)
        assert 0.8 < recording.correct.mean() < 0.93


def test_one_classifier_of_digits_is_overconfident_and_one_is_not() -> None:
    logistic, bayes = digits_recordings()
    assert logistic.scores.mean() < logistic.correct.mean()
    assert bayes.scores.mean() > bayes.correct.mean() + 0.1


def test_the_digits_are_the_same_every_time() -> None:
    for first, second in zip(digits_recordings(), digits_recordings(), strict=True):
        np.testing.assert_array_equal(first.probabilities, second.probabilities)
        np.testing.assert_array_equal(first.labels, second.labels)


def test_without_scikit_learn_it_is_told_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(RecordingError, match=re.escape("pip install 'credence[demo]'")):
        digits_recordings()
