"""Changes: detectors of them in any numbers, and a monitor of a stream beside any model."""

from sapwood.drift.detector import Change, ChangeDetector

__all__ = ["Change", "ChangeDetector"]
