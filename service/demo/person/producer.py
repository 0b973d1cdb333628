"""The producer of the demo that a person labels: `python -m service.demo.person.producer`.

It streams the digits as the demo's producer does, with pictures for people. Its camera degrades when it is
asked to, as nobody knows how fast a person labels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from service.demo.journal import PRODUCER_FILE, Journal
from service.demo.person.pictures import picture_uri
from service.demo.process import GO_FILE, Record, parse_arguments
from service.demo.producer import Classifier, PredictionStream, publish
from service.demo.world import World, load_split
from service.domain.arrays import Floats

DEGRADE_FILE = "degrade"
"""The camera degrades as soon as a file of this name is in the folder."""

PAUSE_FILE = "pause"
"""The stream is slow while a file of this name is in the folder."""

_SLOWER = 30
"""How many times slower: the broker keeps the stream in memory, and a person may take hours."""


@dataclass
class PictureStream(PredictionStream):
    """A stream whose payloads are pictures; files say when its camera degrades and when it is slow."""

    degrade_file: Path = Path(DEGRADE_FILE)
    pause_file: Path = Path(PAUSE_FILE)

    def records(self, now: float, count: int) -> Iterator[Record]:
        """As many predictions as are due, of which there are few in a pause."""
        return super().records(now, -(-count // _SLOWER) if self.pause_file.exists() else count)

    def degrades(self, now: float) -> bool:
        """Whether the camera is to degrade now, at a time in seconds since the epoch."""
        return super().degrades(now) or self.degrade_file.exists()

    def payloads(self, numbers: Sequence[int], _pixels: Floats, /) -> list[Any]:
        """What a person sees: the digit without the camera's noise and blur, so that the label is true."""
        return [picture_uri(image) for image in self.world.pixels(numbers, degraded=False)]


def main() -> None:
    """Train, then stream until SIGTERM."""
    given = parse_arguments("Streams the predictions of the demo that a person labels.")

    def trained(journal: Journal) -> PictureStream:
        digits = load_split(given.seed)
        return PictureStream(
            World(given.seed, digits),
            Classifier(digits.training_images, digits.training_classes),
            journal,
            degrade_after_seconds=float("inf"),
            degrade_file=given.folder / DEGRADE_FILE,
            pause_file=given.folder / PAUSE_FILE,
        )

    publish(
        given.config.kafka,
        trained,
        path=given.folder / PRODUCER_FILE,
        may_begin=(given.folder / GO_FILE).exists,
    )


if __name__ == "__main__":
    main()
