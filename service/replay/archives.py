"""Readers of npz archives of arrays."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from service.domain.errors import RecordingError
from service.replay.columns import Columns, no_attribute

_UNREADABLE = (ValueError, EOFError, RuntimeError, BadZipFile, zlib.error)
"""What numpy and zipfile raise for archives that are damaged, encrypted, or none at all."""


def read_arrays(
    path: Path, *, needed: Sequence[str], wished: Sequence[str] | None, attribute: str | None = None
) -> dict[str, npt.NDArray[Any]]:
    """Read arrays of an npz archive, by name; those that are wished only where they are, None for all.

    An attribute is needed too, if one is named.

    Raises:
        RecordingError: it is no such archive, or an array is missing or cannot be read.
        OSError: the file cannot be opened.
    """
    # numpy leaves a file open that it opened itself and could not read.
    with path.open("rb") as handle:
        try:
            archive = np.load(handle, allow_pickle=False)
            names = archive.files
        # One array by itself has no files.
        except (*_UNREADABLE, AttributeError) as error:
            raise RecordingError(
                path,
                "it is no npz archive, or a damaged one; write it again with numpy.savez or "
                "numpy.savez_compressed",
            ) from error
        for name in needed:
            if name not in names:
                arguments = ", ".join(f"{each}=..." for each in needed)
                raise RecordingError(
                    path, f"there is no array '{name}'; save it with numpy.savez(path, {arguments})"
                )
        if attribute is not None and attribute not in names:
            raise RecordingError(path, no_attribute(attribute, "array", names))
        read = (*needed, *(names if wished is None else wished), *([] if attribute is None else [attribute]))
        return {name: _array(path, archive, name) for name in read if name in names}


def read_npz(path: Path, *, decision_values: bool = False, attribute: str | None = None) -> Columns:
    """Read the arrays `probabilities` and `labels`, and where they are, `predicted` and `decision_values`.

    Decision values and an attribute are read only if they are wished; other arrays are ignored.

    Raises:
        RecordingError: it is no such archive, or an array is missing or cannot be read.
        OSError: the file cannot be opened.
    """
    wished = ["predicted", *(["decision_values"] if decision_values else [])]
    arrays = read_arrays(path, needed=("probabilities", "labels"), wished=wished, attribute=attribute)
    return Columns(
        path,
        arrays["probabilities"],
        arrays["labels"],
        arrays.get("predicted"),
        arrays.get("decision_values"),
        attribute=None if attribute is None else arrays[attribute],
    )


def _array(path: Path, archive: np.lib.npyio.NpzFile[Any], name: str) -> npt.NDArray[Any]:
    try:
        return np.asarray(archive[name])
    except _UNREADABLE as error:
        raise RecordingError(
            path,
            f"array '{name}' is damaged, or holds Python objects, which are never unpickled; "
            "save it again as numbers",
        ) from error
