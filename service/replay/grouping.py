"""Groups and score bins of a recording, computed once, so that estimate and truth always share them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from service.domain.arrays import Floats, Indices, Ints
from service.domain.errors import RecordingError
from service.replay.options import Binning
from service.replay.pool import Pool
from service.replay.recording import Recording


@dataclass(frozen=True)
class Grouper:
    """Groups recordings, all with the same kind of score bins.

    Groups without any item are left out. They have no accuracy, and could else be found least accurate by a
    belief that nothing corrects.
    """

    bin_count: int = 10  # number of score bins B, at least 1
    binning: Binning = "equal_width"  # whether bins are equally wide, or have equally many items

    def all(self, recording: Recording) -> Pool:
        """All items as one group."""
        return self._grouped(recording, ["all"], np.zeros(recording.size, dtype=np.intp))

    def by_predicted_class(self, recording: Recording) -> Pool:
        """A group for every class [K], named by its number."""
        names = [str(number) for number in range(recording.classes)]
        return self._grouped(recording, names, recording.predicted.astype(np.intp))

    def by_value(self, recording: Recording) -> Pool:
        """A group for every value of the recording's attribute.

        Raises:
            ValueError: no attribute was read.
        """
        if recording.values is None:
            raise ValueError("the recording was read without an attribute")
        names, groups = np.unique(recording.values, return_inverse=True)
        return self._grouped(recording, names.tolist(), groups.astype(np.intp))

    def bins_alone(self, recording: Recording) -> Pool:
        """A group for every score bin [B], without bins within: for the binwise accuracy itself."""
        bins = score_bins(recording.scores, self.bin_count, self.binning)
        pool = self._grouped(recording, self._bin_names(recording.scores, bins), bins)
        return replace(pool, bins=np.zeros(recording.size, dtype=np.intp), bin_count=1)

    def by_superclass(self, recording: Recording, superclasses: Mapping[str, Sequence[int]]) -> Pool:
        """A group for every superclass, of the items whose predicted class is in it.

        An item is correct, here too, only if its predicted class is the true one. Each of the K classes is in
        exactly one superclass.

        Raises:
            ValueError: a predicted class is in none.
        """
        # A class of no superclass is not let pass: no group has a negative number.
        of_class = np.full(recording.classes, -1, dtype=np.intp)
        for group, classes in enumerate(superclasses.values()):
            of_class[list(classes)] = group
        return self._grouped(recording, list(superclasses), of_class[recording.predicted])

    def _grouped(self, recording: Recording, names: list[str], groups: Indices) -> Pool:
        present = np.bincount(groups, minlength=len(names)) > 0
        return Pool(
            recording,
            names=[name for name, stays in zip(names, present, strict=True) if stays],
            groups=(np.cumsum(present) - 1)[groups],
            bins=score_bins(recording.scores, self.bin_count, self.binning),
            bin_count=self.bin_count,
        )

    def _bin_names(self, scores: Floats, bins: Indices) -> list[str]:
        if self.binning == "equal_width":
            edges = np.arange(self.bin_count + 1) / self.bin_count
            return [f"[{low:g},{high:g}{']' if high == 1 else ')'}" for low, high in pairwise(edges.tolist())]
        # Bins of scores that are near 1 may be alike in all digits shown, hence the number. Groups without
        # items are left out, so their names do not matter.
        return [
            f"{place + 1}/{self.bin_count} [{within.min(initial=1):g},{within.max(initial=0):g}]"
            for place in range(self.bin_count)
            for within in [scores[bins == place]]
        ]


def score_bins(scores: Floats, count: int, binning: Binning) -> Indices:
    """Bin of every score [N], by the kind of bins."""
    return equal_width_bins(scores, count) if binning == "equal_width" else equal_size_bins(scores, count)


def equal_width_bins(scores: Floats, count: int) -> Indices:
    """Bin b of every score [N] within 0 and 1, with b/B <= score < (b+1)/B; 1.0 is in the last bin."""
    # Comparing with the edges puts a score that is an edge into the upper bin; multiplying by B may not.
    return np.searchsorted(np.arange(1, count) / count, scores, side="right").astype(np.intp)


def equal_size_bins(scores: Floats, count: int) -> Indices:
    """Bin of every score [N], with as equally many items in each as ties allow.

    Equal scores share a bin, bins ascend with the score, and the highest score is in the last bin. Without
    ties sizes differ by 1 at most. If there are at least B different scores every bin has items; if fewer,
    each score has a bin of its own, and the first bins are empty.
    """
    values, positions, ties = np.unique(scores, return_inverse=True, return_counts=True)
    if len(values) <= count:
        return (positions + count - len(values)).astype(np.intp)
    share, scale = _fair_share(ties, count)
    # A score shared by more items than a bin's share counts as one share, so it fills one bin and the
    # others stay even. Whole numbers keep the quantiles exact.
    capped = np.minimum(ties * scale, share)
    bins = (2 * np.cumsum(capped) - capped) // (2 * share)
    return bins[positions].astype(np.intp)


def _fair_share(ties: Ints, count: int) -> tuple[int, int]:
    """Share and scale such that B shares are the sum of all min(ties * scale, share)."""
    descending = np.sort(ties)[::-1]
    heaviest = np.concatenate([[0], np.cumsum(descending[: count - 1])])
    shares, scales = int(ties.sum()) - heaviest, count - np.arange(count)
    first = int((descending[:count] * scales <= shares).argmax())
    return int(shares[first]), int(scales[first])


def load_superclasses(path: Path, recording: Recording) -> dict[str, list[int]]:
    """Classes by the name of their superclass, from a JSON object of lists.

    Lists name classes by their numbers, as numbers or as text.

    Raises:
        RecordingError: the file cannot be used, or does not have every class exactly once.
    """
    numbers = {str(place): place for place in range(recording.classes)}
    owner: dict[int, str] = {}
    superclasses: dict[str, list[int]] = {}
    for superclass, members in _json_object(path).items():
        if not isinstance(members, list) or not members:
            raise RecordingError(path, f"superclass '{superclass}' must have a list of classes, at least one")
        superclasses[superclass] = []
        for place, member in enumerate(members):
            number = numbers.get(member) if isinstance(member, str) else member
            if not isinstance(number, int) or isinstance(number, bool) or number not in numbers.values():
                raise RecordingError(
                    path,
                    f"superclass '{superclass}': item {place} (counted from 0) is no class; give its name, "
                    f"or its number from 0 to {len(numbers) - 1}",
                )
            if number in owner:
                raise RecordingError(
                    path,
                    f"class '{number}' is twice in it, in '{owner[number]}' and '{superclass}'; "
                    "leave it in one",
                )
            owner[number] = superclass
            superclasses[superclass].append(number)
    missing = [name for name, number in numbers.items() if number not in owner]
    if missing:
        raise RecordingError(
            path, f"{len(missing)} class(es) are in no superclass, the first is '{missing[0]}'; add them"
        )
    return superclasses


def _json_object(path: Path) -> dict[str, object]:
    if not path.is_file():
        raise RecordingError(path, "there is no such file; check the path")
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise RecordingError(
            path, f"it cannot be read as JSON ({type(error).__name__}); check the file"
        ) from error
    if not isinstance(found, dict):
        raise RecordingError(path, "it must be a JSON object from superclasses to lists of classes")
    return found
