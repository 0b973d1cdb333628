"""The HTTP API about the performance of binary classifiers, over HTTP."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import jsonschema
import pytest
from api_client import Client, served
from snapshots import NOW, mail, performance, snapshot

MODELS = "/api/v1/models"


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with served({"mail": mail(performance()), "young": mail(None), "m": snapshot()}) as client:
        yield client


def test_the_performance_is_reported_with_curves_and_thresholds(client: Client) -> None:
    status, shown, _ = client.ask(f"{MODELS}/mail/performance/curve")
    assert status == 200
    assert (shown["positive_class"], shown["threshold"]) == ("spam", 0.5)
    assert (shown["labels"], shown["scores"]) == (100, 100)
    assert (len(shown["curve"]), len(shown["roc"])) == (100, 101)
    # Of those that are alike the best has the highest F1, and not quite the highest probability.
    highest = max(one["met"] for one in shown["thresholds"])
    assert shown["thresholds"][shown["best"]]["met"] == pytest.approx(highest, abs=0.03)


def test_the_model_itself_shows_it_in_short(client: Client) -> None:
    (shown,) = client.ask(f"{MODELS}/mail")[1]["performances"]
    assert shown["measures"][1]["target"] == 0.9
    assert shown["measures"][1]["missed"] == performance().missed["recall"]


@pytest.mark.parametrize("form", ["platt", "beta", "isotonic"])
def test_a_map_is_a_file_with_a_name_that_tells_it_from_others(client: Client, form: str) -> None:
    status, shown, headers = client.ask(f"{MODELS}/mail/performance/curve/recalibration/{form}")
    assert (status, shown["form"]) == (200, form)
    assert headers["Content-Type"] == "application/json"
    assert headers["Content-Disposition"] == f'attachment; filename="mail-curve-{form}.json"'
    assert {"score", "probability", "lower", "upper"} == set(shown["table"][0])


@pytest.mark.parametrize(
    "path",
    [
        "/mail/performance/nothing",
        "/mail/performance/curve/recalibration/spline",
        "/mail/performance/nothing/recalibration/platt",
        "/young/performance/curve",
        "/m/performance/worst",
        "/new/performance/curve",
        "/nobody/performance/curve",
    ],
)
def test_what_is_not_known_is_not_found_and_says_why(client: Client, path: str) -> None:
    status, shown, headers = client.ask(f"{MODELS}{path}")
    assert status == 404
    assert set(shown) == {"detail"}
    assert "Content-Disposition" not in headers


@pytest.mark.parametrize("path", ["", "/recalibration/platt"])
def test_a_round_in_which_nothing_was_learned_sends_nothing_again(client: Client, path: str) -> None:
    asked = f"{MODELS}/mail/performance/curve{path}"
    tag, before = client.ask(asked)[2]["ETag"], client.board["mail"]
    client.board["mail"] = dataclasses.replace(before, taken_at=NOW + 5)
    assert client.ask(asked, **{"If-None-Match": tag})[:2] == (304, None)
    anew = dataclasses.replace(performance(), taken_at=NOW + 5)
    client.board["mail"] = dataclasses.replace(before, performances={"curve": anew})
    assert client.ask(asked, **{"If-None-Match": tag})[0] == 200
    client.board["mail"] = before


def test_the_openapi_document_describes_the_answers(client: Client) -> None:
    document = client.ask("/api/v1/openapi.json")[1]
    asked = {
        "/models/{model}/performance/{assessment}": "/mail/performance/curve",
        "/models/{model}/performance/{assessment}/recalibration/{form}": (
            "/mail/performance/curve/recalibration/beta"
        ),
    }
    for template, path in asked.items():
        answers = document["paths"][template]["get"]["responses"]
        schema = answers["200"]["content"]["application/json"]["schema"]
        jsonschema.validate(client.ask(MODELS + path)[1], schema | {"components": document["components"]})
