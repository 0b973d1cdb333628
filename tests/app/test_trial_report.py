"""The report of a trial, in the terminal and as a page, and what it says of random labels."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from rich.console import Console
from trial_results import group, result

from service.app.trial.answers import Answering
from service.app.trial.html_report import html_report
from service.app.trial.ledger import UNKNOWN, Ledger
from service.app.trial.random_labels import FEWEST_LABELS, random_labels
from service.app.trial.results import FEWEST_ROWS, TrialResult
from service.app.trial.terminal import E_VALUE, TRUTH, figures, print_result
from service.app.trial.view import View

HOSTILE = '<script>alert("x")</script>'


def printed(found: TrialResult) -> str:
    output = io.StringIO()
    print_result(Console(file=output, width=160), found)
    return output.getvalue()


class _Page(HTMLParser):
    """Tags of a page with their attributes, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def test_a_log_of_a_trial_has_no_line_twice_in_a_row() -> None:
    output, clock = io.StringIO(), iter(range(0, 1_000, 10))
    view = View(Console(file=output, width=160), rows=20, labels=5, clock=lambda: float(next(clock)))
    for rows in (10, 10, 10, 20):
        view.show(rows, None)
    assert output.getvalue().splitlines() == ["10 of 20 rows, 0 of 5 labels", "20 of 20 rows, 0 of 5 labels"]


def test_coverage_counts_the_intervals_that_hold_the_truth() -> None:
    assert result().coverage.startswith("1 of 2 intervals hold the truth")
    assert "1 of 2 intervals hold the truth" in printed(result())
    assert "1 of 2 intervals hold the truth" in _Page(html_report(result())).text


def test_without_noise_misses_are_compared_with_chance_and_with_noise_the_noise_is_named() -> None:
    noisy = result()
    quiet = replace(noisy, labels=replace(noisy.labels, answering=Answering()))
    assert "a miss or more in about" in quiet.coverage
    assert "--noise" in noisy.coverage
    assert "of 100 runs" not in noisy.coverage


def test_control_characters_of_a_file_do_not_reach_the_terminal() -> None:
    hostile = "\x1b[2Jnorth\nsouth"
    found = result(group(hostile, 0.9, 0.9))
    found = replace(found, reports=[hostile], random=None)
    text = printed(found)
    assert "\x1b" not in text
    assert text.count(r"\x1b[2Jnorth\nsouth") == 3


def test_a_group_with_few_rows_or_unknown_truth_is_shown_and_not_compared() -> None:
    few = group("east", 0.9, 0.2, rows=FEWEST_ROWS - 1)
    found = result(group("north", 0.9, 0.91), few, group("__other__", 0.9, None))
    assert found.coverage.startswith("1 of 1 intervals hold the truth")
    text = printed(found)
    assert f"under {FEWEST_ROWS} rows" in text
    assert "not known" in text


def test_without_any_truth_the_report_says_so() -> None:
    found = replace(result(group("north", 0.9, None)), random=None)
    assert "not known: no group has 100 rows with a true class" in printed(found)
    assert "The truth is not known." in _Page(html_report(found)).text


def test_the_lowest_group_is_named_although_nothing_is_reported_of_it() -> None:
    named = dict(figures(result(group("north", 0.9, 0.91), group("south", 0.83, 0.7))))
    assert named["groups reported"].startswith("none")
    assert named["lowest estimate"].startswith(
        "region south: 83.0% (78.0% to 88.0%); open whether it is below"
    )
    high = dict(figures(result(group("north", 0.95, 0.91), group("south", 0.93, 0.7))))
    assert high["lowest estimate"] == "region south: 93.0% (88.0% to 98.0%)"


def test_notes_about_the_file_are_in_the_page() -> None:
    noted = replace(result(), rows=replace(result().rows, notes=["970 of 1,000 rows have no true class"]))
    assert "970 of 1,000 rows have no true class" in _Page(html_report(noted)).text


def test_random_labels_are_compared_by_number_and_with_a_cost_by_cost() -> None:
    text = printed(result(cost=0.5))
    assert (
        "200 until region south has 40 labels, as it has of these 100 (90% of random orders: 182 to 236); "
        "100.00 instead of 50.00"
    ) in text
    assert "instead of" not in printed(result())


def test_both_reports_say_what_is_compared_and_what_comes_next() -> None:
    for text in (printed(result()), _Page(html_report(result())).text):
        assert TRUTH in text
        assert "credence check --config trial.yaml" in text
        assert "invalid_field" in text


def test_the_page_loads_nothing_and_runs_nothing() -> None:
    text = html_report(result())
    page = _Page(text)
    assert {tag for tag, _ in page.tags}.isdisjoint({"script", "link", "img", "iframe", "object"})
    assert not [attrs for _, attrs in page.tags if attrs.keys() & {"src", "href", "style", "onclick"}]
    assert not re.search(r"https?://|url\(|@import", text)


def test_names_of_others_are_text_on_the_page() -> None:
    found = replace(result(group(HOSTILE, 0.9, 0.9)), source=HOSTILE, model=HOSTILE, reports=[HOSTILE])
    page = _Page(html_report(found))
    assert "script" not in {tag for tag, _ in page.tags}
    assert page.text.count(HOSTILE) >= 4


def test_the_page_can_be_read_without_its_pictures_and_colours() -> None:
    page = _Page(html_report(result()))
    assert ("html", {"lang": "en"}) in page.tags
    assert [attrs for tag, attrs in page.tags if tag == "svg" and attrs["aria-hidden"] != "true"] == []
    assert all(attrs.get("scope") in {"col", "row"} for tag, attrs in page.tags if tag == "th")
    assert sum(tag == "caption" for tag, _ in page.tags) == 1
    assert "85.0% to 95.0%" in page.text
    assert "prefers-color-scheme: dark" in page.text


def stationary_ledger(rows: int, *, weak_share: float) -> Ledger:
    rng = np.random.default_rng(5)
    weak = rng.random(rows) < weak_share
    right = rng.random(rows) < np.where(weak, 0.7, 0.95)
    ledger = Ledger(["no", "yes"], ["camera"])
    ledger.add(
        items=[f"i{row}" for row in range(rows)],
        predicted=[1] * rows,
        scores=np.where(weak, 0.8, 0.93).tolist(),
        true=right.astype(int).tolist(),
        groups={"camera": ["dock" if each else "gate" for each in weak]},
    )
    return ledger


DOCK = group("dock", 0.7, None, grouping="camera")


def test_random_labels_are_as_many_times_more_as_the_weakest_group_is_rare() -> None:
    ledger = stationary_ledger(20_000, weak_share=0.1)
    rows = ledger.members("camera")
    dock = np.flatnonzero(rows.groups == rows.names.index("dock"))
    found = random_labels(ledger, [f"i{row}" for row in dock[:100]], DOCK)
    assert found is not None
    assert (found.group, found.own, found.labels) == ("camera dock", 100, 100)
    # The mean of a negative hypergeometric distribution.
    assert np.mean(found.needed) == pytest.approx(100 * 20_001 / (len(dock) + 1), rel=0.05)


def test_labels_drawn_at_random_need_about_as_many_random_labels() -> None:
    ledger = stationary_ledger(20_000, weak_share=0.3)
    found = random_labels(ledger, [f"i{row}" for row in range(400)], DOCK)
    assert found is not None
    # 120 labels of the group, with a standard deviation of 9.
    assert np.median(found.needed) == pytest.approx(400, rel=0.25)


def test_nothing_is_said_of_random_labels_without_labels_of_known_truth() -> None:
    ledger = Ledger(["no", "yes"], ["camera"])
    ledger.add(items=["a"], predicted=[1], scores=[0.9], true=[UNKNOWN], groups={"camera": ["dock"]})
    assert random_labels(ledger, ["a"], DOCK) is None
    assert random_labels(ledger, ["nobody's"], DOCK) is None


def test_random_labels_are_not_compared_with_a_handful_of_labels() -> None:
    ledger = stationary_ledger(2_000, weak_share=0.3)
    rows = ledger.members("camera")
    dock = [f"i{row}" for row in np.flatnonzero(rows.groups == rows.names.index("dock"))]
    assert random_labels(ledger, dock[: FEWEST_LABELS - 1], DOCK) is None
    assert random_labels(ledger, dock[:FEWEST_LABELS], DOCK) is not None
    found = dict(figures(replace(result(), random=None)))
    assert found["labels drawn at random"].startswith("not compared: the group with the lowest estimate")


def test_an_e_value_is_explained_where_a_report_has_one() -> None:
    confirmed = replace(result(), reports=["Accuracy below target: region = south. Confirmed (e-value 40)."])
    for text in (printed(confirmed), _Page(html_report(confirmed)).text):
        assert E_VALUE in text
    for text in (printed(result()), _Page(html_report(result())).text):
        assert E_VALUE not in text


def test_why_no_command_sends_the_file_is_in_both_reports() -> None:
    found = result()
    unsent = replace(found, next=replace(found.next, note="No command sends this file"))
    for text in (printed(unsent), _Page(html_report(unsent)).text):
        assert "No command sends this file" in text
