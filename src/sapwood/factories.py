"""Find a user's class or function by its name, ``module:factory``, and report errors in it."""

import sys
from collections.abc import Callable
from importlib import import_module
from operator import attrgetter
from typing import Any

__all__ = ["find_factory", "make", "see_current_folder"]

Complaint = Callable[[str], Exception]
"""Makes the error that is raised out of what is wrong."""


def find_factory(name: str, complaint: Complaint) -> Callable[..., Any]:
    """Import a factory.

    - `name`: the module, a colon, and the class or function in it; that may have dots.
    - `complaint`: makes the error out of words.

    Examples
    --------
    >>> find_factory("collections:Counter", ValueError)("abba")
    Counter({'a': 2, 'b': 2})
    >>> find_factory("collections:Forest", lambda words: ValueError(f"model: {words}"))
    Traceback (most recent call last):
    ValueError: model: module collections has no Forest: AttributeError: module 'collections' ...
    """
    module_name, _, path = name.partition(":")
    try:
        module = import_module(module_name)
    except Exception as error:  # whatever somebody else's code raises
        words = f"module {module_name} cannot be imported: {_described(error)}"
        raise complaint(words) from error
    try:
        factory: Callable[..., Any] = attrgetter(path)(module)
    except Exception as error:
        raise complaint(f"module {module_name} has no {path}: {_described(error)}") from error
    if not callable(factory):
        raise complaint(f"{path} cannot be called")
    return factory


def make(
    factory: Callable[..., Any], complaint: Complaint, /, *arguments: Any, **parameters: Any
) -> Any:
    """Call a factory and return the result; an exception of it is raised as a complaint.

    Examples
    --------
    >>> make(int, ValueError, "x")
    Traceback (most recent call last):
    ValueError: making one failed: ValueError: invalid literal for int() with base 10: 'x'
    """
    try:
        return factory(*arguments, **parameters)
    except Exception as error:
        raise complaint(f"making one failed: {_described(error)}") from error


def see_current_folder() -> None:
    """Let modules in the current folder be found: for programs, which may lack it."""
    if "" not in sys.path:
        sys.path.insert(0, "")


def _described(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
