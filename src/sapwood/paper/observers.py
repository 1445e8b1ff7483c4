"""The observers that the study compares, by name."""

import inspect
from collections.abc import Callable
from typing import NamedTuple, Protocol

from numpy.typing import ArrayLike

from sapwood.factories import find_factory, make
from sapwood.observers import EBSTObserver, QuantizerObserver, Split, TEBSTObserver
from sapwood.paper.errors import StudyError

__all__ = ["AUTO", "EXHAUSTIVE", "OURS", "PAPERS", "Contender", "Factory", "find_contender"]

EXHAUSTIVE = "E-BST"
AUTO = "QO auto"


class Contender(Protocol):
    """The part of the observer protocol that the study calls."""

    def update_many(self, x: ArrayLike, y: ArrayLike) -> None:
        """Watch many observations, one after the other."""

    def best_split(self) -> Split | None:
        """Return the cut of the largest merit."""

    def __len__(self) -> int:
        """Count the elements that are stored."""

    @property
    def nbytes(self) -> int:
        """Bytes that the observer occupies."""


class Factory(NamedTuple):
    """A named way to make an empty observer, given the standard deviation of x."""

    name: str
    make: Callable[[float], Contender]


# The paper cuts midway between prototypes; `cut` moves the threshold and no merit.
PAPERS = {
    EXHAUSTIVE: Factory(EXHAUSTIVE, lambda sd: EBSTObserver()),
    "TE-BST": Factory("TE-BST", lambda sd: TEBSTObserver(digits=3)),
    "QO 0.01": Factory("QO 0.01", lambda sd: QuantizerObserver(0.01, cut="prototype")),
    "QO σ/3": Factory("QO σ/3", lambda sd: QuantizerObserver(sd / 3, cut="prototype")),
    "QO σ/2": Factory("QO σ/2", lambda sd: QuantizerObserver(sd / 2, cut="prototype")),
}
OURS = {AUTO: Factory(AUTO, lambda sd: QuantizerObserver())}


def find_contender(name: str) -> Factory:
    """Return the factory of an observer.

    - `name`: one of `PAPERS` or `OURS`, or ``module:factory``: a class or function that makes an
      empty observer. If it has a required argument it is given the standard deviation of x, as the
      paper's σ/2 and σ/3 are; otherwise it is called without.
    - Raises StudyError if there is no such factory, or what it makes is no observer.

    Examples
    --------
    >>> find_contender("sapwood:QuantizerObserver").make(1.0)
    <QuantizerObserver(radius='auto', slots=128, cut='border', targets=1) with 0 elements>
    """
    known = PAPERS | OURS
    if name in known:
        return known[name]

    def complaint(words: str) -> StudyError:
        return StudyError(f"observer {name}: {words}")

    module_name, colon, path = name.partition(":")
    if not (module_name and colon and path):
        raise complaint(
            f"unknown; the study has {', '.join(known)}, and others are given as module:factory"
        )
    found = Factory(name, _as_given_sd(find_factory(name, complaint), complaint))
    made = make(found.make, complaint, 1.0)
    missing = [
        member
        for member in ("update_many", "best_split", "__len__", "nbytes")
        if not hasattr(made, member)
    ]
    if missing:
        raise complaint(f"{made!r} has no {', '.join(missing)}")
    return found


def _as_given_sd(
    factory: Callable[..., Contender], complaint: Callable[[str], StudyError]
) -> Callable[[float], Contender]:
    try:
        parameters = inspect.signature(factory).parameters.values()
    except ValueError:  # a compiled factory need not have a signature
        return lambda sd: factory()
    required = [
        parameter.name
        for parameter in parameters
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    if len(required) > 1:
        raise complaint(
            f"the factory requires {', '.join(required)}; it may require one argument, the "
            "standard deviation of x"
        )
    return factory if required else lambda sd: factory()
