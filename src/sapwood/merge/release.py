"""By which release a snapshot or a delta was made: only the same one can read it."""

from typing import Any

import sapwood
from sapwood import validation
from sapwood.merge.errors import MergeError
from sapwood.records import check
from sapwood.storage.container import ModelFileError

__all__ = ["check_release", "of_this_release"]


def of_this_release(format: int, own: dict[str, Any]) -> dict[str, Any]:
    """Return a header with the format and the release."""
    return {"format": format, "version": sapwood.__version__, **own}


def check_release(
    header: dict[str, Any], names: set[str], format: int, source: str, message: str
) -> None:
    """Raise unless a header is one that `of_this_release` makes, with entries of these names.

    - `message`: the message about another release, with {made} and {here} for both.
    """
    names = {"format", "version", *names}
    check(header.keys() == names, "its header has other entries than it should")
    if validation.whole(header["format"], "format", 1, 2**31) > format:
        raise ModelFileError(f"{source} is of a newer release: upgrade sapwood")
    made, here = f"{header['version']!s:.40}", sapwood.__version__
    if header["version"] != here:
        raise MergeError(f"{source} {message.format(made=made, here=here)}")
