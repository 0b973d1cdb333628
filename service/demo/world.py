"""The demo's world: which image every item shows, which camera took it, and the truth.

Everything follows from a seed and the item's number, so the producer and the labeller agree without
communicating: the labeller knows the truth and never sees a prediction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy import ndimage

from service.domain.arrays import Floats, Indices

MODEL = "digits"
CLASSES = tuple(str(digit) for digit in range(10))
CAMERAS = ("gate", "dock")
DEGRADED_CAMERA = "dock"
DEGRADED_SHARE = 0.25  # of the traffic, that of the camera which degrades
DEGRADES_AFTER = 0.3  # part of the run after which the camera degrades
RATE = 300  # predictions per second
TRAINING_IMAGES = 600
BRIGHTEST = 16  # the digits' pixels are whole numbers from 0 to 16
_BLOCK = 1_024
_PIXEL_NOISE, _DEGRADED_NOISE, _DEGRADED_BLUR = 2.0, 8.0, 0.55
_LARGEST_SHIFT = 0.25
_ITEM_PREFIX = "img-"


@dataclass(frozen=True)
class Digits:
    """Scikit-learn's bundled digits, split into a training set and what is streamed."""

    training_images: Floats  # [n, 8, 8]: 64 pixels each
    training_classes: Indices  # index of the true class [n]
    images: Floats  # held out, [m, 8, 8]
    classes: Indices  # index of the true class of the held-out images [m]


def load_split(seed: int) -> Digits:
    """Load the digits and split them at random."""
    from sklearn.datasets import load_digits  # noqa: PLC0415 - an extra, and slow to import

    bunch: Any = load_digits()
    order = np.random.default_rng((seed, 0)).permutation(len(bunch.target))
    learned, held_out = order[:TRAINING_IMAGES], order[TRAINING_IMAGES:]
    return Digits(
        training_images=bunch.images[learned],
        training_classes=bunch.target[learned].astype(np.intp),
        images=bunch.images[held_out],
        classes=bunch.target[held_out].astype(np.intp),
    )


def item_id(number: int) -> str:
    """Id of an item; it says nothing about the item's class."""
    return f"{_ITEM_PREFIX}{number:06d}"


def item_number(identifier: str) -> int:
    """Number of an item, from its id."""
    return int(identifier.removeprefix(_ITEM_PREFIX))


class _Item(NamedTuple):
    image: int
    is_degraded_camera: bool
    shift: float
    axis: int
    noise: Floats


class World:
    """What every item shows, by the same seed for all who must agree, and the split that it makes."""

    def __init__(self, seed: int, digits: Digits) -> None:
        self._seed = seed
        self._digits = digits
        self._block = lru_cache(maxsize=8)(self._make_block)

    def true_class(self, number: int) -> str:
        """The true class of an item, whatever is predicted."""
        return CLASSES[int(self._digits.classes[self._item(number).image])]

    def cameras(self, numbers: Sequence[int]) -> list[str]:
        """Which camera took each item."""
        return [DEGRADED_CAMERA if self._item(n).is_degraded_camera else CAMERAS[0] for n in numbers]

    def pixels(self, numbers: Sequence[int], *, degraded: bool) -> Floats:
        """What the cameras deliver [n, 8, 8]: shifted and noisy, so that no two items are the same.

        `degraded` says whether the camera that degrades has done so by now.
        """
        which, is_degraded_camera, shifts, axes, noise = zip(*map(self._item, numbers), strict=True)
        image = self._digits.images[list(which)]
        shift, along_rows = np.array(shifts)[:, None, None], np.array(axes)[:, None, None] == 0
        moved = np.where(along_rows, np.roll(image, 1, axis=1), np.roll(image, 1, axis=2))
        seen = (1 - shift) * image + shift * moved
        spoilt = degraded & np.array(is_degraded_camera)
        seen[spoilt] = ndimage.gaussian_filter(seen[spoilt], (0, _DEGRADED_BLUR, _DEGRADED_BLUR))
        seen += np.stack(noise) * np.where(spoilt, _DEGRADED_NOISE, _PIXEL_NOISE)[:, None, None]
        pixels: Floats = np.clip(np.round(seen), 0, BRIGHTEST)
        return pixels

    def _item(self, number: int) -> _Item:
        return self._block(number // _BLOCK)[number % _BLOCK]

    def _make_block(self, block: int) -> list[_Item]:
        rng = np.random.default_rng((self._seed, 1, block))
        images = rng.integers(len(self._digits.images), size=_BLOCK).tolist()
        cameras = (rng.random(_BLOCK) < DEGRADED_SHARE).tolist()
        shifts = rng.uniform(0, _LARGEST_SHIFT, _BLOCK).tolist()
        axes = rng.integers(2, size=_BLOCK).tolist()
        noise = rng.normal(size=(_BLOCK, *self._digits.images.shape[1:]))
        return list(map(_Item, images, cameras, shifts, axes, noise))
