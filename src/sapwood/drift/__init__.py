"""Changes: detectors of them in any numbers, and a monitor of a stream beside any model."""

from sapwood.drift.detector import Change, ChangeDetector
from sapwood.drift.monitor import Alarm, Monitor

__all__ = ["Alarm", "Change", "ChangeDetector", "Monitor"]
