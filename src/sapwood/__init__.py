"""Sapwood: online regression trees that learn from a stream one row at a time."""

from importlib.metadata import version

from sapwood.moments import Moments
from sapwood.observers import (
    Candidates,
    EBSTObserver,
    Observer,
    QuantizerObserver,
    Split,
    TEBSTObserver,
)

__all__ = [
    "Candidates",
    "EBSTObserver",
    "Moments",
    "Observer",
    "QuantizerObserver",
    "Split",
    "TEBSTObserver",
]

__version__ = version("sapwood")
