"""Checkpoints: the whole state of a run in one checked file, and the previous state in another."""

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sapwood import model, validation
from sapwood.evaluate.run import SAMPLE
from sapwood.model import StoredModel
from sapwood.storage import container
from sapwood.storage.atomic import StrPath, remove_unfinished, write_atomically
from sapwood.storage.container import ModelFileError
from sapwood.storage.lock import Held, hold
from sapwood.system import system

__all__ = ["CheckpointError", "CheckpointFile", "Saved"]

KIND = "sapwood checkpoint"
MODEL = "model"


class Resumable(Protocol):
    """A run that can be saved together with its model, such as `Prequential`."""

    @property
    def model(self) -> Any:
        """The model as it is now."""

    def to_state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return what `restore` needs, but for the model."""

    def restore(self, header: dict[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Go on from what `to_state` returned."""


class CheckpointError(ValueError):
    """A checkpoint cannot be used; the message names the reason and the remedy."""


@dataclass(frozen=True)
class Saved:
    """What a checkpoint holds.

    Parameters
    ----------
    identity : dict
        What was evaluated on what, as given to `CheckpointFile.save`.
    outputs : dict of str to int
        The lengths that files had, which are written along with the run.
    model : object
        The model as it was.
    """

    identity: dict[str, Any]
    outputs: dict[str, int]
    model: Any
    _source: str
    _run: dict[str, Any]
    _arrays: dict[str, NDArray[Any]]

    def resume(self, run: Resumable) -> None:
        """Let a run of the same model and stream go on from here.

        Raises
        ------
        CheckpointError
            If it was saved by a run of another kind; nothing is changed then.
        """
        try:
            run.restore(self._run, self._arrays)
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointError(
                f"{self._source} is not of such a run ({_words_of(error)}): name another file, or "
                "remove it to start over"
            ) from None


class CheckpointFile:
    """A file for the latest state of a run, and another, ``FILE.previous``, for the one before.

    Either is there as a whole or not at all, and carries a checksum. A new state is first written
    to a third file; then the latest becomes the previous one, and the new one the latest. Whenever the
    process or the machine dies, at least one good state is left, and a damaged latest one is
    never let replace a good previous one.

    Parameters
    ----------
    path : str or path
        The file. A symbolic link stays one: all of these files are where it leads.
    """

    def __init__(self, path: StrPath) -> None:
        self.path = os.fsdecode(path)
        self._latest = os.path.realpath(self.path)
        base = self._latest if os.path.islink(self.path) else self.path
        self.previous = f"{base}.previous"
        self._next = f"{base}.next"
        self._lock = f"{self._latest}.lock"
        self.warning: str | None = None
        self._latest_is_good = False

    @property
    def companions(self) -> tuple[str, ...]:
        """The other files of the checkpoint, which may exist now or later."""
        return self.previous, self._next, self._lock

    @contextlib.contextmanager
    def hold(self) -> Iterator[bool]:
        """Keep the checkpoint from other runs, as two would undo each other's work.

        ``FILE.lock`` is there meanwhile; if the process dies, the next one is let in all the same.

        Yields
        ------
        bool
            False where the system cannot lock files, so that nothing keeps others away.

        Raises
        ------
        CheckpointError
            If another process, or another run in this one, holds it.
        OSError
            If the folder lets no file be made.
        """
        try:
            with hold(self._lock) as is_sure:
                yield is_sure
        except Held as error:
            holder = "" if error.process is None else f", process {error.process}"
            raise CheckpointError(
                f"{self.path} is in use by another run{holder}: wait for its end, or name another "
                "file"
            ) from None

    def load(self, like: Any = None) -> Saved | None:
        """Return the newest good state; None if there is none at all.

        `warning` then states whether a newer one could not be read, and why.

        Parameters
        ----------
        like : object, optional
            A model of the class that was saved, if it is none of Sapwood's.

        Raises
        ------
        CheckpointError
            If there are files, but none can be read.
        """
        complaints: list[str] = []
        self._remove_unfinished()
        for path in (self.path, self.previous):
            try:
                saved = _read(path, like)
            except FileNotFoundError:
                continue
            except ModelFileError as error:
                complaints.append(str(error))
                continue
            self._latest_is_good = path == self.path
            if complaints:
                self.warning = f"{complaints[0]}. Going on from the one before, {path}"
            return saved
        if complaints:
            raise CheckpointError(f"{'; '.join(complaints)}; or remove it to start over")
        return None

    def sample(self) -> bytes | None:
        """Return the first rows by which the saved run has found columns, if it has kept them."""
        for path in (self.path, self.previous):
            with contextlib.suppress(FileNotFoundError, ModelFileError):
                _, arrays = container.read(path, KIND)
                return arrays[SAMPLE].tobytes() if SAMPLE in arrays else None
        return None

    def save(self, run: Resumable, identity: dict[str, Any], outputs: dict[str, int]) -> None:
        """Save the state of a run between two of its steps.

        Raises
        ------
        OSError
            If it cannot be written; the older ones are as they were.
        """
        state, arrays = run.to_state()
        content = np.frombuffer(run.model.to_bytes(), np.uint8)
        header = {"identity": identity, "outputs": outputs, "run": state}
        data = container.pack(KIND, header, {**arrays, MODEL: content})
        if not (self._latest_is_good and _is_whole(self.path)):
            write_atomically(self.path, data)  # where a link leads
        else:
            try:
                write_atomically(self._next, data)
            except OSError as error:
                error.filename = self.path
                raise
            system.replace(self._latest, self.previous)
            system.replace(self._next, self._latest)
        self._latest_is_good = True

    def _remove_unfinished(self) -> None:
        """Remove what a run that was killed while it saved has left behind."""
        for path in (self._latest, self._next):
            remove_unfinished(path)


def _model_of(data: bytes, like: Any, path: str) -> Any:
    """Return the model that was saved: one of ours, or of the class of another one."""
    if like is None or isinstance(like, StoredModel):
        return model.from_bytes(data, f"the model in {path}")
    try:
        return type(like).from_bytes(data)
    except Exception as error:
        raise container.damaged(
            path, f"its {type(like).__name__} cannot be read: {error}"
        ) from error


def _read(path: str, like: Any) -> Saved:
    header, arrays = container.read(path, KIND)
    try:
        data = arrays.pop(MODEL).tobytes()
        identity, outputs, run = header["identity"], header["outputs"], header["run"]
        if not all(isinstance(entry, dict) for entry in (identity, outputs, run)):
            raise TypeError("identity, outputs and run are no dicts")
        for name, length in outputs.items():
            validation.whole(length, f"the length of {validation.shown(name)}", 0, 2**63)
    except (KeyError, TypeError, ValueError) as error:
        raise container.damaged(path, _words_of(error)) from None
    return Saved(identity, outputs, _model_of(data, like, path), path, run, arrays)


def _is_whole(path: str) -> bool:
    """Whether a file that was good still is, as it is about to replace another."""
    with contextlib.suppress(FileNotFoundError, ModelFileError):
        container.read(path, KIND)
        return True
    return False


def _words_of(error: Exception) -> str:
    """Return what is wrong with what was saved, in words."""
    return f"it has no entry {error}" if isinstance(error, KeyError) else str(error)
