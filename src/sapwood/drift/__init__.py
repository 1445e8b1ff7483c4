"""Concept drift: detectors for any numbers, and a monitor for a stream and the errors of a model."""

from typing import Any

from sapwood.deprecation import deprecated
from sapwood.drift.detector import Change, ChangeDetector
from sapwood.drift.monitor import DriftEvent, Monitor

__all__ = ["Change", "ChangeDetector", "DriftEvent", "Monitor"]


def __getattr__(name: str) -> Any:
    """Return what an old name stands for, with a warning."""
    if name == "Alarm":
        deprecated("sapwood.drift.Alarm", "sapwood.drift.DriftEvent")
        return DriftEvent
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
