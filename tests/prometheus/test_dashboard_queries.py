"""Every query of every dashboard gives data, asked of a real Prometheus that scrapes a real Credence."""

from __future__ import annotations

import html
import itertools
import json
import math
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
import yaml
from harness import Deploy, Deployment, Labeller, prediction, wait_for
from missing_programs import program
from monitoring_servers import Prometheus, scrape
from vendor_labelled import VendorLabelled

from deploy.grafana.preview.drawing import page
from deploy.grafana.preview.source import Source
from deploy.grafana.queries import (
    ALL,
    Board,
    DashboardQuery,
    Values,
    annotation_queries,
    boards,
    filled_in,
    panel_queries,
    panels,
)

BOARDS = boards()
RULES = Path(__file__).parents[2] / "deploy" / "prometheus"

ASSESSMENTS = """
      weakest: {task: identification, grouping: region, budget: {labels: 5000, per_days: 1, burst: 1}}
      classes: {task: estimation, grouping: class, budget: {labels: 5000, per_days: 1, burst: 1}}
      both:
        task: comparison
        grouping: region
        between: [north, south]
        budget: {labels: 5000, per_days: 1, burst: 1}
"""
ALERTS = """alerts: {min_accuracy: 0.9, max_ece: 0.01}
    reference: {labels: 5}
    evidence: {alpha: 0.5}
    forgetting: {run_length: 100}
    # The prior that is learned takes most of a round.
    prior: informed_jeffreys
    # The newest items are drawn, so that a change is one in the order of predictions as in that of requests.
    draw_half_life_hours: 0.002
    costs: {default: 1, mistakes: [{true: owl, predicted: cat, cost: 5}]}
    # More than is sent at first, so that it takes a time that is known.
    drift: {reference_predictions: 1000, window_hours: 0.005}"""

RATE_INTERVAL = "10s"
# A counter that appears between two scrapes has no rate before it grows, and an alert wants labels enough, so
# these are waited for under way.
GOOD_TIME = 'credence_group_evidence_labels{group="south"} >= 30'
"""As long as that takes the model is always right, so that its decline is clear when it is not."""

RATES = (
    f"sum(rate(credence_label_delay_seconds_count[{RATE_INTERVAL}])) > 0",
    f"sum(rate(credence_flush_duration_seconds_count[{RATE_INTERVAL}])) > 0",
)
COMES_AND_GOES = (
    'ALERTS{alertstate="firing",alertname="CredenceGroupAccuracyLow",group="south"}',
    "credence_group_volume_ratio",
    'credence_group_confirmed_change_timestamp_seconds{group="south"}',
    'credence_group_change_point_timestamp_seconds{group="south"}',
    'credence_group_evidence_labels{group="north"}',
    'credence_requests_oldest_timestamp_seconds{model="sorter"}',
)
"""What labels and traffic bring, they may take back: all of it is to be there at one moment, in the end."""

OF_AGREEMENT = ("credence_vendor_agreement_mean_ratio", "credence_label_alpha_mean")
"""The first label that differs from the prediction takes these back, until such an item has a second one."""

ALL_IS_THERE = (
    "credence_model_selection_bias_mean_ratio",
    "credence_dead_letters_total",
    'count(credence_snapshot_timestamp_seconds{model="sorter"}) == 2',
)
OF_VENDORS = (
    "credence_performance_labels >= 20",
    "credence_performance_best_threshold_ratio",
    'measure:credence_performance_target_missed_probability:evident{measure="recall"}',
    "model:credence_performance_age_seconds:max < 30",
    "model:credence_performance_failures:increase5m == 0",
    'credence_ensemble_member_target_missed_probability{member="lenient"}',
    'credence_challenge_labels{grouping="site",group="east"} >= 3',
    'credence_error_rate_labels{group="east"} >= 3',
    *OF_AGREEMENT,
    "credence_label_error_bound_correct_ratio",
    "credence_label_error_bound_incorrect_ratio",
    "credence_vendor_reliability_below_threshold_probability",
    "credence_vendor_api_waits",
    f"rate(credence_vendor_labels_total[{RATE_INTERVAL}])",
    f"rate(credence_vendor_claims_total[{RATE_INTERVAL}])",
)

CLAIMS = {
    "classes": ["paid", "refused"],
    "unrequested_labels": {"items": "unknown", "wait_days": 0.05},
}


def send_claims(deployment: Deployment) -> None:
    """Predictions of an hour that may close, of which the accepted ones have labels that nobody requested."""
    arrived = int(1_000 * (time.time() - 3 * 3_600))
    for number in range(40):
        item = {"model": "claims", "item_id": f"claim-{number}"}
        predicted = {"predicted_class": "refused" if number % 4 else "paid", "score": 0.8}
        value = json.dumps(item | predicted).encode()
        topic = deployment.settings.kafka.topics.predictions
        deployment.producer.send(topic, value, key=item["item_id"].encode(), timestamp_ms=arrived)
        if number % 4 == 0:
            label = item | {"true_class": "paid" if number % 8 else "refused"}
            deployment.send("labels", json.dumps(label).encode(), item["item_id"])
    recent = {"model": "claims", "item_id": "claim-now", "predicted_class": "paid", "score": 0.8}
    deployment.send("predictions", json.dumps(recent).encode(), "claim-now")  # its hour does not close yet
    deployment.producer.flush()


OF_TARGETS = (
    "credence_group_accuracy_below_threshold_probability",
    "credence_group_min_accuracy_ratio",
    "credence_group_labels_to_decision",
    "credence_group_time_to_decision_seconds",
    "credence_grouping_traffic_share_",
    "credence_grouping_weakest_",
)

OF_ANNOTATORS = (
    "credence_vendor_reliability_",
    "credence_vendor_agreement_",
    "credence_vendor_annotators",
    "credence_vendor_answer_",
    "credence_vendor_gold_",
    "credence_label_a",
    "credence_label_error_",
    "credence_alert_min_reliability_",
)

OF_EVIDENCE = (
    "credence_group_evidence_",
    "credence_group_confirmed_change_",
    "credence_group_accuracy_confidence_sequence_",
    "credence_group_change_point_",
)


@dataclass(frozen=True)
class Scraped:
    """A Prometheus that has scraped two replicas for some seconds."""

    prometheus: Prometheus
    since: float
    until: float

    @property
    def built_in(self) -> dict[str, str]:
        """What Grafana would fill in for this range of time."""
        seconds = f"{math.ceil(self.until - self.since)}s"
        return {"__range": seconds, "__rate_interval": RATE_INTERVAL, "__interval": "1s"}

    def values(self, board: Board, query: DashboardQuery, chosen: Values) -> list[list[float]]:
        """The finite values of every series that a query gives."""
        expression = filled_in(query.expression, board, chosen, self.built_in)
        if query.instant:
            result = self.prometheus.get("query", query=expression, time=str(self.until))["result"]
            samples = [[series["value"]] for series in result]
        else:
            # The last step is now, as conditions that were waited for hold now.
            start = self.until - math.floor(self.until - self.since)
            span = {"start": str(start), "end": str(self.until), "step": "1"}
            result = self.prometheus.get("query_range", query=expression, **span)["result"]
            samples = [series["values"] for series in result]
        columns = ([float(value) for _, value in series] for series in samples)
        finite = ([value for value in column if math.isfinite(value)] for column in columns)
        return [column for column in finite if column]

    def options(self, board: Board, name: str, chosen: Values) -> list[str]:
        """The values that a variable offers, in their order."""
        return self.source(board, chosen).options(name)

    def source(self, board: Board, chosen: Values) -> Source:
        """What the preview of a dashboard asks."""
        return Source(self.prometheus.url, board, self.until, self.until - self.since, chosen)


def _rules_without_delay(folder: Path) -> list[str]:
    """The rules as they are shipped, but alerts fire at once: the test has seconds, not minutes."""
    paths = []
    for source in sorted(RULES.glob("credence.*.yaml")):
        rules = yaml.safe_load(source.read_text(encoding="utf-8"))
        if "groups" not in rules:
            continue
        for group in rules["groups"]:
            group["interval"] = "1s"
            for rule in group["rules"]:
                rule.pop("for", None)
        paths.append(folder / source.name)
        paths[-1].write_text(yaml.safe_dump(rules))
    return [str(path) for path in paths]


@pytest.fixture(scope="module")
def scraped(module_deploy: Deploy, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scraped]:
    """All metrics that there are: labels were asked and answered, one message was bad, an alert fires."""
    program("prometheus", package="prometheus")
    labelled = VendorLabelled(module_deploy)
    deployment = module_deploy(tick=0.5, assessments=ASSESSMENTS)
    before, alerts, after = deployment.config.read_text().partition("alerts: {min_accuracy: 0.8}")
    assert alerts
    document = yaml.safe_load(f"{before}{ALERTS}{after}")
    document["models"]["claims"] = CLAIMS
    deployment.config.write_text(yaml.safe_dump(document, sort_keys=False))
    labeller = Labeller(deployment)
    folder = tmp_path_factory.mktemp("prometheus")
    with ExitStack() as stack:
        replicas = [stack.enter_context(deployment.process(command)) for command in ("run", "serve")]
        replicas.append(stack.enter_context(labelled.deployment.process("run")))
        targets = [f"127.0.0.1:{replica.port}" for replica in replicas]
        config = {
            "rule_files": _rules_without_delay(folder),
            "scrape_configs": [scrape("credence", targets)],
        }
        since = time.time()
        prometheus = stack.enter_context(Prometheus(folder, config))
        for replica in replicas:
            wait_for(replica.ready, seconds=40, what="ready")
        send_claims(deployment)  # first, as no record counts as older than one before it
        deployment.send("predictions", b"{", "a-key")
        deployment.send_predictions(range(600))
        labelled.send(range(400))
        fresh = itertools.count(600, 10)

        def go_on() -> None:
            first = next(fresh)
            deployment.send_predictions(range(first, first + 10))

        def holds_under_way(expression: str) -> bool:
            go_on()
            labeller.answer()
            return bool(prometheus.query(expression))

        truth, labeller.truth = labeller.truth, lambda number: str(prediction(number)["predicted_class"])
        wait_for(partial(holds_under_way, GOOD_TIME), seconds=120, what=GOOD_TIME)
        labeller.truth = truth
        for expression in (*RATES, *COMES_AND_GOES):
            wait_for(partial(holds_under_way, expression), seconds=120, what=expression)

        def vendors_answer(expression: str) -> bool:
            go_on()  # or there would be no recent traffic in the end
            labelled.answer()
            return bool(prometheus.query(expression))

        for expression in OF_VENDORS:
            wait_for(partial(vendors_answer, expression), seconds=120, what=expression)
        for expression in ALL_IS_THERE:
            wait_for(partial(prometheus.query, expression), seconds=120, what=expression)

        def moment_of_all() -> float | None:
            go_on()
            now = time.time()
            here = (*COMES_AND_GOES, *OF_AGREEMENT)
            if all(prometheus.query(expression, time=str(now)) for expression in here):
                return now
            labeller.answer()
            labelled.answer()
            return None

        until = wait_for(moment_of_all, seconds=120, what="all at one moment")
        yield Scraped(prometheus, since, until)


REGIONS = {"job": ALL, "model": "sorter", "grouping": "region", "group": ["south", "north"]}
# Names full of characters that mean something in a regular expression.
SCORE_BINS = {
    "job": ["credence", "another"],
    "model": "sorter",
    "grouping": "score_bin",
    "group": ["[0.5,0.6)", "[0.9,1]"],
}
BINARY = {
    "job": ALL,
    "model": "mail",
    "grouping": "all",
    "group": ["all"],
    "assessment": "filter",
    "ensemble": "pool",
}
CROWD = {"job": ALL, "model": "crowd", "grouping": "all", "group": ["all"]}
OF_CLAIMS = {"job": ALL, "model": "claims", "grouping": "all", "group": ["all"]}
CONTEST = {
    "job": ALL,
    "model": "contest",
    "grouping": "all",
    "group": ["all"],
    "challenge": "next",
    "rates": "fair",
}


def _chosen_one_by_one(query: DashboardQuery, chosen: Values) -> Iterator[Values]:
    if not query.repeated:
        yield chosen
    else:
        for value in chosen[query.repeated]:
            yield {**chosen, query.repeated: value}


def _asked_of_a_target(query: DashboardQuery) -> bool:
    """Score bins have no target: what the model is unsure of it may get wrong."""
    return "$grouping" in query.expression and any(name in query.expression for name in OF_TARGETS)


def _choices(query: DashboardQuery) -> list[Values]:
    if _asked_of_a_challenge(query):
        return [CONTEST]
    if _asked_of_annotators(query):
        return [CROWD]
    if "credence_model_selection_bias_" in query.expression or "credence_unrequested_" in query.expression:
        return [OF_CLAIMS]
    if _asked_of_performance(query) or _asked_of_an_ensemble(query):
        return [BINARY]
    of_regions = _asked_of_a_target(query) or _asked_of_evidence(query)
    return [REGIONS] if of_regions else [REGIONS, SCORE_BINS]


def _asked_of_evidence(query: DashboardQuery) -> bool:
    """No assessment of that model asks for labels by score bin."""
    return any(name in query.expression for name in OF_EVIDENCE)


def _asked_of_annotators(query: DashboardQuery) -> bool:
    return any(name in query.expression for name in OF_ANNOTATORS)


def _asked_of_performance(query: DashboardQuery) -> bool:
    return "$assessment" in query.expression


def _asked_of_an_ensemble(query: DashboardQuery) -> bool:
    return "$ensemble" in query.expression


def _asked_of_a_challenge(query: DashboardQuery) -> bool:
    return "$challenge" in query.expression or "$rates" in query.expression


CASES = [
    pytest.param(board, query, chosen, id=f"{query.where}: {chosen['grouping']}")
    for board in BOARDS.values()
    for query in (*panel_queries(board), *annotation_queries(board))
    for chosen in _choices(query)
]


@pytest.mark.parametrize(("board", "query", "chosen"), CASES)
def test_every_query_gives_data(
    scraped: Scraped, board: Board, query: DashboardQuery, chosen: Values
) -> None:
    for one in _chosen_one_by_one(query, chosen):
        assert scraped.values(board, query, one), filled_in(query.expression, board, one, scraped.built_in)


MODEL_BOARD = BOARDS["credence-model"]
BANDS = [
    pytest.param(query, id=query.where)
    for query in panel_queries(MODEL_BOARD)
    if query.repeated and not query.instant
]


@pytest.mark.parametrize("query", BANDS)
def test_two_replicas_are_drawn_as_one(scraped: Scraped, query: DashboardQuery) -> None:
    for one in _chosen_one_by_one(query, REGIONS):
        assert len(scraped.values(MODEL_BOARD, query, one)) == 1


def test_jobs_and_models_are_offered_as_they_are_scraped(scraped: Scraped) -> None:
    assert scraped.options(MODEL_BOARD, "job", REGIONS) == ["credence"]
    assert scraped.options(MODEL_BOARD, "model", REGIONS) == ["claims", "contest", "crowd", "mail", "sorter"]


def test_assessments_of_performance_are_offered_and_no_others(scraped: Scraped) -> None:
    assert scraped.options(MODEL_BOARD, "assessment", BINARY) == ["filter"]
    assert scraped.options(MODEL_BOARD, "assessment", REGIONS) == []


def test_assessments_of_ensembles_are_offered_and_no_others(scraped: Scraped) -> None:
    assert scraped.options(MODEL_BOARD, "ensemble", BINARY) == ["pool"]
    assert scraped.options(MODEL_BOARD, "ensemble", REGIONS) == []


def test_assessments_of_challengers_are_offered_and_no_others(scraped: Scraped) -> None:
    assert scraped.options(MODEL_BOARD, "challenge", CONTEST) == ["next"]
    assert scraped.options(MODEL_BOARD, "challenge", REGIONS) == []


OF_PERFORMANCE = [q for q in panel_queries(MODEL_BOARD) if _asked_of_performance(q)]


@pytest.mark.parametrize("query", OF_PERFORMANCE, ids=lambda query: query.where)
def test_a_model_without_assessment_of_performance_has_nothing_drawn_of_it(
    scraped: Scraped, query: DashboardQuery
) -> None:
    assert scraped.values(MODEL_BOARD, query, {**REGIONS, "assessment": ""}) == []


def test_every_measure_of_performance_has_a_row_and_those_with_targets_say_how_likely_they_are_missed(
    scraped: Scraped,
) -> None:
    rows = {
        query.expression.partition("{")[0].rpartition("_performance_")[2]: len(
            scraped.values(MODEL_BOARD, query, BINARY)
        )
        for query in OF_PERFORMANCE
        if "by (measure)" in query.expression and query.instant
    }
    assert rows == {
        "lower_ratio": 5,
        "median_ratio": 5,
        "upper_ratio": 5,
        "target_ratio": 2,
        "target_missed_probability": 2,
    }


OF_ENSEMBLES = [q for q in panel_queries(MODEL_BOARD) if _asked_of_an_ensemble(q)]


@pytest.mark.parametrize("query", OF_ENSEMBLES, ids=lambda query: query.where)
def test_a_model_without_an_ensemble_has_nothing_drawn_of_it(scraped: Scraped, query: DashboardQuery) -> None:
    assert scraped.values(MODEL_BOARD, query, {**REGIONS, "ensemble": ""}) == []


OF_LABELLERS = [q for q in panel_queries(MODEL_BOARD) if _asked_of_annotators(q)]


@pytest.mark.parametrize("query", OF_LABELLERS, ids=lambda query: query.where)
def test_a_model_whose_labels_are_the_truth_has_nothing_drawn_of_annotators(
    scraped: Scraped, query: DashboardQuery
) -> None:
    assert scraped.values(MODEL_BOARD, query, REGIONS) == []


OF_CHALLENGES = [q for q in panel_queries(MODEL_BOARD) if "$challenge" in q.expression]


@pytest.mark.parametrize("query", OF_CHALLENGES, ids=lambda query: query.where)
def test_a_model_without_a_challenger_has_nothing_drawn_of_it(
    scraped: Scraped, query: DashboardQuery
) -> None:
    assert scraped.values(MODEL_BOARD, query, {**REGIONS, "challenge": ""}) == []


def test_every_member_of_an_ensemble_has_a_line_and_a_row(scraped: Scraped) -> None:
    of_members = [query for query in OF_ENSEMBLES if "by (member)" in query.expression]
    assert len(of_members) > 6
    for query in of_members:
        assert len(scraped.values(MODEL_BOARD, query, BINARY)) == 3


def test_groupings_that_people_configured_are_offered_first(scraped: Scraped) -> None:
    offered = scraped.options(MODEL_BOARD, "grouping", REGIONS)
    assert set(offered[:2]) == {"region", "class"}
    assert set(offered[2:]) == {"all", "score_bin"}


def test_the_group_with_most_evidence_against_it_is_offered_first(scraped: Scraped) -> None:
    assert scraped.options(MODEL_BOARD, "group", REGIONS) == ["south", "north"]


def test_all_score_bins_with_traffic_are_offered(scraped: Scraped) -> None:
    bins = {"[0.5,0.6)", "[0.6,0.7)", "[0.7,0.8)", "[0.8,0.9)", "[0.9,1]"}
    assert set(scraped.options(MODEL_BOARD, "group", SCORE_BINS)) >= bins


def test_the_weak_region_is_the_worst_group_of_the_fleet(scraped: Scraped) -> None:
    fleet = BOARDS["credence-fleet"]
    worst = next(q for q in panel_queries(fleet) if q.expression.startswith("topk by (model) (1"))
    expression = filled_in(worst.expression, fleet, REGIONS, scraped.built_in)
    ((labels, probability),) = scraped.prometheus.query(expression, time=str(scraped.until))
    assert labels == {"model": "sorter", "grouping": "region", "group": "south"}
    assert probability > 0.5


@pytest.mark.parametrize("board", BOARDS.values(), ids=BOARDS)
def test_the_preview_says_what_every_panel_would(scraped: Scraped, board: Board) -> None:
    text = html.unescape(page(board, scraped.source(board, {"model": "sorter"}), scraped.until))
    source = scraped.source(board, {"model": "sorter"})
    assert [one["title"] for one in panels(board) if source.title(one["title"]) not in text] == []


def test_the_preview_has_the_weakest_group_first(scraped: Scraped) -> None:
    source = scraped.source(MODEL_BOARD, {"model": "sorter", "grouping": "region"})
    (table,) = (one for one in panels(MODEL_BOARD) if one["title"].startswith("Groups by probability"))
    first, *others = source.rows(table)
    assert list(first)[:3] == ["Group", "P(below)", "Lower"]
    assert first["Group"] == "south"
    assert {row["Group"] for row in others} == {"north"}
