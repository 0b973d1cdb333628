"""Images as another camera would have taken them: noisier, out of focus, or held askew."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
from scipy import ndimage

from service.domain.arrays import Floats
from service.replay.digits import digits_recordings, digits_split
from service.replay.recording import Recording

_SEED = 0
_PIXELS = 8

_NOISE = 0.3
_BLUR_PIXELS = 0.7
_SHIFT_PIXELS = 1
"""Of 8 by 8 pixels, each is enough to tell, and little enough that a person would hardly be wrong."""


def noisy(images: Floats, rng: np.random.Generator) -> Floats:
    """Images [N, H, W] with normal noise of a deviation of 0.3 on every pixel, cut off where images end."""
    return np.clip(images + rng.normal(0.0, _NOISE, images.shape), 0.0, 1.0)


def blurred(images: Floats, rng: np.random.Generator) -> Floats:  # noqa: ARG001 - one signature for all of them
    """Images with every pixel spread over its neighbours, by a normal density of 0.7 pixels."""
    return np.asarray(ndimage.gaussian_filter(images, (0.0, _BLUR_PIXELS, _BLUR_PIXELS)), np.float64)


def shifted(images: Floats, rng: np.random.Generator) -> Floats:  # noqa: ARG001 - one signature for all of them
    """Images a pixel to the right; black comes in."""
    moved = np.zeros_like(images)
    moved[:, :, _SHIFT_PIXELS:] = images[:, :, :-_SHIFT_PIXELS]
    return moved


CORRUPTIONS: Final[Mapping[str, Callable[[Floats, np.random.Generator], Floats]]] = {
    "noise": noisy,
    "blur": blurred,
    "shift": shifted,
}
"""By name."""


def corrupted_recordings(name: str) -> list[Recording]:
    """`digits_recordings` where the images that are recorded, and no others, are corrupted in a way.

    Raises:
        RecordingError: scikit-learn is missing.
    """
    split = digits_split()
    # Of all images, so that those for training can be left as they are.
    square = split.images.reshape(-1, _PIXELS, _PIXELS)
    images = CORRUPTIONS[name](square, np.random.default_rng(_SEED)).reshape(len(square), -1)
    images[split.training] = split.images[split.training]
    return digits_recordings(split._replace(images=images))
