"""What the person in front of the demo answered, and how often that is the truth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from service.demo.journal import LabelGiven
from service.demo.world import CAMERAS


@dataclass(frozen=True)
class Answers:
    """The labels that count, each the last one about its request; times are in seconds since the epoch."""

    latest: dict[str, LabelGiven]  # by request, without those that were taken back
    skipped: int
    corrected: int
    first_at: dict[str, float]  # when each of these requests was first answered

    @classmethod
    def of(cls, given: Iterable[LabelGiven]) -> Self:
        """The labels that count, of all that were given in this order."""
        latest: dict[str, LabelGiven] = {}
        first_at: dict[str, float] = {}
        skipped: set[str] = set()
        kinds: Counter[str] = Counter()
        for label in given:
            kinds[label.kind] += 1
            if label.kind == "skip":
                skipped.add(label.request_id)
            elif label.kind == "retraction":
                latest.pop(label.request_id, None)
            else:
                skipped.discard(label.request_id)
                latest[label.request_id] = label
                first_at.setdefault(label.request_id, label.time)
        return cls(latest, len(skipped), kinds["correction"], {k: first_at[k] for k in latest})

    def __len__(self) -> int:
        return len(self.latest)

    @property
    def newest_at(self) -> float:
        """When the newest of these requests was first answered; 0 without any."""
        return max(self.first_at.values(), default=0.0)

    @property
    def seconds(self) -> float:
        """From the first answer to the newest."""
        return self.newest_at - min(self.first_at.values(), default=0.0)

    def agreement(self) -> tuple[int, int]:
        """How many labels are the truth, and how many there are."""
        return self._agreement(self.latest.values())

    def agreement_by_camera(self) -> dict[str, tuple[int, int]]:
        """The same of each camera with labels."""
        by_camera = {
            camera: self._agreement(label for label in self.latest.values() if label.camera == camera)
            for camera in CAMERAS
        }
        return {camera: counts for camera, counts in by_camera.items() if counts[1]}

    @staticmethod
    def _agreement(labels: Iterable[LabelGiven]) -> tuple[int, int]:
        agreed = [label.true_class == label.truth for label in labels]
        return sum(agreed), len(agreed)
