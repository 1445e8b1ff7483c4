"""The files that a command names: all can be written, and no two of them are one."""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path

from sapwood.cli.failure import UsageError
from sapwood.cli.values import split_spec
from sapwood.streams.kafka_address import is_kafka
from sapwood.streams.opening import found_files, would_be_read
from sapwood.streams.stream import StreamError

__all__ = ["CONFIG", "STDOUT", "check_files", "is_stdout"]

STDIN = STDOUT = "-"
NAMES_OF_STDOUT = (STDOUT, "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")
READ = "is read"
PRINTED = {1: "is standard output", 2: "is standard error"}

CONFIG: ContextVar[Path | None] = ContextVar("config", default=None)
"""The file of --config, while a command runs that was given one."""

Identity = tuple[int, int, str]
"""Device and number of a file, and ""; or those of the folder it will be in, and its name."""


def is_stdout(path: Path | None) -> bool:
    """Whether a path means the standard output of this process.

    Examples
    --------
    >>> is_stdout(Path("-")), is_stdout(Path("/dev/stdout")), is_stdout(None)
    (True, True, False)
    """
    return str(path) in NAMES_OF_STDOUT


def check_files(
    whole: Mapping[str, Path | None],
    growing: Mapping[str, Path | None] | None = None,
    *,
    read: Sequence[str | Path] = (),
    format: str | None = None,
    models: Sequence[str] = (),
    checkpoint: Path | None = None,
    printed: str | None = None,
    settings: Mapping[str, Path | None] | None = None,
) -> None:
    """Complain of files that cannot be written later: before hours of work, not after.

    Two names are those of one file if device and number are, so that links of both kinds, other
    spellings and open descriptors are seen through. A file that does not exist yet is identified
    by its folder and its name.

    - `whole`: files that are written at once, in the end.
    - `growing`: files that are written on the way; they may be pipes, and "-" is standard output.
    - `read`: streams and models that are read meanwhile, and have to stay as they are; folders and
      patterns mean files, as for `open_stream`.
    - `format`: the format of the streams, if given: it decides which files of a folder are read.
    - `models`: models by name. A file among them may be replaced by --save alone, as it is read
      before.
    - `checkpoint`: the file of --checkpoint, which needs other files next to it.
    - `settings`: files that are read for settings, such as --kafka-config; that of --config is
      known.
    - Raises OSError, UsageError if the system would not let a file be written, or it cannot be
      meant.
    """
    files = [_file_of(str(name)) for name in read if not is_kafka(name)]
    uses = _Uses(files, format, models, {"--config": CONFIG.get(), **(settings or {})})
    for option, path in (growing or {}).items():
        if path is None:
            continue
        if not is_stdout(path):
            _check_place(path)
            uses.add(path, option)
        elif printed is not None:
            raise UsageError(f"{option} {path}: standard output is for {printed}, name a file")
        else:
            printed = option
    for option, path in {**whole, "--checkpoint": checkpoint}.items():
        if path is None:
            continue
        if is_stdout(path) or (path.exists() and not (path.is_file() or path.is_dir())):
            raise UsageError(f"{option} {path}: it is written as a whole, so name a file")
        _check_place(path, replaced=True)
        uses.add(path, option)
    if checkpoint is not None:
        from sapwood.evaluate.checkpoint import CheckpointFile

        for path in map(Path, CheckpointFile(checkpoint).companions):
            _check_no_folder(path)
            uses.add(path, "--checkpoint", f"{checkpoint}, which needs {path}")


class _Uses:
    """What each file is for, of those that a command names."""

    def __init__(
        self,
        read: Sequence[str],
        format: str | None,
        models: Sequence[str],
        settings: Mapping[str, Path | None],
    ) -> None:
        self._read, self._format = read, format
        self._uses = _uses_by_reading(read, format)
        for option, path in settings.items():
            for identity in () if path is None else _identities(path):
                self._uses.setdefault(identity, f"{READ} as {option}")
        self._models = {identity for name in models for identity in _identities(_file_of(name))}
        for descriptor, words in PRINTED.items():
            for identity in _of_descriptor(descriptor):
                if self._uses.get(identity, "").startswith(READ):
                    raise UsageError(f"the file that {words} {READ}, too: let it go to another")
                self._uses[identity] = words

    def add(self, path: Path, option: str, named: str = "") -> None:
        """Let a file be for an option; complain if it is for anything else already."""
        typed = f"{option} {named or path}"
        for identity in _identities(path):
            use = self._uses.get(identity)
            if identity in self._models and option != "--save":
                use = "is read as a model"
            if use is not None:
                raise UsageError(f"{typed}: the same file {use}, name another")
            self._uses[identity] = f"is for {option}"
        for name in self._read:
            if would_be_read(os.fspath(path), name, self._format):
                raise UsageError(f"{typed}: it would be read as a part of {name}, name another")


def _check_place(path: Path, replaced: bool = False) -> None:
    """Complain of a file that the system would not let be written, or be replaced by another."""
    _check_no_folder(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "there is no such folder", str(path.parent))
    needed = [path] if path.exists() else []
    if replaced or not needed:
        needed.append(Path(os.path.realpath(path)).parent)
    if not all(os.access(place, os.W_OK) for place in needed):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))


def _check_no_folder(path: Path) -> None:
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))


def _uses_by_reading(read: Sequence[str], format: str | None) -> dict[Identity, str]:
    found: dict[Identity, str] = {}
    for name in read:
        if name == STDIN:
            found.update(dict.fromkeys(_of_descriptor(0), READ))
        for path in _files_of(name, format):
            found.update(dict.fromkeys(_identities(path), READ))
    return found


def _file_of(name: str) -> str:
    """Return the file of a name that options may follow after a colon."""
    return name if os.path.exists(name) else split_spec(name)[0]


def _files_of(name: str, format: str | None) -> Sequence[str]:
    """Return the files that are read of a file, a folder or a pattern."""
    with contextlib.suppress(StreamError):  # a missing file is reported when it is opened
        found = found_files(name, format)
        if found != [name] or not os.path.isdir(name):
            return found
        from sapwood.streams.columnar import files_of

        return files_of(name)
    return []


def _identities(path: str | Path) -> Iterator[Identity]:
    """Yield what identifies a file; nothing for a device, which may be named twice."""
    try:
        yield from _of_status(os.stat(path))
    except (FileNotFoundError, NotADirectoryError):
        folder, name = os.path.split(os.path.realpath(path))
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            found = os.stat(folder)
            yield found.st_dev, found.st_ino, name.casefold() if _ignores_case(folder) else name


def _of_descriptor(number: int) -> Iterator[Identity]:
    with contextlib.suppress(OSError):  # it is closed
        yield from _of_status(os.fstat(number))


def _of_status(found: os.stat_result) -> Iterator[Identity]:
    if stat.S_ISREG(found.st_mode) or stat.S_ISFIFO(found.st_mode):
        yield found.st_dev, found.st_ino, ""


def _ignores_case(folder: str) -> bool:
    """Whether two names in a folder that differ in case alone are one, as far as can be seen."""
    with contextlib.suppress(OSError):
        return folder.swapcase() != folder and os.path.samefile(folder, folder.swapcase())
    return False
