"""The parts of a trial: its configuration, rows, ledger, answers, and when it ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet
from samples import rows, write_csv, write_jsonl

from consumers.formats.native import decode_predictions
from service.app.files.opening import format_of, open_rows
from service.app.files.records import Made, Record
from service.app.init_command import ROW_BYTES
from service.app.proposal.profile import Profile, profile_rows
from service.app.proposal.propose import Proposal, Wishes, propose
from service.app.trial.answers import Answering, truth_plan
from service.app.trial.bad_cells import without_bad_scores
from service.app.trial.configuration import default_labels, split, trial_configuration
from service.app.trial.ledger import FileTruth
from service.app.trial.rows import TrialRows
from service.app.trial.settling import Counts, Settling
from service.app.trial.stream import Pace, packed
from service.config.document import Document
from service.config.loader import settings_of
from service.config.settings import Settings
from service.demo.configuration import Places
from service.demo.desk import Desk
from service.domain.cells import MISSING
from service.domain.errors import BadMessage
from service.domain.messages import LabelRequest

PLACES = Places("127.0.0.1:1", "redis://127.0.0.1:2/0", 3, 4)
NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


def profiled(path: Path) -> Profile:
    kind = format_of(str(path))
    assert kind is not None
    with open_rows(str(path), kind=kind, delimiter=",", row_bytes=ROW_BYTES, used=set) as table:
        return profile_rows(table, str(path), most_rows=None, model=None, model_column="model")


def proposed(path: Path, **columns: str) -> tuple[Profile, Proposal]:
    profile = profiled(path)
    return profile, propose(profile, Wishes(columns))


def settings(proposal: Proposal, *, labels: int = 30, desk: Desk | None = None) -> Settings:
    content = trial_configuration(proposal, PLACES, labels=labels, delay_seconds=2.0, desk=desk)
    return settings_of(Document(content), "the trial", {})


class Trying:
    """What a trial makes of a file."""

    def __init__(self, path: Path, *, shows_rows: bool = False, **columns: str) -> None:
        profile, proposal = proposed(path, **columns)
        self.rows = TrialRows(settings(proposal), proposal, profile, shows_rows=shows_rows)
        kind = format_of(str(path))
        assert kind is not None
        with open_rows(
            str(path), kind=kind, delimiter=",", row_bytes=ROW_BYTES, used=self.rows.used
        ) as table:
            begun = self.rows.begin(table, str(path))
            self.made: list[Made] = [one for _, one in self.rows.make(list(begun.rows), 0.0)]

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The predictions as they are sent."""
        return [msgspec.json.decode(one.value) for one in self.made if isinstance(one, Record)]

    @property
    def refused(self) -> list[BadMessage]:
        """Why rows are left out."""
        return [one for one in self.made if isinstance(one, BadMessage)]


@given(
    labels=st.integers(1, 10_000),
    weights=st.dictionaries(st.text("abc", min_size=1), st.integers(1, 1_000), min_size=1, max_size=8),
)
def test_a_split_gives_every_label_and_nobody_is_a_label_away_from_its_share(
    labels: int, weights: dict[str, int]
) -> None:
    parts = split(labels, weights)
    assert sum(parts.values()) == labels
    total = sum(weights.values())
    assert all(abs(parts.get(name, 0) - labels * weight / total) < 1 for name, weight in weights.items())


def test_the_assessments_of_a_trial_are_those_proposed_with_its_labels_in_their_proportions(
    tmp_path: Path,
) -> None:
    _, proposal = proposed(write_csv(tmp_path / "sorter.csv", rows()))
    (tried,) = settings(proposal, labels=30).models.values()
    (planned,) = proposal.settings.models.values()
    assert tried.assessments.keys() == planned.assessments.keys()
    assert sum(each.budget.labels for each in tried.assessments.values()) == 30
    assert {each.budget.per_days for each in tried.assessments.values()} == {None}
    assert tried.groupings == planned.groupings
    assert tried.alerts == planned.alerts


def test_a_trial_has_by_default_the_more_labels_the_more_groupings_get_them_if_the_file_answers(
    tmp_path: Path,
) -> None:
    _, few = proposed(write_csv(tmp_path / "few.csv", rows()))
    further = {f"attribute_{n}": ["ab"[row % 2] for row in range(400)] for n in range(6)}
    _, many = proposed(write_csv(tmp_path / "many.csv", rows(**further)))
    assert [default_labels(each, is_answered=True) for each in (few, many)] == [200, 480]
    assert default_labels(many, is_answered=False) == 200


def test_a_person_labels_on_the_page_of_a_vendor_whose_token_is_printed(tmp_path: Path) -> None:
    _, proposal = proposed(write_csv(tmp_path / "sorter.csv", rows()))
    desk = Desk(8_402)
    tried = settings(proposal, desk=desk)
    (vendor,) = tried.vendors.values()
    assert vendor.labelling_page
    assert tried.vendor_api.port == 8_402
    assert desk.token not in str(desk.settings)


def test_predictions_keep_their_items_and_are_of_now_whatever_time_the_file_has(tmp_path: Path) -> None:
    found = rows(20, time=["2020-01-31T12:00:00Z"] * 20)
    made = Trying(write_csv(tmp_path / "sorter.csv", found))
    assert [each["item_id"] for each in made.messages] == [row["item_id"] for row in found]
    assert not any("time" in each for each in made.messages)


def test_items_without_an_id_are_named_by_their_line(tmp_path: Path) -> None:
    found = [{name: cell for name, cell in row.items() if name != "item_id"} for row in rows(3)]
    made = Trying(write_csv(tmp_path / "sorter.csv", found))
    assert [each["item_id"] for each in made.messages] == ["line-2", "line-3", "line-4"]


def test_the_ledger_counts_what_the_file_says_of_every_group(tmp_path: Path) -> None:
    found = rows(200)
    ledger = Trying(write_csv(tmp_path / "sorter.csv", found)).rows.ledger

    def counted(is_member: Callable[[Mapping[str, Any]], bool]) -> FileTruth:
        members = [row for row in found if is_member(row)]
        right = sum(row["predicted_class"] == row["true_class"] for row in members)
        return FileTruth(len(members), len(members), right)

    for region in ("north", "south", "east"):
        truth = ledger.truths("region")[region]
        assert truth == counted(lambda row, region=region: row["region"] == region)  # type: ignore[misc]
    for name in ("cat", "dog", "owl"):
        truth = ledger.truths("class")[name]
        assert truth == counted(lambda row, name=name: row["predicted_class"] == name)  # type: ignore[misc]
    assert ledger.truths("all") == {"all": counted(lambda _: True)}


def write_npz(path: Path, found: Sequence[Mapping[str, Any]]) -> Path:
    np.savez(path, **{name: np.array([row[name] for row in found]) for name in found[0]})
    return path


def write_parquet(path: Path, found: Sequence[Mapping[str, Any]]) -> Path:
    parquet.write_table(pa.Table.from_pylist(list(found)), path)
    return path


@pytest.mark.parametrize(
    ("name", "write", "item"),
    [
        ("sorter.csv", write_csv, "line-2"),
        ("sorter.jsonl", write_jsonl, "line-1"),
        ("sorter.npz", write_npz, "row-1"),
        ("sorter.parquet", write_parquet, "row-1"),
    ],
)
def test_every_format_gives_the_same_truth(
    tmp_path: Path, name: str, write: Callable[[Path, Sequence[Mapping[str, Any]]], Path], item: str
) -> None:
    found = [{name: cell for name, cell in row.items() if name != "item_id"} for row in rows(150)]
    made = Trying(write(tmp_path / name, found))
    right = sum(row["predicted_class"] == row["true_class"] for row in found)
    assert made.rows.ledger.truths("all") == {"all": FileTruth(150, 150, right)}
    assert made.rows.ledger.truths("region").keys() == {"north", "south", "east"}
    assert made.messages[0]["item_id"] == item


def test_rows_without_an_attribute_count_as_such(tmp_path: Path) -> None:
    found = rows(60)
    for row in found[:10]:
        row["region"] = ""
    ledger = Trying(write_csv(tmp_path / "sorter.csv", found)).rows.ledger
    assert ledger.truths("region")[MISSING].rows == 10
    assert ledger.true_class(found[0]["item_id"]) == found[0]["true_class"]
    assert ledger.true_class("nobody's") is None


def test_rows_without_a_true_class_are_left_out_and_the_report_says_so(tmp_path: Path) -> None:
    found = rows(60)
    for row in found[:45]:
        row["true_class"] = ""
    made = Trying(write_csv(tmp_path / "sorter.csv", found))
    assert [message["item_id"] for message in made.messages] == [row["item_id"] for row in found[45:]]
    assert not made.refused
    assert made.rows.truth_note.startswith("45 of 60 rows have no true class")
    assert made.rows.truth_note in made.rows.notes()


def test_every_row_is_tried_if_a_person_labels(tmp_path: Path) -> None:
    found = rows(60)
    for row in found[:45]:
        row["true_class"] = ""
    made = Trying(write_csv(tmp_path / "sorter.csv", found), shows_rows=True, true_class="")
    assert len(made.messages) == 60
    assert not made.rows.truth_note


def test_probabilities_say_what_is_predicted(tmp_path: Path) -> None:
    found = [
        {
            "item_id": f"i{n}",
            "probability.cat": cat,
            "probability.dog": round(1 - cat, 2),
            "true_class": "cat",
        }
        for n, cat in enumerate([0.9, 0.2, 0.7, 0.4])
    ]
    ledger = Trying(write_csv(tmp_path / "sorter.csv", found)).rows.ledger
    assert ledger.truths("class") == {"cat": FileTruth(2, 2, 2), "dog": FileTruth(2, 2, 0)}
    assert ledger.scores.tolist() == [0.9, 0.8, 0.7, 0.6]


def test_a_true_class_that_the_model_does_not_have_is_a_bad_row(tmp_path: Path) -> None:
    found = rows(50)
    path = write_csv(tmp_path / "sorter.csv", found)
    profile, proposal = proposed(path)
    found[3]["true_class"] = "unicorn"
    trial = TrialRows(settings(proposal), proposal, profile, shows_rows=False)
    write_csv(path, found)
    with open_rows(str(path), kind="csv", delimiter=",", row_bytes=ROW_BYTES, used=trial.used) as table:
        made = [one for _, one in trial.make(list(trial.begin(table, "it").rows), 0.0)]
    (error,) = [one for one in made if isinstance(one, BadMessage)]
    assert error.reason == "unknown_class"
    assert len(trial.ledger) == 49


@pytest.mark.parametrize("write", [write_csv, write_jsonl])
def test_a_labeller_sees_the_row_without_what_is_predicted_or_true(
    tmp_path: Path, write: Callable[[Path, Sequence[Mapping[str, Any]]], Path]
) -> None:
    found = rows(30)
    path = tmp_path / ("sorter.csv" if write is write_csv else "sorter.jsonl")
    made = Trying(write(path, found), shows_rows=True, true_class="")
    assert made.messages[0]["payload"] == {"item_id": found[0]["item_id"], "region": found[0]["region"]}


def test_each_row_is_an_item_of_its_own_where_ids_repeat(tmp_path: Path) -> None:
    found = [{**row, "item_id": f"i{n % 5}"} for n, row in enumerate(rows(30))]
    made = Trying(write_csv(tmp_path / "sorter.csv", found))
    assert len({message["item_id"] for message in made.messages}) == 30
    assert "item_id" in made.rows.item_note
    assert made.rows.item_note in made.rows.notes()


def test_a_labeller_does_not_see_a_true_class_under_an_unusual_name(tmp_path: Path) -> None:
    found = [{**row, "species": row["true_class"]} for row in rows(30)]
    made = Trying(write_csv(tmp_path / "sorter.csv", found), shows_rows=True, true_class="")
    assert "species" not in made.messages[0]["payload"]
    assert "region" in made.messages[0]["payload"]


def test_a_payload_of_the_file_is_shown_as_it_is(tmp_path: Path) -> None:
    found = rows(30, payload=[f'{{"text": "number {n}"}}' for n in range(30)])
    made = Trying(write_jsonl(tmp_path / "sorter.jsonl", found), shows_rows=True, true_class="")
    assert made.messages[7]["payload"] == found[7]["payload"]


def records(count: int, size: int = 10) -> list[Record]:
    text = "x" * size
    return [
        Record(b"k", msgspec.json.encode({"model": "m", "item_id": f"{n}-{text}"}), []) for n in range(count)
    ]


@pytest.mark.parametrize(("count", "size"), [(1, 10), (500, 10), (300, 200)])
def test_packed_records_hold_the_same_predictions_in_order(count: int, size: int) -> None:
    single = records(count, size)
    unpacked = [one for record in packed(single) for _, one in decode_predictions(record.value)]
    assert unpacked == [one for record in single for _, one in decode_predictions(record.value)]


def test_packed_records_stay_far_below_what_a_broker_takes() -> None:
    sizes = [len(record.value) for record in packed(records(4_000, 200))]
    assert len(sizes) > 1
    assert max(sizes) < 200_000


def test_a_stream_at_a_rate_waits_until_its_rows_are_due() -> None:
    waited: list[float] = []
    now = [100.0]
    pace = Pace(50.0, waited.append, clock=lambda: now[0])
    assert pace.batch_rows == 5
    pace.hold(5)
    now[0] = 103.0
    pace.hold(100)
    assert waited == pytest.approx([0.1, 0.0])


def test_a_stream_without_a_rate_never_waits() -> None:
    waited: list[float] = []
    Pace(None, waited.append).hold(10**9)
    assert waited == [0.0]


def request(item: str) -> LabelRequest:
    return LabelRequest(
        request_id="r",
        model="sorter",
        item_id=item,
        classes=["cat", "dog", "owl"],
        requested_at=NOW,
        deadline=NOW + timedelta(hours=1),
        attempt=1,
    )


def test_true_classes_answer_after_the_delay(tmp_path: Path) -> None:
    found = rows(40)
    ledger = Trying(write_csv(tmp_path / "sorter.csv", found)).rows.ledger
    (answer,) = truth_plan(ledger, Answering(delay_seconds=2.5))(request(found[1]["item_id"]))
    assert (answer.kind, answer.true_class, answer.after_seconds) == ("answer", found[1]["true_class"], 2.5)


def test_so_many_answers_are_wrong_as_the_noise_says(tmp_path: Path) -> None:
    found = rows(400)
    ledger = Trying(write_csv(tmp_path / "sorter.csv", found)).rows.ledger
    plan = truth_plan(ledger, Answering(noise=0.25))
    wrong = sum(plan(request(row["item_id"]))[0].true_class != row["true_class"] for row in found)
    # 100 expected with a standard deviation of 8.7; four of these.
    assert abs(wrong - 100) < 35


def counts(*, predictions: int = 100, open: int = 0, remaining: int = 0) -> Counts:  # noqa: A002 - its field
    return Counts(predictions, outcomes=10, events=30, open=open, remaining=remaining)


def test_a_trial_waits_for_rows_that_are_not_counted_and_requests_that_are_open() -> None:
    settling = Settling()
    assert not settling.is_settled(None, sent=100, now=0.0)
    for now in (1_000.0, 1_050.0):
        assert not settling.is_settled(counts(predictions=99), sent=100, now=now)
    assert not settling.is_settled(counts(open=1), sent=100, now=2_000.0)
    assert not settling.is_settled(counts(open=1), sent=100, now=3_000.0)


def test_a_trial_ends_soon_after_the_last_label_and_later_if_labels_remain() -> None:
    spent, short = Settling(), Settling()
    for settling, last in ((spent, counts()), (short, counts(remaining=5))):
        assert not settling.is_settled(last, sent=100, now=10.0)
    assert spent.is_settled(counts(), sent=100, now=14.0)
    assert not short.is_settled(counts(remaining=5), sent=100, now=14.0)
    assert short.is_settled(counts(remaining=5), sent=100, now=26.0)


def test_a_trial_does_not_wait_for_ever_for_rows_that_do_not_come() -> None:
    settling = Settling()
    assert not settling.is_settled(counts(predictions=99, remaining=5), sent=100, now=0.0)
    assert settling.is_settled(counts(predictions=99, remaining=5), sent=100, now=61.0)


def test_a_file_without_a_usable_row_needs_no_estimates_to_end() -> None:
    assert Settling().is_settled(None, sent=0, now=0.0)


@pytest.mark.parametrize("cell", ["1,5", "nan", "7", "-0.2", "high"])
def test_a_row_with_a_bad_score_is_left_out_of_the_profile_and_its_column_stays_the_score(
    tmp_path: Path, cell: str
) -> None:
    found = rows(60)
    found[10]["score"] = cell
    path = write_csv(tmp_path / "sorter.csv", found)
    with open_rows(str(path), kind="csv", delimiter=",", row_bytes=ROW_BYTES, used=set) as table:
        prepared = without_bad_scores({})(table)
        profile = profile_rows(prepared, "it", most_rows=None, model=None, model_column="model")
    assert (profile.rows, profile.refused) == (59, 1)
    assert "line 12, column score" in profile.first_refusal
    assert propose(profile, Wishes({})).roles.fields["score"].column == "score"
