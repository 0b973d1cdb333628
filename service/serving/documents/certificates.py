"""Whether all groups are shown to meet the accuracy threshold: documents, made from a snapshot."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Literal

import numpy as np
from pydantic import Field

from service.domain.cells import OTHER
from service.monitoring.grouping_snapshot import GroupingSnapshot
from service.monitoring.snapshot import ModelSnapshot
from service.serving.documents import words
from service.serving.documents.base import Document, Seconds, finite_or_none

Outcome = Literal["shown", "missed", "undecided", "excluded"]

_LN_10 = math.log(10)
_MOST_NAMES = 3


class GroupCertificate(Document):
    """Whether one group is shown to meet its threshold."""

    group: str
    outcome: Outcome = Field(
        description="`shown` to meet the threshold; `missed`: confirmed to be below it; `undecided`; or "
        "`excluded`: without a threshold or traffic, or with less than evidence.certificate_least_share"
    )
    min_accuracy: float | None = Field(
        description="its threshold: its own, that of its grouping, or alerts.min_accuracy; null without one"
    )
    share: float = Field(description="of the model's traffic")
    labels: int = Field(description="that count for the certificate")
    log10_e: float = Field(
        description="decimal logarithm of the e-value against `the group misses the threshold`"
    )
    labels_left: float | None = Field(
        description="labels that the group still lacks, on average; null if it is not expected to meet it"
    )
    sentence: str = Field(description="the same in words")


class GroupingCertificate(Document):
    """Whether every group of one grouping is shown to meet its threshold."""

    grouping: str
    outcome: Outcome
    groups: int = Field(description="groups that have to meet the threshold")
    shown: int = Field(description="groups among them that are shown to meet it")
    covered_share: float = Field(description="their share of the model's traffic")
    labels_left: float | None = Field(
        description="labels that they still lack, on average; null if one is not expected to meet it"
    )
    sentence: str = Field(description="the same in words")


class GroupingGate(GroupingCertificate):
    """The same with every group."""

    group_certificates: list[GroupCertificate]


class Gate(Document):
    """Whether every group of some groupings is shown to meet its threshold: what `credence gate` prints."""

    model: str
    taken_at: Seconds
    outcome: Outcome = Field(
        description="`shown` if all groupings are, `missed` if a group of any is confirmed to be below"
    )
    min_accuracy: float | None = Field(
        description="alerts.min_accuracy of the configuration; groups may have others"
    )
    alpha: float = Field(description="probability that a false certificate is ever given")
    labels_left: float | None = Field(description="labels that all groupings still lack, on average")
    groupings: list[GroupingGate]


def gate(snapshot: ModelSnapshot, groupings: list[str]) -> Gate:
    """The certificates of some groupings."""
    found = [_grouping_gate(snapshot, name) for name in groupings]
    return Gate.of(
        snapshot,
        outcome=_outcome([one.outcome for one in found]),
        min_accuracy=snapshot.settings.alerts.min_accuracy,
        alpha=snapshot.settings.evidence.alpha,
        labels_left=_total([one.labels_left for one in found]),
        groupings=found,
    )


def grouping_certificate(snapshot: ModelSnapshot, name: str) -> GroupingCertificate | None:
    """The certificate of one grouping that has traffic; None without a threshold, or without labels."""
    evidence = snapshot.groupings[name].evidence
    if evidence is None or evidence.certificate is None:
        return None
    return GroupingCertificate.of(_grouping_gate(snapshot, name))


def _grouping_gate(snapshot: ModelSnapshot, name: str) -> GroupingGate:
    grouping = snapshot.groupings.get(name)
    groups = [] if grouping is None else _groups(grouping)
    needed = [one for one in groups if one.outcome != "excluded"]
    outcome = _outcome([one.outcome for one in needed])
    lacking = [one.labels_left for one in needed if one.group != OTHER]
    gate = GroupingGate(
        grouping=name,
        outcome=outcome,
        groups=len(needed),
        shown=sum(one.outcome == "shown" for one in needed),
        covered_share=sum(one.share for one in needed),
        labels_left=_total(lacking),
        sentence="",
        group_certificates=groups,
    )
    return gate.model_copy(update={"sentence": _sentence(gate, snapshot)})


def _total(labels: list[float | None]) -> float | None:
    """Sum of the labels that are lacking; None if some are without end."""
    known = [one for one in labels if one is not None]
    return sum(known) if known and len(known) == len(labels) else None


def _outcome(parts: list[Outcome]) -> Outcome:
    """Of the whole by that of its parts: one that misses decides, and else one that is undecided."""
    if "missed" in parts:
        return "missed"
    return "shown" if parts and all(part == "shown" for part in parts) else "undecided"


def _groups(grouping: GroupingSnapshot) -> list[GroupCertificate]:
    evidence, size = grouping.evidence, len(grouping.groups)
    certificate = None if evidence is None else evidence.certificate
    none = np.zeros(size)
    labels, log_e, left = none, none, np.full(size, np.inf)
    shown = missed = np.zeros(size, np.bool_)
    if evidence is not None and certificate is not None:
        labels, log_e = certificate.collected.labels[0], certificate.log_e
        left, shown = certificate.labels_left, certificate.shown
        missed = evidence.confirmed["below_threshold"]
    found = []
    for group, name in enumerate(grouping.groups):
        share = float(grouping.beliefs.shares[group])
        outcome: Outcome = "undecided"
        if not grouping.in_certificate[group]:
            outcome = "excluded"
        elif missed[group]:
            outcome = "missed"
        elif shown[group]:
            outcome = "shown"
        lacks, least = finite_or_none(left[group]), finite_or_none(grouping.min_accuracy[group])
        found.append(
            GroupCertificate(
                group=name,
                outcome=outcome,
                min_accuracy=least,
                share=share,
                labels=int(labels[group]),
                log10_e=float(log_e[group]) / _LN_10,
                labels_left=lacks,
                sentence=_group_sentence(name, outcome, least, share, lacks),
            )
        )
    return found


def _group_sentence(
    name: str, outcome: Outcome, least: float | None, share: float, left: float | None
) -> str:
    if least is None:
        return "Left out: no threshold."
    target, traffic = words.threshold(least), f"{words.percent(share)} of the traffic"
    if outcome == "undecided" and name != OTHER:
        lacking = "not expected to meet it" if left is None else f"about {left:,.0f} more labels"
        return f"Undecided, threshold {target}: {lacking}."
    sentences: dict[Outcome, str] = {
        "shown": f"Shown to meet {target}.",
        "missed": f"Confirmed to be below {target}.",
        "excluded": f"Left out: {traffic}.",
        "undecided": f"Cannot be shown: values without groups of their own, {traffic}.",
    }
    return sentences[outcome]


def _targets(groups: Iterable[GroupCertificate]) -> str:
    """The threshold of some groups, or between which theirs are."""
    found = sorted({one.min_accuracy for one in groups if one.min_accuracy is not None})
    if len(found) == 1:
        return words.threshold(found[0])
    return f"their thresholds of {words.threshold(found[0])} to {words.threshold(found[-1])}"


def _sentence(found: GroupingGate, snapshot: ModelSnapshot) -> str:
    settings = snapshot.settings
    needed = [one for one in found.group_certificates if one.outcome != "excluded"]
    if not needed:
        return "No certificate: no group has a threshold and enough traffic."
    threshold = _targets(needed)
    if found.outcome == "missed":
        missed = [one for one in needed if one.outcome == "missed"]
        names = ", ".join(one.group for one in missed[:_MOST_NAMES])
        return f"No certificate: {names} confirmed to be below {_targets(missed)}."
    if found.outcome == "shown":
        groups = "The only group is" if found.groups == 1 else f"All {found.groups:,} groups are"
        return (
            f"Certificate: {groups} shown to meet {threshold}, "
            f"{words.percent(found.covered_share)} of the traffic. "
            f"False in at most {100 * settings.evidence.alpha:g}% of models, valid at every moment."
        )
    said = f"No certificate yet: {found.shown:,} of {found.groups:,} groups are shown to meet {threshold}."
    undecided = [one for one in needed if one.outcome == "undecided" and one.group != OTHER]
    unlikely = [one.group for one in undecided if one.labels_left is None]
    if unlikely:
        return f"{said} Not expected to: {', '.join(unlikely[:_MOST_NAMES])}."
    if found.labels_left:
        most = sorted(undecided, key=lambda one: one.labels_left or 0, reverse=True)[:_MOST_NAMES]
        named = ", ".join(f"{one.group} ({one.labels_left:,.0f})" for one in most)
        return f"{said} About {found.labels_left:,.0f} more labels, most of {named}."
    return f"{said} `{OTHER}` cannot be shown to."
