"""Checkpoints of a driver: the model and how far the source was read, after a whole round."""

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.evaluate.checkpoint import CheckpointError
from sapwood.storage import container
from sapwood.storage.atomic import StrPath
from sapwood.storage.container import ModelFileError

__all__ = ["load_checkpoint", "save_checkpoint"]

KIND = "sapwood rounds"


def save_checkpoint(
    path: StrPath,
    identity: dict[str, Any],
    state: dict[str, Any],
    model: bytes,
    scores: NDArray[np.float64],
) -> None:
    """Write a checkpoint: it is there as a whole, or the one before still is."""
    content: dict[str, NDArray[Any]] = {"model": np.frombuffer(model, np.uint8), "scores": scores}
    container.write(path, KIND, {"identity": identity, "state": state}, content)


def load_checkpoint(
    path: StrPath, identity: dict[str, Any]
) -> tuple[dict[str, Any], bytes, NDArray[np.float64]] | None:
    """Return the state, the model and the scores of a checkpoint; None if there is none.

    - Raises CheckpointError if it is of another job, or damaged.
    """
    if not os.path.exists(path):
        return None
    try:
        header, arrays = container.read(path, KIND)
    except ModelFileError as error:
        raise CheckpointError(f"{error}, or remove it to start over") from None
    saved = header["identity"]
    for name, value in identity.items():
        if saved.get(name) != value:
            raise CheckpointError(
                f"{os.fspath(path)!s} is of a job with another {name}: name another file, or "
                "remove it to start over"
            )
    return header["state"], arrays["model"].tobytes(), arrays["scores"]
