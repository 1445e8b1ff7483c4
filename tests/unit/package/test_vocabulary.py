"""User-facing text has the field's terms: retired ones do not come back."""

import importlib
import importlib.util
import inspect
import re
from datetime import UTC, datetime, timedelta
from html import unescape

import numpy as np
import pytest

from cli_cases import invoke
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
RETIRED_IN_OUTPUT = {
    "came": "actual, observed, arrived",
    "lately": "recent, exponentially weighted",
    "share within bounds": "coverage",
    "within bounds": "within the prediction interval, coverage",
    "bounds of": "prediction intervals of",
    "what it costs": "permutation feature importance",
    "alarm": "drift event, drift alert",
    "alarms": "drift events, drift alerts",
    "waits": "is pending, is a candidate",
    "waiting": "candidate, pending",
    "errs": "its error is",
    "foreseen": "predicted",
    "worth a look": "warnings",
    "what has changed": "drift events",
    "what became of": "rows",
}
"""Further terms that reports, charts and commands do not use; prose may have a reason to."""
IN_DOCSTRINGS = RETIRED | {
    "says": "states, predicts",
    "tell": "report",
    "lately": "recent",
    "errs": "its error is",
    "came": "arrived, observed",
    "comes about": "explain",
    "a cut": "a split point, a split",
    "that waits": "candidate, pending",
    "costs to get": "permutation feature importance",
    "of ours": "of Sapwood",
    "goes on": "continues",
    "in here": "name the object",
    "look into": "inspect",
    "under way": "running, in progress",
    "nobody": "name what is left out",
    "whoever": "name the user",
    "to the last bit": "bit for bit",
    "becomes past": "is added to the earlier rows",
    "become past": "be added to the earlier rows",
}
"""Further terms that public docstrings and help texts do not use."""
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


def retired(text, terms=RETIRED):
    """Return the retired terms of a text with the words around them."""
    plain = CODE.sub("", text)
    pattern = re.compile(rf"(?<!false )\b({'|'.join(terms)})\b", re.IGNORECASE)
    return [
        f"{' '.join(plain[max(0, found.start() - 40) : found.end() + 20].split())!r}: "
        f"use {terms[found[0].lower()]!r}"
        for found in pattern.finditer(plain)
    ]


def retired_in_output(text):
    """Return the same for what the program shows."""
    return retired(text, RETIRED | RETIRED_IN_OUTPUT)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_pages(page):
    assert retired(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("name", COMMANDS)
def test_help_texts(name):
    command = loaded(name)
    texts = [COMMANDS[name], command.help, app.info.help]
    for parameter in command.params:
        texts += [parameter.help, getattr(parameter, "rich_help_panel", None)]
    terms = RETIRED_IN_OUTPUT | IN_DOCSTRINGS
    assert [found for text in texts for found in retired(text or "", terms)] == []


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
        classes = value.__mro__ if inspect.isclass(value) else ()
        for kind in classes:
            members = vars(kind).items() if kind.__module__.startswith("sapwood") else ()
            for member, found in members:
                if not member.startswith("_"):
                    text = getattr(getattr(found, "__func__", found), "__doc__", None)
                    yield f"{name}.{member}", text


# Names that the format of files and of results fixes, or the paper uses.
KEPT_NAMES = {"faded", "beside", "cut", "cuts"}
RETIRED_NAMES = {
    *(word for term in IN_DOCSTRINGS | RETIRED_IN_OUTPUT if " " not in (word := term)),
    *("tell", "say", "follow", "judge", "hear", "heard", "blend", "relay", "unrest", "astir"),
    *("house", "twin", "door", "wishes", "saying", "foresee"),
}


def public_names(module):
    """Yield public names of a module, of members of its classes, and of their parameters."""
    for name in module.__all__:
        value = getattr(module, name)
        if not getattr(value, "__module__", "").startswith("sapwood"):
            continue
        places = [(name, value)]
        for kind in value.__mro__ if inspect.isclass(value) else ():
            if kind.__module__.startswith("sapwood"):
                places += [(f"{name}.{member}", found) for member, found in vars(kind).items()]
        for place, found in places:
            text = getattr(found, "__doc__", None) or ""
            if place.rpartition(".")[2].startswith("_") or "deprecated" in str(text).lower():
                continue
            yield place
            own = getattr(found, "__func__", found)
            if inspect.isfunction(own):
                yield from (
                    f"{place}({parameter})" for parameter in inspect.signature(own).parameters
                )


@pytest.mark.parametrize("name", modules())
def test_public_names(name):
    found = [
        place
        for place in public_names(importlib.import_module(name))
        if set(re.findall(r"[a-z]+", place.lower())) & (RETIRED_NAMES - KEPT_NAMES)
    ]
    assert found == []


@pytest.mark.parametrize("name", modules())
def test_public_docstrings(name):
    module = importlib.import_module(name)
    found = {
        place: terms
        for place, text in documented(module)
        if isinstance(text, str) and (terms := retired(text, IN_DOCSTRINGS))
    }
    assert found == {}


# -- messages ----------------------------------------------------------------------------------------

SOURCES = sorted(
    path for kind in ("py", "pyx", "pxd") for path in (ROOT / "src" / "sapwood").rglob(f"*.{kind}")
)
LITERAL = re.compile(r'"""(?:[^\\]|\\.)*?"""|#[^\n]*|"((?:[^"\\\n]|\\.)*)"', re.DOTALL)
IN_MESSAGES = RETIRED | {
    "unrest": "unit change",
    "what waits": "pending predictions",
    "that waits": "pending, candidate",
    "that wait": "pending",
    "waits for": "is pending",
    "blend": "weights",
}
"""Further terms that messages do not use."""


def messages(text):
    """Return the strings of a module that have several words, but for docstrings."""
    return [found for found in LITERAL.findall(text) if " " in found.strip()]


def test_messages_are_found():
    source = '''def f():
    """Say what is said."""
    raise ValueError("a \\"value\\" was "  # told "so much"
                     f"refused by {name}", "word")
'''
    assert messages(source) == ['a \\"value\\" was ', "refused by {name}"]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_messages(path):
    found = messages(path.read_text(encoding="utf-8"))
    placeholders = re.compile(r"\{[^{}]*\}")  # names in the code
    assert [
        term for each in found for term in retired(placeholders.sub("", each), IN_MESSAGES)
    ] == []


# -- reports and what commands print ---------------------------------------------------------------

MARKUP = re.compile(r"<(script|style)\b.*?</\1>|<[^>]*>", re.DOTALL)


def visible(page):
    """Return the text of a page, with that of its charts and of labels for screen readers."""
    labels = re.findall(r'(?:aria-label|title)="([^"]*)"', page)
    names = re.findall(r'"name":"([^"]*)"', page)
    return " ".join([unescape(MARKUP.sub(" ", page)), *labels, *names])


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Return the folder of reports and of a saved model, made by the command line."""
    folder = tmp_path_factory.mktemp("reports")
    rows, late = tmp_path_factory.mktemp("data") / "rows.csv", ["--delay", "24"]
    write_rows(rows)
    source = ["evaluate", str(rows), "-t", "sales", "--drop", "visits", "--quiet"]
    several = ["evaluate", str(rows), "-t", "sales", "-t", "visits", "--quiet", "--interval", "0.9"]
    forest = ["-m", "forest", "--lags", "1,24", "--interval", "0.9", "--monitor"]
    saved = ["--save", str(folder / "model")]
    for name, arguments in {
        "tree": source,
        "forest": [*source, *forest, *saved],
        "targets": several,
        "delay": [*source, *late],
        "compare": ["compare", *source[1:], "-m", "tree,forest,mean"],
    }.items():
        ended = invoke(*arguments, "--report", str(folder / f"{name}.html"))
        assert (ended.code, ended.stderr) == (0, ""), ended.stderr
    return folder


def write_rows(path):
    rng = np.random.default_rng(1)
    lines = ["time,city,price,sales,visits"]
    start = datetime(2026, 1, 1, tzinfo=UTC)
    for row in range(2500):
        city = str(rng.choice(["Oslo", "Rome"]))
        price = rng.normal() + (3 if row > 1700 else 0)
        sales = 5 * price + (9 if city == "Oslo" else 0) + row % 24 + rng.normal()
        lines.append(
            f"{start + row * timedelta(hours=1):%Y-%m-%d %H:%M},{city},{price:.3f},{sales:.3f},{row % 7}"
        )
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.mark.parametrize("name", ["tree", "forest", "targets", "delay", "compare"])
def test_reports(runs, name):
    text = visible((runs / f"{name}.html").read_text(encoding="utf-8"))
    assert len(text.split()) > 200
    assert retired_in_output(text) == []


def test_what_inspect_prints(runs):
    printed = invoke("inspect", str(runs / "model"), "--rules", "3").stdout
    assert "candidate" in printed
    assert retired_in_output(printed) == []


def test_old_terms_in_a_report_would_be_found():
    assert retired_in_output(visible('<svg aria-label="RMSE lately"><text>came</text></svg>')) != []
    assert retired_in_output(visible("<script>came</script><p>Coverage</p>")) == []


def test_a_retired_name_would_be_found():
    class Model:
        """A model."""

        def tell_one(self, judge):
            """Learn."""

        def old(self):
            """Deprecated: use `learn_one`."""

    Model.__module__ = "sapwood.made_up"
    module = type("module", (), {"__all__": ["Model"], "Model": Model})
    assert list(public_names(module)) == [
        *("Model", "Model.tell_one", "Model.tell_one(self)", "Model.tell_one(judge)")
    ]


def test_the_test_can_fail():
    assert retired("The model is told the faded mean.") != []
    assert retired("Coverage of the prediction intervals.") == []
