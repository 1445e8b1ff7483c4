"""User-facing text has the field's terms: retired ones do not come back."""

import importlib
import importlib.util
import inspect
import re

import pytest

from places import ROOT
from sapwood.cli.app import COMMANDS, app, loaded

RETIRED = {
    "faded": "exponentially weighted",
    "beside": "compared with, next to",
    "anew": "again, reset, start over",
    "told": "reported",
    "tells": "reports",
    "said": "predicted",
    "refused": "rejected",
    "judged": "scored, evaluated",
    "foresee": "predict",
    "outlook": "prediction",
    "twin": "reference implementation",
    "law": "property",
    "last layer": "error-correction layer",
    "what came before": "lag features",
    "goes on after": "resumes at",
    "past one machine": "distributed training",
    "page with pictures": "self-contained HTML report",
}
"""Retired terms, and what to write instead."""
PATTERN = re.compile(rf"\b({'|'.join(RETIRED)})\b", re.IGNORECASE)
CODE = re.compile(
    r"```.*?```|`[^`]*`|\]\([^)]*\)"  # of Markdown
    r"|^\s*(?:>>>|\.\.\.).*?$|^\s*[\w, ]+ : .*?$|\"\w+\"",  # of docstrings: examples, names
    re.DOTALL | re.MULTILINE,
)

GENERATED = {"_build", "commands", "api"}
PAGES = [
    ROOT / "CHANGELOG.md",
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if not GENERATED & set(page.parts)),
]


def retired(text):
    """Return the retired terms of a text with the words around them."""
    plain = CODE.sub("", text)
    return [
        f"{' '.join(plain[max(0, found.start() - 40) : found.end() + 20].split())!r}: "
        f"use {RETIRED[found[0].lower()]!r}"
        for found in PATTERN.finditer(plain)
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_pages(page):
    assert retired(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("name", COMMANDS)
def test_help_texts(name):
    command = loaded(name)
    texts = [COMMANDS[name], command.help, app.info.help]
    for parameter in command.params:
        texts += [parameter.help, getattr(parameter, "rich_help_panel", None)]
    assert [found for text in texts for found in retired(text or "")] == []


def modules():
    spec = importlib.util.spec_from_file_location("site_pages", ROOT / "docs" / "site_pages.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return [*module.PUBLIC, *module.ADVANCED]


def documented(module):
    """Yield names and docstrings of what a module offers, and of public members of classes."""
    for name in module.__all__:
        value = getattr(module, name)
        if not getattr(value, "__module__", "").startswith("sapwood"):
            continue
        yield name, value.__doc__
        if inspect.isclass(value):
            for member, found in vars(value).items():
                if not member.startswith("_"):
                    text = getattr(getattr(found, "__func__", found), "__doc__", None)
                    yield f"{name}.{member}", text


@pytest.mark.parametrize("name", modules())
def test_public_docstrings(name):
    module = importlib.import_module(name)
    found = {
        place: terms
        for place, text in documented(module)
        if isinstance(text, str) and (terms := retired(text))
    }
    assert found == {}


def test_the_test_can_fail():
    assert retired("The model is told the faded mean.") != []
    assert retired("Coverage of the prediction intervals.") == []
