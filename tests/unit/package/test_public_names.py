"""No public name of a release disappears without having been deprecated."""

import importlib
import importlib.util
import warnings

import pytest

from places import DATA, ROOT
from public_names import PACKAGES, public_names

RELEASES = sorted(DATA.glob("public_names-*.txt"))
REMOVED: set[str] = set()
"""Names that were deprecated for one release and are gone; each with a line in the changelog."""


def is_there(name):
    """Return whether a listed name can still be used; a deprecation warning is no fault."""
    package, *rest = _split(name)
    found = importlib.import_module(package)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        for part in rest:
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
    return True


def _split(name):
    parts = name.split(".")
    depth = 2 if len(parts) > 1 and parts[1].islower() and _is_package(".".join(parts[:2])) else 1
    return [".".join(parts[:depth]), *parts[depth:]]


def _is_package(name):
    try:
        importlib.import_module(name)
    except ImportError:
        return False
    return True


@pytest.mark.parametrize("listing", RELEASES, ids=lambda path: path.stem)
def test_names_of_a_release_are_still_there(listing):
    names = listing.read_text(encoding="utf-8").split()
    assert len(names) > 300
    assert [name for name in names if name not in REMOVED and not is_there(name)] == []


def test_a_removed_name_is_noticed(monkeypatch):
    import sapwood

    name = "sapwood.HoeffdingTreeRegressor.prune"
    assert is_there(name)
    assert name in public_names()
    monkeypatch.delattr(sapwood.HoeffdingTreeRegressor, "prune")
    assert not is_there(name)


def test_the_listing_has_all_documented_modules():
    path = ROOT / "docs" / "site_pages.py"
    spec = importlib.util.spec_from_file_location("site_pages", path)
    pages = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pages)
    assert {*pages.PUBLIC, *pages.ADVANCED} <= set(PACKAGES)


@pytest.mark.parametrize("name", ["sapwood", "sapwood.streams"])
def test_completion_offers_public_names_only(name):
    module = importlib.import_module(name)
    offered = [each for each in dir(module) if not each.startswith("_")]
    assert {*module.__all__} <= {*offered}
    assert not {"Any", "TYPE_CHECKING", "import_module"} & {*offered}
    assert all(is_there(f"{name}.{each}") for each in offered)
