"""A proposal of settings, with the reason of each: from the profile of a sample and what the user wants."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from service.app.files.columns import listed, plain_name
from service.app.proposal.attributes import (
    CLASS_GROUPING,
    MOST_CODES,
    Attribute,
    Attributes,
    find_attributes,
)
from service.app.proposal.budgets import (
    FallArithmetic,
    LabelBudget,
    propose_budget,
    propose_overall,
    propose_threshold,
    within_limit,
)
from service.app.proposal.classes import Classes, class_shares, find_classes, is_sendable, predictions
from service.app.proposal.commented_yaml import Entry, document
from service.app.proposal.kafka_entries import Place, kafka_entries, tensor_entries
from service.app.proposal.memory import Memory, bound_memory
from service.app.proposal.profile import Profile
from service.app.proposal.renamed import renamed_columns
from service.app.proposal.roles import Roles, find_roles
from service.config.document import Document
from service.config.loader import settings_of
from service.config.settings import RedisSettings, Settings
from service.domain.errors import ConfigurationError
from service.domain.groupings import ALL
from service.domain.times import duration

_NAME: Final = r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}"
_RARE: Final = 0.05
_ALSO_SETS: Final = (
    "This also sets how fast traffic and items for labels lose weight, and the window of drift."
)
_TOO_MANY: Final = (
    "The labels of each assessment count in all groupings, so remove assessments if they are too many; "
    "--labels-per-day N limits them."
)
_QUANTITY: Final = (
    f"numbers with more than {MOST_CODES} values, as of a quantity, which a few ranges would split better; "
    "if they are codes, name the column with --attributes"
)
_DEFAULTS: Final = "Keys that are not here have their defaults: docs/configuration.md"


_NOWHERE: Final = Place()


@dataclass(frozen=True)
class Wishes:
    """What the user wants; None where the sample decides.

    Attributes:
        columns: by field, of `usual_names.OPTIONS`; empty for none.
        attributes: columns that become groupings.
        classes: of the model, in order.
        model: its name.
        within_days: how soon a fault is to be found.
        detect: drop of accuracy that is to be found, in shares.
        min_accuracy: of every group.
        labels_per_day: most labels of all assessments together.
        place: that the sample is from.
    """

    columns: Mapping[str, str]
    attributes: Sequence[str] | None = None
    classes: Sequence[str] | None = None
    model: str | None = None
    within_days: float = 14.0
    detect: float = 0.1
    min_accuracy: float | None = None
    labels_per_day: int | None = None
    place: Place = _NOWHERE


@dataclass(frozen=True)
class Proposal:
    """A configuration, and how the sample is read with it.

    Attributes:
        entries: of the configuration, with their reasons.
        settings: that these are.
        model: name of its only model.
        roles: of the columns.
        renamed: options `FIELD=COLUMN` of `credence predictions send`, for the columns of the sample.
        labels: a day, of all assessments.
        predictions: of the sampled rows that have a predicted class and a score.
        unsendable: sampled rows that lack one of these, or the id of their item.
    """

    entries: Sequence[Entry]
    settings: Settings
    model: str
    roles: Roles
    renamed: Sequence[str]
    labels: int
    predictions: int
    unsendable: int


def propose(profile: Profile, wishes: Wishes) -> Proposal:
    """The proposal for a sample.

    Raises:
        ConfigurationError: what predictions need is missing or ambiguous in the sample, or what the user
            wants is not possible.
    """
    roles = find_roles(profile, wishes.columns)
    classes = find_classes(profile, roles, wishes.classes)
    attributes = find_attributes(profile, roles, wishes.attributes)
    name, name_why = _model_name(profile, roles, wishes)
    threshold = propose_threshold(profile, roles, classes, given=wishes.min_accuracy, drop=wishes.detect)
    within = duration(wishes.within_days * 86_400)
    basis = (
        Entry("classes", list(classes.names), _class_reasons(profile, roles, classes)),
        Entry(
            "find_within_days",
            int(wishes.within_days) if wishes.within_days.is_integer() else wishes.within_days,
            [f"A fault should be found within {within} (--decide-within). {_ALSO_SETS}"],
        ),
        Entry(
            "alerts",
            (Entry("min_accuracy", threshold.value, [f"{threshold.why}."]),),
            ["A group below this accuracy is reported, once the probability of that is 95%."],
        ),
    )
    memory = bound_memory(name, document(basis), attributes, by_class=CLASS_GROUPING)
    budgets = _budgets(memory, name, len(classes.names), wishes, threshold.value)
    tensors = tensor_entries(wishes.place.tensors)
    model = (*basis, *tensors, _groupings(attributes, memory), _assessments(budgets))
    entries = (
        kafka_entries(profile, roles, memory.attributes, name, wishes.place),
        Entry(
            "redis",
            (Entry("url", RedisSettings().url.get_secret_value(), ["The default; name yours."]),),
            ["Where Credence keeps what it counts."],
        ),
        Entry("bounds", (Entry("attribute_values", memory.values, memory.reasons()),), ["Limits of memory."]),
        Entry(
            "models",
            (Entry(name, model, [name_why]),),
            [f"The models, by the name that their predictions carry. {_DEFAULTS}."],
        ),
    )
    settings = settings_of(Document(document(entries)), "the proposal", {})
    return Proposal(
        entries,
        settings,
        name,
        roles,
        renamed_columns(profile, roles, classes, memory.attributes),
        sum(each.labels or 0 for each in budgets.values()),
        sum(1 for _ in predictions(profile, roles, classes)),
        sum(not is_sendable(cells, roles, classes) for cells in profile.sample),
    )


def _model_name(profile: Profile, roles: Roles, wishes: Wishes) -> tuple[str, str]:
    given = wishes.model
    column = roles.fields["model"].column
    found = profile.columns[column] if column else None
    names = [*(found.counts or ())] if found else []
    if given is None and len(names) > 1:
        problem = (
            f"the rows are of several models ({listed(sorted(names))}); say --model NAME for one of them"
        )
        raise ConfigurationError([("--model", problem)], profile.source)
    name = given or (names[0] if names else None)
    why = "Named by --model." if given else f"The only value of column {plain_name(column)}."
    if name is None:
        stem = wishes.place.topic or re.split(r"[/\\]", profile.source)[-1].partition(".")[0]
        name = re.sub(r"[^A-Za-z0-9._-]+", "_", stem).lstrip("._-")[:128] or "model"
        why = "After the sample, which names no model; --model NAME names it."
        if profile.records is None:
            why += " Predictions must carry this name."
    if not re.fullmatch(_NAME, name):
        problem = (
            f"{plain_name(name)} must be letters, digits, `.`, `_` and `-`; rename the model in its "
            "predictions"
        )
        raise ConfigurationError([("--model", problem)], profile.source)
    return name, why


def _class_reasons(profile: Profile, roles: Roles, classes: Classes) -> list[str]:
    reasons = [f"{len(classes.names):,} classes: {classes.why}."]
    if classes.never_predicted:
        reasons.append(f"Only as true classes: {listed(classes.never_predicted)}.")
    shares = class_shares(profile, roles, classes)
    rare = [name for name, share in shares.items() if share < _RARE]
    if len(classes.names) == 2 and len(rare) == 1:  # noqa: PLR2004 - a binary classifier
        reasons.append(
            f"{plain_name(rare[0])} is {shares[rare[0]]:.1%} of what is predicted. If that is what "
            "you look for, ask "
            "for its precision and recall: task performance, docs/binary-classifiers.md."
        )
    return reasons


def _budgets(
    memory: Memory, name: str, classes: int, wishes: Wishes, threshold: float
) -> dict[str, LabelBudget]:
    """The labels a day of every grouping."""
    model = memory.settings.models[name]
    groups = {CLASS_GROUPING: classes} | {each.grouping: each.groups for each in memory.attributes}
    arithmetic = FallArithmetic(model, drop=wishes.detect, threshold=threshold)
    quantities = {each.grouping for each in memory.attributes if each.is_quantity}
    proposed = [
        LabelBudget(None, _QUANTITY)
        if grouping in quantities
        else propose_budget(arithmetic, groups=count, is_attribute=grouping != CLASS_GROUPING)
        for grouping, count in groups.items()
    ]
    budgets = dict(zip(groups, within_limit(proposed, wishes.labels_per_day), strict=True))
    if all(each.labels is None for each in budgets.values()):
        most = wishes.labels_per_day
        budgets[ALL] = propose_overall(model, drop=wishes.detect, threshold=threshold, most=most)
    return budgets


def _groupings(attributes: Attributes, memory: Memory) -> Entry:
    entries = [
        Entry(
            CLASS_GROUPING,
            {"by": "predicted_class"},
            ["Always worth having: errors often concern one class, and every prediction has one."],
        )
    ]
    entries += [
        Entry(each.grouping, {"by": "attribute", "attribute": each.name}, [_of_column(each)])
        for each in memory.attributes
    ]
    out = {**attributes.left_out, **{each.column: reason for each, reason in memory.dropped}}
    why = ["How traffic is split into groups. Each group is counted and watched for drift, without labels."]
    if out:
        why.append("Columns that are no groupings, and why (--attributes a,b chooses others):")
        why += [f"  {plain_name(name) or '(no name)'}: {reason}" for name, reason in out.items()]
    return Entry("groupings", tuple(entries), why)


def _of_column(attribute: Attribute) -> str:
    renamed = "" if attribute.column == attribute.name else f"Column {plain_name(attribute.column)}. "
    return f"{renamed}{attribute.why}."


def _assessments(budgets: Mapping[str, LabelBudget]) -> Entry:
    asked = {name: each for name, each in budgets.items() if each.labels is not None}
    without = [f"  {name}: {each.why}" for name, each in budgets.items() if each.labels is None]
    total = sum(each.labels or 0 for each in asked.values())
    why = [f"Requests for {total:,} labels a day in total. {_TOO_MANY}"]
    if without:
        why += ["Groupings without labels of their own, and why:", *without]
    return Entry("assessments", tuple(_assessment(*each) for each in asked.items()), why)


def _assessment(grouping: str, asked: LabelBudget) -> Entry:
    budget = Entry("budget", {"labels": asked.labels, "per_days": 1}, [f"{asked.why}."])
    if grouping == ALL:
        task = Entry("task", "estimation", ["Labels of any item say how accurate the model is."])
        return Entry("accuracy", (task, budget), ["How accurate is the model over all traffic?"])
    task = Entry("task", "identification", ["Labels go to the group that seems the least accurate."])
    of = Entry("grouping", grouping, [f"The groups of {grouping}."])
    return Entry(
        f"weakest-{grouping}"[:128], (task, of, budget), [f"Which {grouping} is the least accurate?"]
    )
