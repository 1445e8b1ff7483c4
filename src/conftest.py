"""Doctests of modules that need an optional library are left out where it is missing."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("sktime") else ["sapwood/sktime/*"]
