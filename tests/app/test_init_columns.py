"""Which columns `credence init` takes for what; ambiguous ones are errors that name the option to use."""

from __future__ import annotations

import pytest
from samples import CLASSES, Init, renamed, rows, write_csv, write_jsonl

COUNT = 120


def test_an_ambiguous_column_is_an_error_until_it_is_named(init: Init) -> None:
    found = [row | {"target": row["label"]} for row in renamed(rows(COUNT), true_class="label")]
    proposed = init.of(found)
    assert proposed.code == 2
    assert "--truth: label, target could each be true_class; name one: --truth label, or --truth ''" in (
        proposed.error
    )
    chosen = init.of(found, "--truth", "target")
    assert "true_class: target (named by --truth)" in chosen.comments
    assert "label: its name is usual for true_class, which is not an attribute" in chosen.comments
    assert "true_class: none (no column, by --truth)" in init.of(found, "--truth", "").comments


def test_the_name_of_the_contract_wins_and_the_others_are_mentioned(init: Init) -> None:
    found = [row | {"label": row["true_class"]} for row in rows(COUNT)]
    assert "true_class (its name is that of the contract; also possible: --truth label)" in (
        init.of(found).comments
    )


@pytest.mark.parametrize(
    ("names", "option", "said"),
    [
        ({"predicted_class": "guess"}, "--predicted", "no column is the predicted class"),
        ({"score": "certainty"}, "--score", "no column is the score, the probability of the predicted class"),
    ],
)
def test_a_column_that_predictions_need_must_be_named(
    init: Init, names: dict[str, str], option: str, said: str
) -> None:
    found = renamed(rows(COUNT), **names)
    proposed = init.of(found)
    assert proposed.code == 2
    assert f"{option}: {said}" in proposed.error
    assert "the columns are item_id" in proposed.error
    (column,) = names.values()
    assert init.of(found, option, column).code == 0


def test_probabilities_under_unusual_names_can_be_named_by_the_beginning_of_these(init: Init) -> None:
    found = [{"id": f"i{n}", "p_cat": 0.7, "p_dog": 0.3} for n in range(COUNT)]
    said = "--predicted COLUMN, or --probabilities with the beginning of the names of their columns"
    assert said in init.of(found).error
    assert init.of(found, "--probabilities", "p_").model["classes"] == ["cat", "dog"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--score", "region"], "--score: column region: line 2 is not a number"),
        (["--time", "region"], "--time: column region: not every value is a time"),
        (["--score", "absent"], "--score: there is no column absent; the columns are item_id"),
        (["--truth", "predicted_class"], "--truth: column predicted_class is already predicted_class"),
        (["--attributes", "region,absent"], "--attributes: there is no column absent"),
        (["--attributes", "score"], "--attributes: column score has another role"),
        (["--probabilities", "p_"], "--probabilities: no column is p_ or begins with it"),
        (["--classes", "cat,dog"], "--classes: lacks classes that the sample has: owl"),
        (["--classes", "cat,dog,owl,cat"], "--classes: cat is there twice"),
        (["--truth", "region"], "--truth: no true class (east, north, south) is a predicted class"),
        (["--model", "a b"], "--model: a b must be letters"),
    ],
)
def test_an_option_that_does_not_fit_the_file_is_an_error(init: Init, options: list[str], said: str) -> None:
    proposed = init.of(rows(COUNT), *options)
    assert proposed.code == 2
    assert said in proposed.error


def test_scores_that_are_no_probabilities_are_refused_with_their_row(init: Init) -> None:
    found = rows(COUNT)
    found[7] = found[7] | {"score": 93}
    problem = "line 9 is 93, which is no probability in [0, 1]"
    assert f"column score is not taken: {problem}" in init.of(found).error
    assert f"--score: column score: {problem}" in init.of(found, "--score", "score").error


def test_the_only_class_of_a_sample_does_not_suffice(init: Init) -> None:
    found = [row | {"predicted_class": "cat", "true_class": "cat"} for row in rows(COUNT)]
    assert "the sample has only class cat; take a larger sample, or name all" in init.of(found).error
    assert init.of(found, "--classes", "cat,dog").model["classes"] == ["cat", "dog"]


def test_rows_of_several_models_need_a_choice(init: Init) -> None:
    found = [row | {"model": "new" if place % 3 else "old"} for place, row in enumerate(rows(COUNT))]
    assert "the rows are of several models (new, old); say --model NAME" in init.of(found).error
    proposed = init.of(found, "--model", "old")
    assert "40 predictions" not in proposed.comments
    assert "40 rows, the whole file. 80 of other models were left out." in proposed.comments
    assert "no row is of model none" in init.of(found, "--model", "none").error
    assert init.of(found, "--model-column", "").code == 0


def probabilities(predicted: str, names: list[str]) -> list[float]:
    """Of all classes, the predicted one highest."""
    return [0.8 if name == predicted else 0.1 for name in names]


@pytest.mark.parametrize("prefix", ["probability.", "proba_", "score_"])
def test_columns_of_the_probabilities_of_classes_name_them(init: Init, prefix: str) -> None:
    names = ["owl", "cat", "dog"]
    found = [
        row
        | {
            prefix + name: p
            for name, p in zip(names, probabilities(row["predicted_class"], names), strict=True)
        }
        for row in renamed(rows(COUNT), score=None)
    ]
    proposed = init.of(found)
    assert proposed.model["classes"] == names
    assert f"the 3 columns {prefix}… are probabilities that sum to 1 in every row" in proposed.comments


def test_the_order_of_unnamed_probabilities_follows_from_what_is_predicted(init: Init) -> None:
    names = ["owl", "cat", "dog"]
    found = [
        row | {"probabilities": probabilities(row["predicted_class"], names)}
        for row in renamed(rows(COUNT), score=None)
    ]
    path = write_jsonl(init.folder / "a.jsonl", found)
    assert init(path).model["classes"] == names
    without = renamed(found, predicted_class=None)
    proposed = init(write_jsonl(init.folder / "b.jsonl", without))
    assert "it does not follow which class (cat, dog, owl) each is of" in proposed.error
    assert init(init.folder / "b.jsonl", "--classes", "owl,cat,dog").model["classes"] == names


def test_probabilities_without_any_name_get_places_as_names(init: Init) -> None:
    found = [{"probabilities": [0.7, 0.2, 0.1], "item_id": str(number)} for number in range(COUNT)]
    proposed = init(write_jsonl(init.folder / "a.jsonl", found))
    assert proposed.model["classes"] == ["0", "1", "2"]
    assert "rename them, in this order" in proposed.comments


def test_columns_of_the_contract_that_are_no_probabilities_are_refused(init: Init) -> None:
    found = [row | {"probability.cat": 0.5, "probability.dog": 0.1} for row in rows(COUNT)]
    assert "columns probability.…: they do not sum to 1 in some row" in init.of(found).error


def test_two_columns_of_one_name_are_refused(init: Init) -> None:
    path = write_csv(init.folder / "a.csv", rows(COUNT))
    path.write_text(path.read_text().replace("region", "score", 1))
    assert "there is more than one column score; give each a name of its own" in init(path).error


def test_a_column_whose_name_may_mean_either_class_is_left_out_with_a_comment(init: Init) -> None:
    found = [row | {"class": row["predicted_class"]} for row in rows(COUNT)]
    assert "class: its name may mean the predicted or the true class" in init.of(found).comments
    proposed = init.of(found, "--attributes", "class")
    assert proposed.model["groupings"]["class_2"] == {"by": "attribute", "attribute": "class"}


def test_named_attributes_are_the_only_ones(init: Init) -> None:
    found = rows(COUNT, city=[f"city {number % 60}" for number in range(COUNT)])
    proposed = init.of(found, "--attributes", "city")
    assert [*proposed.model["groupings"]] == ["class", "city"]
    assert "region: not among --attributes" in proposed.comments


def test_an_attribute_whose_name_is_no_key_is_renamed_where_the_file_is_sent(init: Init) -> None:
    proposed = init.of(renamed(rows(COUNT), region="Sales Region"))
    assert proposed.model["groupings"]["Sales_Region"]["attribute"] == "Sales_Region"
    assert "Column Sales Region." in proposed.comments
    assert "--column 'attributes.Sales_Region=Sales Region'" in proposed.text


def test_names_keep_letters_without_their_accents(init: Init) -> None:
    said = init.of(renamed(rows(), region="région")).text
    assert "Which region is the least accurate?" in said


def test_classes_that_occur_only_as_true_ones_are_classes_too(init: Init) -> None:
    found = rows(COUNT)
    found[0] = found[0] | {"true_class": "emu"}
    proposed = init.of(found)
    assert proposed.model["classes"] == sorted([*CLASSES, "emu"])
    assert "Only as true classes: emu." in proposed.comments


def test_a_rare_class_of_two_is_pointed_at_its_own_task(init: Init) -> None:
    found = [
        row | {"predicted_class": "fraud" if place % 50 == 0 else "fine", "true_class": "fine"}
        for place, row in enumerate(rows(400))
    ]
    assert "fraud is 2.0% of what is predicted" in init.of(found).comments


def test_comments_hold_no_line_breaks_of_the_sample(init: Init) -> None:
    found = rows(COUNT, note=["a\nmodels: {}" if number % 2 else "b" for number in range(COUNT)])
    proposed = init.of(found)
    assert init.check(proposed)[0] == 0
    assert "\\nmodels" in proposed.text


def test_a_column_that_is_named_twice_is_refused(init: Init) -> None:
    assert (
        "--attributes: region is there twice; name each column once"
        in init.of(rows(COUNT), "--attributes", "region,region").error
    )


def test_an_error_about_classes_says_which_rows_cannot_be_read(init: Init) -> None:
    path = write_csv(
        init.folder / "sorter.csv", [row | {"predicted_class": "cat", "true_class": "cat"} for row in rows(3)]
    )
    with path.open("a", encoding="utf-8") as handle:
        handle.write("too,many,cells,in,this,row\n" * 40)
    said = init(path).error
    assert "the sample has only class cat" in said
    assert "40 lines cannot be read, the first at line 5: " in said
