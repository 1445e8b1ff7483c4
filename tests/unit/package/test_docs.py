"""The documentation: its links lead somewhere, it names what there is, its pictures are true."""

import csv
import importlib
import importlib.util
import os
import re
import subprocess
import sys
from urllib.parse import unquote

import numpy as np
import pytest

from cases import PATIENCE
from places import ROOT
from sapwood import HoeffdingTreeRegressor
from sapwood.tree import _search

DOCS = ROOT / "docs"
PICTURES = DOCS / "pictures"
SCREENSHOT = "report.png"  # of the page that `make run` writes, in a browser
GENERATED = {"_build", "commands", "api"}  # folders that the site generator writes
GENERATED_PAGES = {"command-line.md", "api.md", "api-advanced.md"}
PAGES = [
    ROOT / "README.md",
    *(
        page
        for page in sorted(DOCS.rglob("*.md"))
        if not GENERATED & set(page.parts)
        and not (page.parent.name == "reference" and page.name in GENERATED_PAGES)
    ),
]

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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_of_a_page_leads_somewhere(page):
    for link in links(page):
        path, _, anchor = unquote(link).partition("#")
        target = (page.parent / path).resolve() if path else page
        if target.parent == DOCS / "reference" and target.name in GENERATED_PAGES:
            continue
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


REFERENCE = re.compile(r"Pattern\s+Recognition\s+Letters|quantizer-observer\.md|paper\.md")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_that_uses_the_paper_refers_to_it(page):
    text = prose(page)
    if page != DOCS / "index.md" and re.search(r"Quantizer Observer|Mastelini", text):
        assert REFERENCE.search(text)


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


@pytest.mark.parametrize("page", WITH_SNIPPETS, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_begins_with_the_line_that_installs_what_it_uses(page):
    first = page.read_text(encoding="utf-8").partition("\n## ")[0]
    [line] = INSTALLS.findall(first)
    named = re.search(r"sapwood\[([\w,]+)\]", line)
    extras = set(named[1].split(",")) if named else set()
    extras |= {also for extra in extras for also in ALSO.get(extra, ())}
    wanted, libraries = needed(page)
    assert wanted <= extras, line
    assert libraries <= set(line.split()), line


# -- figures of the README -------------------------------------------------------------------------

README = (ROOT / "README.md").read_text(encoding="utf-8")
FIGURES = DOCS / "benchmarks" / "results" / "headline.csv"


@pytest.fixture(scope="module")
def measured():
    """Return the values of the results file by measure, stream and learner."""
    with FIGURES.open(newline="", encoding="utf-8") as file:
        return {
            (row["measure"], row["stream"], row["learner"]): (int(row["rows"]), float(row["value"]))
            for row in csv.DictReader(file)
        }


def test_the_table_of_the_readme_is_that_of_the_results_file(measured):
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in README.splitlines()
        if line.startswith("|") and line.count("|") == 8
    ]
    (_, _, *learners), _, *body = rows
    shown = {}
    for stream, size, *scores in body:
        for learner, score in zip(learners, scores, strict=True):
            shown["r2", stream, learner] = int(size.replace(",", "")), score
    expected = {
        key: (size, f"{value:.3f}".replace("-", "\N{MINUS SIGN}"))
        for key, (size, value) in measured.items()
        if key[0] == "r2"
    }
    assert shown == expected


def test_the_reasons_of_the_readme_quote_the_results_file(measured):
    """Each sentence, with its numbers made from the file; no other number is in the list."""

    def value(*key):
        return measured[key][1]

    speed = [
        value("microseconds a row", "friedman", learner)
        for learner in (
            "Sapwood tree, batches of 1,000",
            "Sapwood tree, one by one",
            "river Hoeffding tree",
        )
    ]
    coverage = [found for key, (_, found) in measured.items() if key[0] == "coverage at 0.9"]
    rows, ours = measured["false alarms", "friedman", "Sapwood ChangeDetector"]
    sentences = [
        f"the forest reaches R² {value('r2', 'bike', 'Sapwood forest'):.3f}, river's adaptive "
        f"random forest {value('r2', 'bike', 'river ARF'):.3f}.",
        f"in {speed[0]:.2f} µs if rows arrive in batches of 1,000, and in {speed[1]:.2f} µs if they "
        f"arrive one by one. River's Hoeffding tree takes {speed[2]:.0f} µs.",
        f"between {min(coverage):.4f} and {max(coverage):.4f} on {SIX[len(coverage)]} streams.",
        f"On {rows:,} rows without drift, the drift detector raises {ours:.0f} alerts; river's ADWIN "
        f"raises {value('false alarms', 'friedman', 'river ADWIN'):.0f}.",
    ]
    reasons = " ".join(README.partition("## Why\n")[2].partition("\nThe table shows")[0].split())
    for sentence in sentences:
        assert sentence in reasons
        reasons = reasons.replace(sentence, "")
    assert re.findall(r"\d+", reasons.replace("90 % prediction", "")) == []


SIX = {6: "six"}


def results(name):
    with (DOCS / "benchmarks" / "results" / f"{name}.csv").open(
        newline="", encoding="utf-8"
    ) as file:
        return list(csv.DictReader(file))


def means(rows, score):
    """Return the mean score of each learner with labels at once, best first; and the streams."""
    found = {}
    for row in rows:
        if row["timing"] == "at once":
            found.setdefault(row["learner"], []).append(float(row[score]))
    assert len({len(each) for each in found.values()}) == 1
    ranked = sorted(((np.mean(each), name) for name, each in found.items()), reverse=True)
    return {name: f"{mean:.3f}" for mean, name in ranked}, len(next(iter(found.values())))


def test_the_readme_quotes_the_results_of_classifiers_and_hybrids():
    text = " ".join(README.split())
    rows = results("classes")
    accuracy, streams = means(rows, "accuracy")
    other = next(name for name in accuracy if not name.startswith("Sapwood"))
    most = max(int(row["rows"]) for row in rows)
    assert (
        f"Mean accuracy over {streams} classification streams of up to {most:,} rows is "
        f"{accuracy['Sapwood forest']} for the forest and {accuracy[other]} for the best other "
        f"learner, {other} ("
    ) in text
    rows = [row for row in results("hybrid") if row["r2"] != "nan"]
    r2, streams = means(rows, "r2")
    most = max(int(row["rows"]) for row in rows if row["timing"] == "at once")
    assert (
        f"Mean R² over {streams} regression streams of up to {most:,} rows is {r2['hybrid']} for the "
        "[hybrid](docs/howto/hybrid.md) of a forest and a refitted LightGBM model, "
        f"{r2['forest']} for the forest, and {r2['LightGBM refitted']} for the refitted"
    ) in text


def test_the_readme_is_short_and_names_what_a_reader_needs():
    prose_links = [link for link in LINK.findall(README) if not link.startswith("docs/pictures")]
    assert "make run" in README
    assert "make test" in README
    assert len(README.split()) < 800
    assert len(prose_links) <= 16


# -- generated pages -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def site_pages():
    return load_script("site_pages")


def load_script(name):
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_public_package_has_a_page(site_pages):
    found = {
        f"sapwood.{path.parent.name}"
        for path in (ROOT / "src" / "sapwood").glob("[a-z]*/__init__.py")
        if "__all__" in path.read_text(encoding="utf-8")
    }
    private = {"cli", "corrector", "ensemble", "inspect", "intervals", "paper", "rows"}
    private |= {"serve", "storage", "tree", "lags.past", "tasks", "pending"}
    private |= {"sktime"}  # in the guide to forecasts; the site is built without sktime
    assert found - {f"sapwood.{name}" for name in private} <= {
        *site_pages.PUBLIC,
        *site_pages.ADVANCED,
    }


def test_the_page_of_a_module_lists_its_public_names_once(site_pages):
    pages = {
        name: site_pages.module_page(name, text)
        for name, text in (site_pages.PUBLIC | site_pages.ADVANCED).items()
    }
    for name, page in pages.items():
        module = importlib.import_module(name)
        listed = re.findall(r"^   (\w+)$", page, re.MULTILINE)
        also = re.findall(r"``(\w+)``", page)
        public = [each for each in module.__all__ if not each.startswith("__")]
        assert sorted(listed + also) == sorted(public), name


def test_the_pages_of_commands_name_every_option(site_pages):
    from sapwood.cli.app import COMMANDS, loaded

    pages = dict(site_pages.command_pages())
    assert list(pages) == list(COMMANDS)
    for name, page in pages.items():
        for parameter in loaded(name).params:
            if parameter.param_type_name == "option" and not parameter.hidden:
                assert all(f"`{option}`" in page for option in parameter.opts), parameter.name
        rows = [line for line in page.splitlines() if line.startswith("| ")]
        assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {3}, name


def test_generated_pages_are_written_and_old_ones_removed(site_pages, tmp_path):
    (tmp_path / "api" / "generated").mkdir(parents=True)
    (tmp_path / "api" / "generated" / "sapwood.Gone.rst").write_text("")
    written = site_pages.write_pages(tmp_path)
    assert all(path.is_file() for path in written)
    assert not (tmp_path / "api" / "generated").exists()
    assert "sapwood evaluate" in (tmp_path / "command-line.md").read_text(encoding="utf-8")


# -- the pictures ---------------------------------------------------------------------------------

NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
SIZE = re.compile(r'<svg [^>]*?width="([\d.]+)pt" height="([\d.]+)pt"', re.DOTALL)
MADE_BY = re.compile(r"Matplotlib v[\w.]+")


@pytest.fixture(scope="module")
def script():
    return load_script("make_pictures")


SLOW_PICTURES = {"late", "hybrid"}  # which take two thirds of the time of all


@pytest.fixture(scope="module", params=["quick", pytest.param("all", marks=pytest.mark.long)])
def pictures(script, request):
    """Return the script, with all pictures or with those that are made quickly."""
    every = dict(script.PICTURES)
    for name in SLOW_PICTURES if request.param == "quick" else ():
        del script.PICTURES[name]
    yield script
    script.PICTURES.update(every)


@pytest.fixture(scope="module")
def made(pictures, tmp_path_factory):
    """Return the pictures as they are made now, by their names."""
    folder = tmp_path_factory.mktemp("pictures")
    pictures.main(folder)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.long
def test_the_program_makes_the_same_bytes_each_time(made, tmp_path):
    subprocess.run(
        [sys.executable, DOCS / "make_pictures.py", tmp_path],
        env={**os.environ, "PYTHONHASHSEED": "5"},
        check=True,
        timeout=PATIENCE,
    )
    again = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert made.items() <= again.items()


def test_the_pictures_of_the_pages_are_those_that_are_made_now(pictures, made):
    # One test, as each process that runs tests would draw all pictures once more.
    used = {
        (page.parent / link).name
        for page in PAGES
        for link in links(page)
        if (page.parent / link).resolve().parent == PICTURES
    }
    kept = {path.name for path in PICTURES.iterdir()}
    left_out = {f"{name}.svg" for name in SLOW_PICTURES - pictures.PICTURES.keys()}
    assert {*made, *left_out, SCREENSHOT} == used == kept
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
    """Equally good features wait until the bound is below tau; copies of one are no rivals."""
    x = np.random.default_rng(1).random(2_000)
    y = np.where(x < 0.5, 0.0, 1.0)
    assert script.attempts_of(np.column_stack([x, x]), y).tolist() == [200]
    rng = np.random.default_rng(1)
    X = rng.random((2_000, 3))
    nearly_equal = np.where(X[:, 0] < 0.5, 0.0, 10.0) + np.where(X[:, 1] < 0.1, 0.0, 16.8)
    attempts = script.attempts_of(X, nearly_equal + rng.normal(0.0, 3.0, 2_000))
    assert attempts.tolist() == [200, 400]
