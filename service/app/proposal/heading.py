"""What a proposed configuration says of its sample, above its keys."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from service.app.files.columns import plain_name
from service.app.proposal.profile import Profile
from service.app.proposal.propose import Proposal
from service.app.proposal.renamed import send_command
from service.app.proposal.usual_names import OPTIONS

_DAY = 86_400.0
_READ = "Comments say why each value was chosen: check them, and change what you know better."
_NEXT = (
    "Next: `credence check` explains what this does; `credence topics create` and `credence run` start it."
)

_WITHOUT = {
    "item_id": "predictions need an id of their item before they can be sent",
    "time": "predictions then count as of the time of their records",
    "true_class": "so nothing is known of the accuracy",
}
"""What it means that a sample lacks a field; of others it means nothing."""


def heading(
    profile: Profile,
    proposal: Proposal,
    *,
    path: str | None,
    config: str,
    given: Sequence[str] = (),
    parts: str = "",
    read_back: str = "",
) -> list[str]:
    """Paragraphs about the sample, its columns and the next steps.

    Args:
        profile: of the sample.
        proposal: made from it.
        path: of the file of rows, if it is one.
        config: path of the configuration.
        given: options that say how the file is read.
        parts: of the records of a topic, which the predictions are.
        read_back: what consumers would refuse of the records; empty if it is not known.
    """
    of_topic = parts if path is None else ""
    lines = [
        f"Configuration for Credence, proposed by `credence init` from {profile.source}. {_READ}",
        f"Sample: {_sample(profile, proposal, of_topic)}",
        *([read_back] if read_back else []),
        *_traffic(profile, proposal),
        "Columns:",
        *_columns(proposal),
        _NEXT,
    ]
    if path is not None and proposal.roles.fields["item_id"]:
        lines += [
            "Send the file:",
            f"  {send_command(proposal.renamed, path, config, given)}",
            *_refused_rows(profile, proposal),
        ]
    return lines


def _sample(profile: Profile, proposal: Proposal, parts: str) -> str:
    if parts:
        text = f"{profile.rows:,} predictions, {parts}."
    elif profile.is_whole:
        text = f"{profile.rows:,} rows, the whole file."
    else:
        text = f"the first {profile.rows:,} rows; the others were not read (--records)."
    if profile.others:
        text += f" {profile.others:,} of other models were left out."
    if profile.refused:
        text += (
            f" {profile.refused:,} cannot be read and were left out, the first at {profile.first_refusal}."
        )
    return (
        f"{text} Up to 10,000 values of each column were counted; accuracy and mean score are of "
        f"{proposal.predictions:,} rows with a predicted class and a score, of {len(profile.sample):,} drawn "
        "evenly."
    )


def _refused_rows(profile: Profile, proposal: Proposal) -> list[str]:
    """How many of the rows that were read `credence predictions send` refuses, and why."""
    incomplete = round(proposal.unsendable * profile.rows / max(len(profile.sample), 1))
    is_exact = len(profile.sample) == profile.rows or not incomplete
    counts = (
        (profile.refused, "cannot be read"),
        (profile.others, "are of models that are not in this configuration"),
        (incomplete, "lack an item id, a predicted class or a score"),
    )
    if not (total := sum(count for count, _ in counts)):
        return []
    why = ", ".join(f"{count:,} {reason}" for count, reason in counts if count)
    return [f"WARNING: it refuses {'' if is_exact else 'about '}{total:,} of the rows that were read: {why}."]


def _traffic(profile: Profile, proposal: Proposal) -> list[str]:
    """How many predictions there are a day, and whether that suffices for the labels."""
    column = proposal.roles.fields["time"].column
    if not column or (times := profile.columns[column].times) is None:
        return []
    first, last = (datetime.fromisoformat(time) for time in times)
    text = f"Times: {first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M} UTC"
    seconds = (last - first).total_seconds()
    if seconds <= 0:
        return [f"{text}."]
    a_day = profile.columns[column].filled / seconds * _DAY
    if a_day < proposal.labels:
        warning = (
            f"WARNING: that is fewer than the {proposal.labels:,} labels a day that are proposed. If the "
            "sample has all predictions of that time, allow more time (--decide-within), or look for larger "
            "falls (--detect)."
        )
        return [f"{text}, about {a_day:,.0f} predictions a day. {warning}"]
    return [f"{text}, about {a_day:,.0f} predictions a day, of which {proposal.labels:,} are labelled."]


def _columns(proposal: Proposal) -> list[str]:
    lines = []
    for field, role in proposal.roles.fields.items():
        what = plain_name(role.column) if role else "none"
        if field == "probabilities" and proposal.roles.family:
            lines.append(f"  {field}: {proposal.roles.family_why}")
        elif role or field in _WITHOUT:
            note = "" if role else f"; {_WITHOUT[field]}. {OPTIONS[field]} COLUMN names one"
            lines.append(f"  {field}: {what} ({role.why}){note}")
    return lines
