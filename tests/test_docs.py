"""The documentation: its links lead somewhere, it names what there is, its pictures are true."""

import importlib
import importlib.util
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pytest

from cases import PATIENCE
from sapwood import HoeffdingTreeRegressor
from sapwood.tree import _search

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PICTURES = DOCS / "pictures"
SCREENSHOT = "report.png"  # of the page that `make run` writes, in a browser
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]

FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def prose(page):
    return FENCED.sub("", page.read_text(encoding="utf-8"))


def anchors(page):
    """Return the anchors of headings, as GitHub makes them."""
    return {
        re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-")
        for heading in HEADING.findall(prose(page))
    }


def links(page):
    return [link for link in LINK.findall(prose(page)) if not link.startswith("http")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_link_of_a_page_leads_somewhere(page):
    for link in links(page):
        path, _, anchor = unquote(link).partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


# -- what a page installs --------------------------------------------------------------------------

INSTALLS = re.compile(r"^`(pip install [^`]+)`", re.MULTILINE)
IMPORTED = re.compile(
    r"^(?:>>>|\.\.\.)\s+(?:from|import) ([\w.]+)(?: import ([\w, ]+))?", re.MULTILINE
)
COMMANDS = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
NEEDS = {
    "river": "river",
    "sapwood.river": "river",
    "sklearn": "sklearn",
    "sapwood.sklearn": "sklearn",
    "matplotlib": "plot",
    "sapwood.plot": "plot",
    "sapwood.paper": "paper",
    "treelite": "export",
}
"""The extras that imports need."""
ALSO = {"cli": {"plot"}, "paper": {"cli", "plot"}}
"""What an extra brings along."""
LIBRARIES = ("pandas", "onnxruntime", "shap")
"""What is no part of an extra, and is named beside it."""
SNIPPETS = re.compile(r"^```(python|sh)$", re.MULTILINE)
WITH_SNIPPETS = [
    page
    for page in PAGES
    if page.stem != "README" and SNIPPETS.search(page.read_text(encoding="utf-8"))
]
"""Pages that need something; the README tells all ways to install."""


def needed(page):
    """Return the extras and libraries that the snippets and commands of a page need."""
    text = page.read_text(encoding="utf-8")
    names = set()
    for module, parts in IMPORTED.findall(text):
        names.add(module)
        names.update(f"{module}.{part.strip()}" for part in parts.split(","))
    extras = {
        extra
        for name in names
        for prefix, extra in NEEDS.items()
        if name == prefix or name.startswith(f"{prefix}.")
    }
    if re.search(r"(^|\| )sapwood (?!paper)", "".join(COMMANDS.findall(text)), re.MULTILINE):
        extras.add("cli")
    return extras, {name for name in LIBRARIES if name in {each.split(".")[0] for each in names}}


@pytest.mark.parametrize("page", WITH_SNIPPETS, ids=lambda page: page.stem)
def test_a_page_begins_with_the_line_that_installs_what_it_uses(page):
    first = page.read_text(encoding="utf-8").partition("\n## ")[0]
    [line] = INSTALLS.findall(first)
    named = re.search(r"sapwood\[([\w,]+)\]", line)
    extras = set(named[1].split(",")) if named else set()
    extras |= {also for extra in extras for also in ALSO.get(extra, ())}
    wanted, libraries = needed(page)
    assert wanted <= extras, line
    assert libraries <= set(line.split()), line


NUMBER = re.compile(r"(?<![\w.,/])\N{MINUS SIGN}?\d[\d,]*(?:\.\d+)?(?![\w/])")


def numbers(text):
    return {number.rstrip(",") for number in NUMBER.findall(text)}


def test_every_number_that_the_readme_boasts_of_is_on_the_page_of_the_benchmark():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    boasts = readme.partition("## What it reaches\n")[2].partition("\n## ")[0]
    measured = numbers((DOCS / "benchmark.md").read_text(encoding="utf-8"))
    assert len(numbers(boasts)) > 30
    assert numbers(boasts) <= measured


# -- the API --------------------------------------------------------------------------------------

API = (DOCS / "api.md").read_text(encoding="utf-8")
SECTION = re.compile(r"^##+ (sapwood[\w.]*)\n(.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
SECTIONS = dict(SECTION.findall(API))
ENTRY = re.compile(r"^- `(\w+)([^`]*)`(.*?)(?=^- |^\S|\Z)", re.MULTILINE | re.DOTALL)
MEMBERS = re.compile(r"^  - ((?:`\.[^`]+`,?\s*)+):", re.MULTILINE)
MEMBER = re.compile(r"`\.(\w+)([^`]*)`")

PACKAGES = [
    "sapwood",
    "sapwood.streams",
    "sapwood.evaluate",
    "sapwood.lags",
    "sapwood.merge",
    "sapwood.scale",
    "sapwood.plot",
    "sapwood.report",
    "sapwood.export",
    "sapwood.river",
    "sapwood.sklearn",
]


def spelled(something, bound=True):
    """Return a signature without types; the first parameter is left out if it is not bound."""
    signature = inspect.signature(something)
    parameters = [each.replace(annotation=each.empty) for each in signature.parameters.values()]
    kept = parameters if bound else parameters[1:]
    return str(signature.replace(parameters=kept, return_annotation=signature.empty))


def public_members(kind):
    """Return the names that a class has from us."""
    own = [each for each in kind.__mro__ if each.__module__.startswith("sapwood")]
    names = {
        name
        for each in own
        for name, value in vars(each).items()
        if (inspect.isroutine(value) or inspect.isdatadescriptor(value))
        and not type(value).__module__.startswith("sklearn")
    }
    names.update(name for each in own for name in inspect.get_annotations(each))
    return {name for name in names if not name.startswith("_")}


def test_the_page_has_all_packages():
    assert set(PACKAGES) <= set(SECTIONS)


@pytest.mark.parametrize("module", SECTIONS)
def test_the_page_names_all_that_is_public_and_nothing_else(module):
    entries = [name for name, _, _ in ENTRY.findall(SECTIONS[module])]
    assert sorted(entries) == sorted(importlib.import_module(module).__all__)


@pytest.mark.parametrize("module", SECTIONS)
def test_signatures_are_those_of_the_code(module):
    for name, signature, _ in ENTRY.findall(SECTIONS[module]):
        found = getattr(importlib.import_module(module), name)
        assert signature or not inspect.isfunction(found), name
        if signature:
            assert name + signature == name + spelled(found)


@pytest.mark.parametrize("module", SECTIONS)
def test_members_of_classes_are_those_of_the_code(module):
    named, there = set(), set()
    for name, _, rest in ENTRY.findall(SECTIONS[module]):
        kind = getattr(importlib.import_module(module), name)
        members = public_members(kind) if inspect.isclass(kind) else set()
        there |= members
        for group in MEMBERS.findall(rest):
            for member, signature in MEMBER.findall(group):
                assert member in members, f"{name}.{member}"
                named.add(member)
                value = inspect.getattr_static(kind, member, None)
                assert bool(signature) == inspect.isroutine(getattr(kind, member, None)), member
                if signature:
                    bound = isinstance(value, classmethod | staticmethod)
                    assert signature == spelled(getattr(kind, member), bound), f"{name}.{member}"
    # What several classes have is told of one of them.
    assert named == there


# -- the pictures ---------------------------------------------------------------------------------

NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
SIZE = re.compile(r'<svg [^>]*?width="([\d.]+)pt" height="([\d.]+)pt"', re.DOTALL)
MADE_BY = re.compile(r"Matplotlib v[\w.]+")


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("make_pictures", DOCS / "make_pictures.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def made(script, tmp_path_factory):
    """Return the pictures as they are made now, by their names."""
    folder = tmp_path_factory.mktemp("pictures")
    script.main(folder)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.long
def test_the_program_makes_the_same_bytes_each_time(made, tmp_path):
    subprocess.run(
        [sys.executable, DOCS / "make_pictures.py", tmp_path],
        env={**os.environ, "PYTHONHASHSEED": "5"},
        check=True,
        timeout=PATIENCE,
    )
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == made


def test_the_pictures_of_the_pages_are_those_that_are_made_now(made):
    # One test, as each process that runs tests would draw all pictures once more.
    used = {
        (page.parent / link).name
        for page in PAGES
        for link in links(page)
        if (page.parent / link).resolve().parent == PICTURES
    }
    kept = {path.name for path in PICTURES.iterdir()}
    assert {*made, SCREENSHOT} == used == kept
    for name, now in made.items():
        kept, fresh = (PICTURES / name).read_text(encoding="utf-8"), now.decode()
        assert SIZE.search(kept).groups() == SIZE.search(fresh).groups(), name
        # Another release of matplotlib may lay out letters and lines in another way, another
        # processor may round the last bit of a sine in another way, and names take other bytes in
        # another release of Python.
        if MADE_BY.findall(kept) == MADE_BY.findall(fresh):
            assert NUMBER.split(kept) == NUMBER.split(fresh), f"{name}: run docs/make_pictures.py"
            numbers = [np.array(NUMBER.findall(text), dtype=float) for text in (kept, fresh)]
            np.testing.assert_allclose(*numbers, atol=0.02, err_msg=name)


@pytest.mark.parametrize("seed", range(5))
def test_the_measures_in_the_picture_are_those_of_the_tree(script, seed):
    rng = np.random.default_rng(seed)
    x = np.round(rng.normal(size=500), seed)
    y = np.abs(x - 0.3) + rng.normal(size=500)
    tree = HoeffdingTreeRegressor(max_depth=0)
    tree.learn_many({"x": x}, y)
    edges, slots = script.slots_of(tree)
    merits = script.cuts_of(*slots)
    for measure, cut in enumerate(_search.best_cuts(tree._kernel, 0, 0.02)):
        merit, _, feature, place, _ = cut
        best = np.nanargmax(merits[:, measure])
        assert (feature, place) == (0, best)
        np.testing.assert_allclose(merits[best, measure], merit, rtol=1e-9)
        left = x < edges[1 + best]
        np.testing.assert_allclose(slots[0][: best + 1].sum(), left.sum())


def test_attempts_in_the_picture_are_those_of_the_rule(script):
    """Two copies of a feature wait until the bound is below tau, by the rule in the page."""
    x = np.random.default_rng(1).random(2_000)
    attempts = script.attempts_of(np.column_stack([x, x]), np.where(x < 0.5, 0.0, 1.0))
    needed = np.log(1000) / (2 * 0.05**2)
    expected = [200]
    while expected[-1] <= needed:
        n = expected[-1]
        expected.append(int(np.ceil(min(max(n + 200, 0.8 * needed), 2 * n))))
    assert attempts.tolist() == expected
