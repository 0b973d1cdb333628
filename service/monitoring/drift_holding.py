"""When a verdict of drift holds: until the group has enough recent traffic for another one (pure).

Without this, a group whose traffic stops would recover from its drift: fewer predictions show less.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from service.domain.arrays import Flags, Floats, Ints
from service.statistics.drift import MixDrift
from service.store.drift_verdicts import DriftVerdict, DriftVerdicts

ENOUGH: Final = 0.9
"""Share of the traffic of the verdict, or of that in the reference, which is enough to withdraw it."""

_STALE_SECONDS: Final = 60.0
"""Verdicts are stored again when they are so much newer than the stored ones, or of other groups."""


def held_verdicts(
    names: Sequence[str],
    stored: Mapping[str, DriftVerdict],
    *,
    drifted: Flags,
    mixes: Mapping[str, MixDrift],
    predictions: Ints,
    volume_ratio: Floats,
    max_distance: float,
) -> dict[int, DriftVerdict]:
    """Verdicts that hold although recent traffic does not show drift, by group.

    Recent traffic withdraws a verdict in either of two cases. It is at least `ENOUGH` of the traffic that the
    verdict was found with, or of the usual traffic. Or it shows, beyond noise, a smaller distance than that
    of the verdict. `predictions` are the recent ones that are compared, and the arrays are [G].
    """
    if not stored:
        return {}
    found: dict[int, DriftVerdict] = {}
    for group, name in enumerate(names):
        verdict = stored.get(name)
        if verdict is None or drifted[group] or verdict.score <= max_distance:
            continue
        has_enough = predictions[group] >= ENOUGH * verdict.predictions
        has_enough |= bool(predictions[group] > 0 and volume_ratio[group] >= ENOUGH)
        mix = mixes.get(verdict.mix)
        is_nearer = mix is not None and mix.distance[group] + mix.noise[group] < verdict.distance
        if not (has_enough or is_nearer):
            found[group] = verdict
    return found


def new_verdicts(
    names: Sequence[str],
    stored: Mapping[str, DriftVerdict],
    held: Mapping[int, DriftVerdict],
    *,
    drifted: Flags,
    mixes: Mapping[str, MixDrift],
    predictions: Ints,
    now: float,
) -> dict[str, DriftVerdict]:
    """The verdicts after this round, by the name of the group: those that hold, and those found now."""
    verdicts = {names[group]: verdict for group, verdict in held.items()}
    for group in np.flatnonzero(drifted).tolist():
        mix = max(mixes, key=lambda name: mixes[name].excess[group])
        before = stored.get(names[group])
        most = int(predictions[group]) if before is None else max(before.predictions, int(predictions[group]))
        found = mixes[mix]
        verdicts[names[group]] = DriftVerdict(
            mix, float(found.distance[group]), float(found.excess[group]), most, now
        )
    return verdicts


def due_verdicts(stored: DriftVerdicts | None, found: DriftVerdicts) -> DriftVerdicts | None:
    """The verdicts of this round, if they are to replace the stored ones."""
    if stored is None:
        return found if found.groupings else None
    if stored.reference_until != found.reference_until or _groups(stored) != _groups(found):
        return found
    newer = max(
        (
            verdict.at - stored.groupings[key][group].at
            for key, verdicts in found.groupings.items()
            for group, verdict in verdicts.items()
        ),
        default=0.0,
    )
    return found if newer > _STALE_SECONDS else None


def _groups(verdicts: DriftVerdicts) -> set[tuple[str, str, str]]:
    return {
        (key, group, verdict.mix)
        for key, groups in verdicts.groupings.items()
        for group, verdict in groups.items()
    }
