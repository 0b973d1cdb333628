"""`credence replay --task rates`: with how many labels groups are shown to differ in their error rates."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from replay_examples import recording

from service.domain.errors import RecordingError
from service.replay.command import replay
from service.replay.grouping import Grouper
from service.replay.options import add_parser
from service.replay.rate_runs import RateItems, RateQuestion, run_rates, true_rates
from service.replay.rates_command import rate_items
from service.statistics.rates.measures import RATES
from service.statistics.rates.strata import RateLabels, RateStrata

SIZES = {"east": 900, "west": 600}
FALSE_POSITIVE = {"east": 0.6, "west": 0.2}


def save(folder: Path, *, alike: bool = False) -> Path:
    """Two classes, half of the items each; both groups have a recall of 0.8."""
    labels, predicted, region = [], [], []
    for name, size in SIZES.items():
        truth = np.arange(size) % 2
        wrong = np.where(truth == 1, 0.2, FALSE_POSITIVE["west" if alike else name])
        ranks = (np.arange(size) // 2 + 0.5) / (size / 2)
        labels.append(truth)
        predicted.append(np.where(ranks < wrong, 1 - truth, truth))
        region += [name] * size
    called = np.concatenate(predicted)
    scores = np.where(called == 1, 0.7, 0.3)
    file = folder / "made.npz"
    np.savez(file, probabilities=np.c_[1 - scores, scores], labels=np.concatenate(labels), region=region)
    return file


def run(file: Path, *words: object) -> int:
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    options = ["replay", str(file), "--task", "rates", "--group-by", "region", *map(str, words)]
    code: int = replay(parser.parse_args(options))
    return code


def tables(capsys: pytest.CaptureFixture[str]) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
    """Rows of both tables, by their names."""
    true, labels = json.loads(capsys.readouterr().out)
    return (
        {row["group"]: row for row in true["rows"]},
        {next(iter(row.values())): row for row in labels["rows"]},
    )


def test_rates_and_gaps_are_those_of_all_labels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(save(tmp_path), "--runs", 1, "--budget", 2, "--json") == 0
    true, _ = tables(capsys)
    assert true["east"]["false positive rate"] == pytest.approx(60)
    assert true["west"]["false positive rate"] == pytest.approx(20)
    assert true["east"]["true positive rate"] == pytest.approx(80)
    assert true["difference"]["false positive rate"] == pytest.approx(40)
    assert true["ratio"]["false positive rate"] == pytest.approx(100 / 3)
    assert true["ratio"]["true positive rate"] == pytest.approx(100)


def test_a_gap_is_confirmed_with_fewer_labels_if_they_are_aimed_at_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(save(tmp_path), "--runs", 20, "--json") == 0
    _, labels = tables(capsys)
    assert labels["aimed"]["confirmed, %"] == labels["plain"]["confirmed, %"] == 100
    assert labels["aimed"]["labels, mean"] < labels["plain"]["labels, mean"]


def test_no_gap_is_confirmed_of_groups_that_are_alike(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(save(tmp_path, alike=True), "--runs", 20, "--budget", 300, "--json") == 0
    _, labels = tables(capsys)
    assert all(row["confirmed, %"] == 0 for row in labels.values())


def test_groups_that_miss_a_limit_are_confirmed_and_others_are_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(save(tmp_path), "--threshold", 0.4, "--runs", 10, "--budget", 400, "--json") == 0
    _, labels = tables(capsys)
    assert labels["east"]["aimed, confirmed, %"] == 100
    assert labels["west"]["aimed, confirmed, %"] == 0


def test_the_limit_of_a_recall_is_the_least(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--rate", "true_positive_rate", "--threshold", 0.95, "--runs", 5, "--budget", 400)
    assert run(save(tmp_path), *words) == 0
    assert "2 of 2 groups miss the limit: east, west" in " ".join(capsys.readouterr().out.split())


@given(seed=st.integers(0, 200), bins=st.integers(1, 4), positive=st.integers(0, 2))
def test_rates_do_not_depend_on_the_strata(seed: int, bins: int, positive: int) -> None:
    made = recording([40, 30, 50], seed)
    items = rate_items(Grouper().all(made), positive, bins, "equal_size")
    selected, true = made.predicted == positive, made.labels == positive
    assert true_rates(items, RATES["precision"])[0] == pytest.approx((selected & true).sum() / selected.sum())
    assert true_rates(items, RATES["false_positive_rate"])[0] == pytest.approx(
        (selected & ~true).sum() / (~true).sum()
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--threshold", 1], "limit of a rate"),
        (["--budget", 10_000], "lower --budget"),
        (["--plots", "figures"], "draws nothing"),
    ],
)
def test_what_cannot_be_answered_about_rates_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[object], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    file = save(tmp_path)
    with pytest.raises(RecordingError, match=said):
        run(file, *words)


def test_no_item_is_labelled_twice_where_the_only_undecided_group_is_used_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A small group that its items leave undecided, beside a large one that is soon confirmed."""
    counts = np.array([[2.0, 2.0], [150.0, 150.0]])
    strata = RateStrata.of_items(counts, 0.5 * counts, np.array([False, True]))
    items = RateItems(strata, np.array([[0.0, 2.0], [15.0, 20.0]]))
    add = RateLabels.add

    def counted(labels: RateLabels, *drawn: Any) -> None:
        add(labels, *drawn)
        assert np.all(labels.labels <= counts)

    monkeypatch.setattr(RateLabels, "add", counted)
    question = RateQuestion(RATES["false_positive_rate"], limit=0.3)
    ends = run_rates(items, question, "aimed", runs=3, budget=304, rng=np.random.default_rng(0))
    assert np.all(np.isfinite(ends.groups[:, 1]))
    assert np.all(np.isinf(ends.groups[:, 0]))
