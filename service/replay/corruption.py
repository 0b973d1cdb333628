"""Images as another camera would have taken them: noisier, out of focus, or held askew."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
from scipy import ndimage

from service.domain.arrays import Floats

_NOISE = 0.3
_BLUR_PIXELS = 0.7
_SHIFT_PIXELS = 1
"""Of 8 by 8 pixels, each is enough to tell, and little enough that a person would hardly be wrong."""


def noisy(images: Floats, rng: np.random.Generator) -> Floats:
    """With normal noise of a deviation of 0.3 on every pixel, cut off where images end.

    Args:
        images: brightness within 0 and 1 [N, H, W].
        rng: for the noise.
    """
    return np.clip(images + rng.normal(0.0, _NOISE, images.shape), 0.0, 1.0)


def blurred(images: Floats, rng: np.random.Generator) -> Floats:  # noqa: ARG001 - one signature for all of them
    """With every pixel spread over its neighbours, as a normal density with a deviation of 0.7 pixels.

    Args:
        images: brightness within 0 and 1 [N, H, W].
        rng: is not needed.
    """
    return np.asarray(ndimage.gaussian_filter(images, (0.0, _BLUR_PIXELS, _BLUR_PIXELS)), np.float64)


def shifted(images: Floats, rng: np.random.Generator) -> Floats:  # noqa: ARG001 - one signature for all of them
    """A pixel to the right; black comes in.

    Args:
        images: brightness within 0 and 1 [N, H, W].
        rng: is not needed.
    """
    moved = np.zeros_like(images)
    moved[:, :, _SHIFT_PIXELS:] = images[:, :, :-_SHIFT_PIXELS]
    return moved


CORRUPTIONS: Final[Mapping[str, Callable[[Floats, np.random.Generator], Floats]]] = {
    "noise": noisy,
    "blur": blurred,
    "shift": shifted,
}
"""By name."""
