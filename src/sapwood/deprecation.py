"""Names of earlier releases, which warn for one release before they go."""

import warnings

__all__ = ["deprecated"]


def deprecated(old: str, new: str) -> None:
    """Warn that a name goes with the next release.

    - `old`, `new`: the call as it is, and as it should be.
    """
    warnings.warn(
        f"{old} is deprecated and goes with the next release: use {new}",
        DeprecationWarning,
        stacklevel=3,
    )
