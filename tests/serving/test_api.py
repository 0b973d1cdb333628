"""The HTTP API, over HTTP: what it says, when it says nothing new, and its description of itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any, get_args

import jsonschema
import numpy as np
import pytest
from api_client import Client, served
from snapshots import BUDGET, CLASSES, NOW, drifting, known, recalled, snapshot

from service.monitoring.group_index import AttributeTraffic
from service.monitoring.history import Moment
from service.monitoring.snapshot import ModelSnapshot
from service.serving.documents.groups import SortKey

ALERTS = {"min_accuracy": 0.8, "max_ece": 0.25}


def remembered() -> tuple[Moment, ...]:
    """What was believed with a third and with two thirds of the labels."""
    times = (NOW - 3_000, NOW - 2_000, NOW)
    there, before = known(given=times, alerts=ALERTS), snapshot(given=times, alerts=ALERTS)
    return tuple(recalled(there, before, at) for at in (NOW - 3_500, NOW - 2_500, NOW - 1_500))


@cache
def taken() -> ModelSnapshot:
    return snapshot(alerts=ALERTS, past=remembered())


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with served({"m": taken()}) as client:
        yield client


def test_all_models_are_listed_those_without_a_snapshot_too(client: Client) -> None:
    overview = client.get("")
    assert [(one["model"], one["taken_at"]) for one in overview["models"]] == [("m", NOW), ("new", None)]
    assert [one["headline"]["status"] for one in overview["models"]] == ["critical", "no_estimates"]
    assert overview["now"] == NOW + 2


def low(client: Client) -> list[dict[str, Any]]:
    """Problems with the accuracy of classes."""
    wanted = ("class", "accuracy_low")
    return [p for p in client.get("/m")["problems"] if (p["grouping"], p["kind"]) == wanted]


def test_the_weak_group_is_found_in_words_and_numbers(client: Client) -> None:
    found = low(client)
    assert [f["group"] for f in found] == ["dog"]
    assert found[0]["probability"] > 0.95
    assert found[0]["title"] == "Accuracy below target: class = dog"
    assert re.match(
        r"Accuracy 6\d\.\d% \(95% CI .*-.*%, adjusted for 3 groups\), threshold 80%; "
        r".* probability of being below\.",
        found[0]["sentence"],
    )


def test_a_problem_shows_since_when_it_is_known(client: Client) -> None:
    found = low(client)[0]
    assert found["since"] == NOW - 2_500
    assert not found["since_or_earlier"], "without labels it was not believed"


def test_what_an_assessment_asks_and_has_found_is_reported_in_words(client: Client) -> None:
    result = {one["name"]: (one["question"], one["found"]) for one in client.get("/m")["assessments"]}
    assert result["worst"] == ("Which class is the least accurate?", "Least accurate: dog (over 99.9%)")
    assert result["compare"][0] == "Is class dog less or more accurate than cat, by more than 5 points?"
    assert result["compare"][1].startswith("dog is less accurate than cat")


def test_the_group_that_is_asked_next_has_a_reason(client: Client) -> None:
    worst = next(one for one in client.get("/m")["assessments"] if one["name"] == "worst")
    assert worst["next"][0]["group"] == "dog"
    assert "least accurate with a probability of" in worst["next"][0]["why"]


@pytest.mark.parametrize("sort", get_args(SortKey))
def test_groups_are_sorted_either_way(client: Client, sort: str) -> None:
    result = {
        order: [
            g["group"] for g in client.get(f"/m/groups?grouping=class&sort={sort}&order={order}")["groups"]
        ]
        for order in ("asc", "desc")
    }
    assert sorted(result["asc"]) == sorted(CLASSES)
    if sort not in {"share", "labels", "drift"}:  # which are the same of all three
        assert result["asc"] == result["desc"][::-1]


def test_the_most_alarming_group_comes_first(client: Client) -> None:
    table = client.get("/m/groups?grouping=class")
    assert table["groups"][0]["group"] == "dog"
    assert table["groups"][0]["verdict"] == "fails"
    assert table["groups"][0]["low_since"] == NOW - 2_500


def test_groups_are_searched_and_paged(client: Client) -> None:
    table = client.get("/m/groups?grouping=class&search=O&sort=group&limit=1&offset=1")
    assert table["total"] == 2
    assert [g["group"] for g in table["groups"]] == ["owl"]


def test_one_group_is_asked_for_by_its_whole_name(client: Client) -> None:
    client.board["new"] = snapshot(2, classes=[str(i) for i in range(150)] + ["cat", "dog"])
    result = client.get("/new/groups?grouping=class&group=7")
    none = client.get("/new/groups?grouping=class&group=yak")
    del client.board["new"]
    assert [g["group"] for g in result["groups"]] == ["7"]
    assert none["groups"] == []


def test_every_threshold_that_is_crossed_counts(client: Client) -> None:
    client.board["new"] = snapshot(alerts={"min_accuracy": 0.8, "max_ece": 0.1})
    state = client.get("/new")
    del client.board["new"]
    dog = [p["kind"] for p in state["problems"] if (p["grouping"], p["group"]) == ("class", "dog")]
    assert {"accuracy_low", "miscalibrated"} <= set(dog)
    assert state["headline"]["problem_count"] == len(state["problems"])


def test_a_group_that_changed_shows_what_its_labels_from_before_still_count() -> None:
    with served({"m": snapshot(changed="cat")}) as client:
        groups = {group["group"]: group for group in client.get("/m/groups?grouping=class")["groups"]}
    change = groups["cat"]["change_point"]
    assert change["since"] == pytest.approx(NOW - 9, rel=0, abs=1)
    assert change["labels_before"] == pytest.approx(25, abs=2)
    assert 0 < change["kept"] < 0.25
    assert groups["owl"]["change_point"] is None


def test_reliability_shows_every_bin_with_traffic(client: Client) -> None:
    bins = client.get("/m/reliability?grouping=class&group=dog")["bins"]
    assert [(b["lower_edge"], b["upper_edge"], b["share"]) for b in bins] == [
        (0.0, 0.5, 0.25),
        (0.5, 1.0, 0.75),
    ]
    assert all(b["accuracy"]["lower"] < b["accuracy"]["mean"] < b["accuracy"]["upper"] for b in bins)


def test_drift_shows_the_shares_of_every_bin_then_and_now(client: Client) -> None:
    client.board["new"] = drifting()
    result = client.get("/new/drift?grouping=class&group=dog")
    dogs = client.get("/new/groups?grouping=class&sort=drift")["groups"][0]
    state = client.get("/new")
    del client.board["new"]
    assert [(b["reference"], b["recent"]) for b in result["bins"]] == [(0.1, 0.6), (0.9, 0.4)]
    assert (result["reference_predictions"], result["recent_predictions"]) == (1_000, 1_000)
    assert result["drifted"]
    assert "its scores differ" in result["sentence"]
    assert (dogs["group"], dogs["drifted"], dogs["drift_score"]) == ("dog", True, result["drift_score"])
    assert {one["name"]: one["drifted"] for one in state["groupings"]}["class"] == 1
    assert "class dog" in state["drift"]["sentence"]


def test_a_group_that_has_not_drifted_is_not_accused(client: Client) -> None:
    client.board["new"] = drifting()
    result = client.get("/new/drift?grouping=class&group=cat")
    del client.board["new"]
    assert not result["drifted"]
    assert "has not drifted" in result["sentence"]


def test_without_a_reference_it_is_told_how_far_it_is(client: Client) -> None:
    state = client.get("/m")
    assert state["drift"]["reference_predictions"] is None
    assert "of 10,000 predictions so far" in state["drift"]["sentence"]
    assert client.get("/m/groups?grouping=class")["groups"][0]["drifted"] is None
    assert client.ask("/api/v1/models/m/drift?grouping=class&group=dog")[0] == 404


def test_a_grouping_that_the_reference_does_not_have_is_not_compared_with_it(client: Client) -> None:
    taken = drifting()
    assert taken.drift is not None
    others = {name: result for name, result in taken.drift.groupings.items() if name != "class"}
    client.board["new"] = replace(taken, drift=replace(taken.drift, groupings=others))
    status, problem, _ = client.ask("/api/v1/models/new/drift?grouping=class&group=dog")
    dogs = client.get("/new/groups?grouping=class&sort=drift")["groups"][0]
    state = client.get("/new")
    del client.board["new"]
    assert status == 404
    assert "was added later" in problem["detail"]
    assert (dogs["drifted"], dogs["drift_score"]) == (None, None)
    assert {one["name"]: one["drifted"] for one in state["groupings"]}["class"] == 0


def test_groups_and_attributes_tell_what_of_their_traffic_is_in_other(client: Client) -> None:
    taken = snapshot()
    classes = replace(taken.groupings["class"], missed=np.array([0.0, 0.12, 0.0]))
    client.board["new"] = replace(
        taken,
        groupings={**taken.groupings, "class": classes},
        attributes={"customer": AttributeTraffic(values=1_000, limit=1_000, other_share=0.07)},
    )
    groups = client.get("/new/groups?grouping=class")["groups"]
    state = client.get("/new")
    del client.board["new"]
    assert {group["group"]: group["missed_traffic"] for group in groups} == {"cat": 0, "dog": 0.12, "owl": 0}
    assert state["attributes"] == [
        {"attribute": "customer", "values": 1_000, "limit": 1_000, "other_share": 0.07}
    ]


def test_a_timeline_ends_with_what_is_estimated_now(client: Client) -> None:
    points = client.get("/m/timeline?grouping=class&group=dog")["points"]
    assert [p["time"] for p in points] == [NOW - 3_500, NOW - 2_500, NOW - 1_500, NOW]
    assert [p["labels"] for p in points] == [0, 33, 67, 100]
    mean = taken().groupings["class"].accuracy.mean[1]
    assert points[-1]["accuracy"]["mean"] == pytest.approx(mean)


def test_the_confusion_matrix_has_intervals_and_rows_that_add_up(client: Client) -> None:
    matrix = client.get("/m/confusion")
    assert matrix["classes"] == CLASSES
    for row in matrix["rows"]:
        assert sum(entry["mean"] for entry in row["classes"]) == pytest.approx(1)
        assert all(e["lower"] <= e["mean"] <= e["upper"] for e in row["classes"])
    assert (matrix["mistakes"][0]["predicted"], matrix["mistakes"][0]["true"]) == ("dog", "cat")


def test_of_many_classes_those_that_are_confused_are_shown(client: Client) -> None:
    matrix = client.get("/m/confusion?classes=2")
    assert matrix["classes"] == ["cat", "dog"]
    assert matrix["omitted"] == 1


def test_requests_and_labels_of_late_are_listed(client: Client) -> None:
    activity = client.get("/m/activity")
    assert [r["request_id"] for r in activity["requests"]] == ["x"]
    assert len(activity["labels"]) == 50
    assert sum(b["correct"] + b["incorrect"] for b in activity["flow"]) == 300


def test_a_prediction_that_labellers_are_not_to_know_is_not_reported_before_the_label(client: Client) -> None:
    (hidden,) = client.get("/m/activity")["requests"]
    assert (hidden["predicted_class"], hidden["score"]) == (None, None)
    assert hidden["group"] is None, "its score bin would narrow it"


def test_a_group_that_shows_nothing_of_the_prediction_is_reported_with_the_request(client: Client) -> None:
    client.board["new"] = snapshot(assessments={"whole": {"grouping": "all", "budget": BUDGET}})
    (result,) = client.get("/new/activity")["requests"]
    del client.board["new"]
    assert result["group"] == "[0.5,1]"
    assert result["predicted_class"] is None


def test_a_prediction_that_labellers_are_shown_is_reported_with_the_request(client: Client) -> None:
    shown = {"metric": "overall_accuracy", "budget": BUDGET, "reveal_prediction": True}
    client.board["new"] = snapshot(assessments={"whole": shown})
    (revealed,) = client.get("/new/activity")["requests"]
    del client.board["new"]
    assert (revealed["group"], revealed["predicted_class"], revealed["score"]) == ("[0.5,1]", "cat", 0.9)


def test_groups_are_counted_by_what_is_known_of_them(client: Client) -> None:
    by_class = next(g for g in client.get("/m")["groupings"] if g["name"] == "class")
    verdicts = [g["verdict"] for g in client.get("/m/groups?grouping=class")["groups"]]
    assert (by_class["meets"], by_class["open"]) == (verdicts.count("meets"), verdicts.count("open"))
    assert verdicts.count("fails") == 1


def test_without_labels_enough_nothing_is_found(client: Client) -> None:
    client.board["new"] = snapshot(9, alerts={"min_accuracy": 0.99, "max_ece": 0.01, "min_labels": 40})
    state, table = client.get("/new"), client.get("/new/groups?grouping=class")
    del client.board["new"]
    assert state["problems"] == []
    assert state["headline"]["status"] == "ok"
    assert {g["verdict"] for g in table["groups"]} == {"open"}
    assert all(g["verdict_labels"] > 30 for g in table["groups"])


@pytest.mark.parametrize(("labels", "affordable"), [(1, False), (100, True), (None, None)])
def test_a_verdict_that_would_take_over_ten_years_is_not_affordable(
    client: Client, labels: int | None, affordable: bool | None
) -> None:
    budget = BUDGET if labels is None else {"labels": labels, "per_days": 365}
    whole = {"metric": "overall_accuracy", "budget": budget}
    client.board["new"] = snapshot(5, alerts={"min_accuracy": 0.8}, assessments={"whole": whole})
    groups = client.get("/new/groups?grouping=class")["groups"]
    del client.board["new"]
    (owl,) = [group for group in groups if group["group"] == "owl"]
    assert owl["verdict_affordable"] is affordable
    assert (owl["verdict_seconds"] is not None) is bool(affordable)
    assert owl["verdict_labels"] > 0


def test_of_very_many_problems_the_most_severe_are_reported_and_all_are_counted(client: Client) -> None:
    many = [f"c{i}" for i in range(80)] + ["cat", "dog"]
    client.board["new"] = snapshot(20, classes=many, alerts={"min_accuracy": 0.999})
    state = client.get("/new")
    del client.board["new"]
    assert state["headline"]["problem_count"] > len(state["problems"]) == 50
    severities = [one["severity"] for one in state["problems"]]
    assert severities == sorted(severities, key=["critical", "warning", "info"].index)
    assert next(one for one in state["problems"] if one["severity"] == "warning")["grouping"] == "all"


def test_an_estimation_shows_what_it_knows_least(client: Client) -> None:
    whole = next(one for one in client.get("/m")["assessments"] if one["name"] == "whole")
    assert whole["found"].startswith("Most uncertain: [0")


def test_who_has_an_answer_is_not_sent_it_again(client: Client) -> None:
    path = "/api/v1/models/m/groups?grouping=class"
    etag = client.ask(path)[2]["etag"]
    assert client.ask(path, **{"If-None-Match": etag})[:2] == (304, None)
    client.board["m"] = snapshot(99, alerts=ALERTS)
    object.__setattr__(client.board["m"], "taken_at", NOW + 5)
    assert client.ask(path, **{"If-None-Match": etag})[0] == 200
    client.board["m"] = taken()


@pytest.mark.parametrize(
    "path",
    [
        "/nobody",
        "/new",
        "/m/groups?grouping=none",
        "/m/reliability?grouping=class&group=yak",
        "/m/timeline?grouping=none&group=dog",
        "/m/drift?grouping=class&group=yak",
    ],
)
def test_what_is_not_there_is_not_found_and_not_repeated(client: Client, path: str) -> None:
    status, body, _ = client.ask(f"/api/v1/models{path}")
    assert status == 404
    assert "yak" not in body["detail"]


@pytest.mark.parametrize("query", ["sort=beauty", "limit=0", "limit=1001", "order=up", "offset=-1"])
def test_impossible_questions_are_refused(client: Client, query: str) -> None:
    assert client.ask(f"/api/v1/models/m/groups?grouping=class&{query}")[0] == 422


def test_the_weakest_group_of_a_grouping_is_told_in_words_and_numbers(client: Client) -> None:
    weakest = {one["name"]: one["weakest"] for one in client.get("/m")["groupings"]}
    found = weakest["class"]
    assert weakest["all"] is weakest["score_bin"] is None
    assert found["group"] == "dog"
    assert found["below"] > 0.95
    assert found["lower"] < found["accuracy"]["mean"] < found["upper"]
    assert re.fullmatch(
        r"Lowest estimate: dog, 6\d\.\d% \[.*\], adjusted for 3 groups\. "
        r"The weakest group, whichever it is, is between .*% and .*%\.",
        found["sentence"],
    )


def test_the_openapi_document_describes_every_answer(client: Client) -> None:
    client.board["new"] = drifting()
    _, document, _ = client.ask("/api/v1/openapi.json")
    assert document["openapi"].startswith("3.1")
    base = document["servers"][0]["url"]
    asked = {
        "/models": "",
        "/models/{model}": "/m",
        "/models/{model}/groups": "/m/groups?grouping=class",
        "/models/{model}/reliability": "/m/reliability?grouping=class&group=dog",
        "/models/{model}/drift": "/new/drift?grouping=class&group=dog",
        "/models/{model}/timeline": "/m/timeline?grouping=class&group=dog",
        "/models/{model}/confusion": "/m/confusion",
        "/models/{model}/activity": "/m/activity",
    }
    of_performance = "/models/{model}/performance/{assessment}"
    elsewhere = {of_performance, f"{of_performance}/recalibration/{{form}}", "/pipeline"}
    assert set(document["paths"]) == set(asked) | elsewhere
    for template, path in asked.items():
        schema = document["paths"][template]["get"]["responses"]["200"]["content"]["application/json"][
            "schema"
        ]
        answer = client.ask(f"{base}/models{path}")[1]
        jsonschema.validate(answer, schema | {"components": document["components"]})
    del client.board["new"]


def test_a_model_without_traffic_has_an_answer(client: Client) -> None:
    client.board["new"] = snapshot(0, traffic=False)
    state = client.get("/new")
    assert state["accuracy"] is None
    assert state["groupings"] == []
    del client.board["new"]
