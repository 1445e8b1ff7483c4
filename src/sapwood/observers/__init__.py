"""Observers: what a leaf watches a feature with."""

from sapwood.observers.ebst import EBSTObserver, TEBSTObserver
from sapwood.observers.protocol import Candidates, Observer, Split
from sapwood.observers.quantizer import QuantizerObserver

__all__ = [
    "Candidates",
    "EBSTObserver",
    "Observer",
    "QuantizerObserver",
    "Split",
    "TEBSTObserver",
]
