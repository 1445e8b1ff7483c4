"""List the public names of the package: ``python tests/support/public_names.py > FILE``.

A public name is one that a public package exports by ``__all__``, or an attribute of an exported
class without a leading underscore.
"""

import importlib
import inspect

PACKAGES = (
    "sapwood",
    "sapwood.classify",
    "sapwood.drift",
    "sapwood.evaluate",
    "sapwood.export",
    "sapwood.hybrid",
    "sapwood.lags",
    "sapwood.loss",
    "sapwood.merge",
    "sapwood.observers",
    "sapwood.plot",
    "sapwood.recurring",
    "sapwood.report",
    "sapwood.river",
    "sapwood.scale",
    "sapwood.schema",
    "sapwood.screening",
    "sapwood.sklearn",
    "sapwood.stages",
    "sapwood.streams",
    "sapwood.sparse",
    "sapwood.transform",
    "sapwood.views",
)


def public_names():
    """Return the names, sorted."""
    names = set()
    for package in PACKAGES:
        module = importlib.import_module(package)
        for name in module.__all__:
            found = getattr(module, name)
            names.add(f"{package}.{name}")
            if inspect.isclass(found) and found.__module__.startswith("sapwood"):
                members = {member for base in _own_bases(found) for member in vars(base)}
                names |= {f"{package}.{name}.{each}" for each in members if each[0] != "_"}
    return sorted(names)


def _own_bases(found):
    return [base for base in found.__mro__ if base.__module__.startswith("sapwood")]


if __name__ == "__main__":
    print(*public_names(), sep="\n")
