"""The report: what it tells, that nothing in it is markup by accident, and that it stays small."""

import dataclasses
import json
import math
import re
import xml.etree.ElementTree as ET
from collections import Counter
from datetime import UTC, datetime, timedelta, timezone
from html.parser import HTMLParser
from types import SimpleNamespace

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given

import sapwood
from report_cases import drifting, drifting_run, evaluate, timed_run
from sapwood.evaluate import prequential
from sapwood.evaluate.result import Errors, Rejections
from sapwood.inspect.view import PICTURE_RECORD, TreePicture
from sapwood.report import render, write_report
from sapwood.report.charts import chart, inline
from sapwood.report.result import verdict
from sapwood.report.titles import file_name
from sapwood.report.tree_view import DEEPEST, MOST_NODES, leaf_rule, render_tree, written_nodes
from sapwood.streams import ColumnNote
from view_cases import CITIES, chain, leaf, picture, split, trees

LEAF, NUMBER = 0, 1
PARTS = [
    *("result", "error", "size", "speed", "importances", "rejected"),
    *("rules", "tree", "next", "settings"),
]
VOID = {"meta", "br", "img", "input", "link", "hr"}
HOSTILE = (
    '<img src=x onerror=alert(1)>&"\'</script>$\\frac{1$ \x00\n温度 id="y" #0072b2 --> ]]> \ud800'
)


class Page(HTMLParser):
    """A page as a browser's parser would see it, for pages that need no mending."""

    def __init__(self, source):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.ids, self.links, self.words = [], [], [], [], {}
        self.part, self.data = None, []
        self.feed(source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        assert len(attributes) == len(dict(attributes)), "an attribute twice"
        found = dict(attributes)
        self.tags.append((tag, found))
        self.ids += [found["id"]] if "id" in found else []
        self.links += [found[name] for name in ("href", "src", "xlink:href") if name in found]
        if tag == "section":
            self.part = found["id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
        if tag == "section":
            self.part = None

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.data.append(data)
        else:
            self.words[self.part] = self.words.get(self.part, "") + data + " "

    def text(self, part):
        return " ".join(self.words[part].split())

    def count(self, tag, kind):
        return sum(
            name == tag and kind in found.get("class", "").split() for name, found in self.tags
        )


@pytest.fixture(scope="module")
def run():
    return drifting_run(20_000)


@pytest.fixture(scope="module")
def source(run):
    return render(*run, settings={"command": "sapwood evaluate x.csv"})


@pytest.fixture(scope="module")
def page(source):
    return Page(source)


def broad(depth):
    """A tree that splits everywhere, down to a depth."""
    nodes = np.zeros(2 ** (depth + 1) - 1, PICTURE_RECORD)
    place = np.arange(len(nodes))
    nodes["depth"] = np.log2(place + 1).astype(int)
    nodes["parent"] = (place - 1) // 2
    inner = nodes["depth"] < depth
    nodes["kind"][inner], nodes["child"][inner] = NUMBER, 2 * place[inner] + 1
    nodes["threshold"], nodes["gain"], nodes["mean"] = place / 7, 1.0, place
    nodes["weight"], nodes["model"] = 1 + place % 5, "linear"
    return TreePicture(nodes, ["a feature"], [[]])


# The whole page


def test_all_parts_are_there_in_order_with_headings(page):
    assert [found["id"] for tag, found in page.tags if tag == "section"] == PARTS
    assert sum(tag == "h2" for tag, _ in page.tags) == len(PARTS)
    assert sum(tag == "h1" for tag, _ in page.tags) == 1
    assert "Tree on drifting" in page.text(None)


@pytest.mark.usefixtures("unsaved_charts")
def test_the_title_names_the_model_in_words(run):
    made = dataclasses.replace(run[0], model="<HoeffdingTreeRegressor(): 3 leaves>")
    page = Page(render(made))
    assert "Tree on drifting" in page.text(None)
    assert "kind Tree" in page.text("settings")
    assert "HoeffdingTreeRegressor" not in page.text(None) + page.text("settings")


@pytest.mark.usefixtures("unsaved_charts")
def test_the_time_of_creation_is_stated_if_it_is_given(run, tmp_path):
    created = datetime(2026, 11, 18, 9, 30, tzinfo=timezone(timedelta(hours=1)))
    assert "Created 2026-11-18 08:30 UTC." in Page(render(*run, created=created)).text(None)
    assert "Created" not in Page(render(*run)).text(None)
    write_report(tmp_path / "now.html", *run)
    stated = re.search(r"Created ([\d-]+ [\d:]+) UTC", (tmp_path / "now.html").read_text())[1]
    age = datetime.now(UTC) - datetime.strptime(stated, "%Y-%m-%d %H:%M").replace(tzinfo=UTC)
    assert timedelta(0) <= age < timedelta(hours=1)


def test_it_needs_nothing_else(page, source):
    assert all(link.startswith("#") for link in page.links)
    assert "@import" not in source
    assert re.findall(r"url\((?!#)", source) == []
    outside = source.replace("http://www.w3.org/2000/svg", "")
    assert "http://" not in outside
    assert "https://" not in outside


def test_ids_are_unique_and_links_lead_to_them(page, source):
    assert [name for name, times in Counter(page.ids).items() if times > 1] == []
    targets = [link[1:] for link in page.links] + re.findall(r"url\(#([^)]+)\)", source)
    assert set(targets) <= set(page.ids)


def test_the_same_evaluation_gives_the_same_bytes(run, source):
    again = render(*run, settings={"command": "sapwood evaluate x.csv"})
    assert again == source
    with mpl.rc_context({"font.size": 20, "axes.facecolor": "black", "svg.fonttype": "path"}):
        assert render(*run, settings={"command": "sapwood evaluate x.csv"}) == source


def test_text_of_charts_stays_text(page):
    assert "MAE (units of demand)" in page.text("error")
    assert "rows per second" in page.text("speed")
    assert "memory (MB)" in page.text("size")


@pytest.mark.usefixtures("unsaved_charts")
def test_write_report_writes_what_render_returns(run, tmp_path):
    path = tmp_path / "report.html"
    path.write_text("old", encoding="utf-8")
    created = datetime(2026, 11, 18, tzinfo=UTC)
    write_report(path, *run, created=created)
    assert path.read_bytes().decode() == render(*run, created=created)
    assert list(tmp_path.iterdir()) == [path]


def test_curves_carry_their_numbers(run, page):
    curves = [json.loads(data) for data in page.data if data.startswith("{")]
    assert [[line["name"] for line in curve["lines"]] for curve in curves] == [
        ["exponentially weighted", "all rows"],
        ["exponentially weighted", "all rows"],
        ["exponentially weighted", "all rows"],
        ["leaves"],
        ["memory (MB)"],
        ["rows per second"],
    ]
    evaluation = run[0]
    assert curves[0]["rows"] == evaluation.curve["row"].tolist()
    np.testing.assert_allclose(
        curves[0]["lines"][0]["values"], evaluation.curve["faded_mae"], rtol=1e-4
    )
    left, top, right, bottom = curves[0]["frame"]
    assert 0 < left < right < 300
    assert 0 < top < bottom < 190


# What the parts tell


def test_the_result(run, page):
    evaluation, told = run[0], page.text("result")
    for errors in (evaluation.total, evaluation.faded, evaluation.window):
        assert f"{errors.mae:.3f} {errors.rmse:.2f} {errors.r2:.4f}" in told
    for words in (
        "20,017",
        "20,000",
        "exponentially weighted",
        "last 1,000 rows",
        "half-life 693 rows",
    ):
        assert words in told
    assert verdict(evaluation) in told
    assert f"{evaluation.leaves} at the end" in told


@pytest.mark.parametrize(
    ("total", "window", "sentence"),
    [
        (Errors(3, 4, 0.84), Errors(2, 3, 0.9), "84 % below that of always predicting the mean"),
        (Errors(3, 4, 0.9996), Errors(2, 3, 0.9), "99.96 % below"),
        (Errors(3, 4, -1.5), Errors(2, 3, 0.9), "2.5 times that of always predicting the mean (7)"),
        (Errors(3, 4, -1.5), Errors(2, 3, 0.9), "worse than no model"),
        (Errors(3, 4, math.nan), Errors(2, 3, 0.9), "does not vary"),
        (
            Errors(3, 4, 0.8),
            Errors(2, 3, 0.9),
            "last 1,000 rows the error was smaller: 2, with an R² of 0.9",
        ),
        (Errors(3, 4, 0.8), Errors(3.05, 3, 0.9), "about the same: 3.05"),
        (Errors(3, 4, 0.8), Errors(6, 3, -2), "larger: 6, with an R² of −2"),
        (Errors(3.14159, 4, 0.8), Errors(6, 3, -2), "a prediction of demand was off by 3.142."),
        (Errors(math.nan, math.nan, math.nan), Errors(1, 1, 1), "nothing to report"),
    ],
)
def test_the_verdict(run, total, window, sentence):
    made = dataclasses.replace(run[0], total=total, window=window, target_mean=7.0)
    assert sentence in verdict(made)


@pytest.mark.usefixtures("unsaved_charts")
def test_refused_rows_with_their_reasons(run, page):
    told = page.text("rejected")
    assert "17 of 20,017 rows (0.1 %) were left out" in told
    assert "target is missing 12 70.6 %" in told
    assert "not a number 5 29.4 %" in told
    none = dataclasses.replace(run[0], rejected=Rejections(0, {}, np.array([[20_000, 0]])))
    assert "rejected" not in Page(render(none)).words  # there is no empty section


def test_settings(page, run):
    told = page.text("settings")
    for words in ("grace_period 200.0", "stream drifting", "target demand", "weights 0.999"):
        assert words in told
    assert f"sapwood {sapwood.__version__}" in told
    assert "command sapwood evaluate x.csv" in told


@pytest.mark.parametrize("model", [None, object()], ids=["none", "another"])
@pytest.mark.usefixtures("unsaved_charts")
def test_without_a_tree_there_are_no_parts_about_it(run, model):
    page = Page(render(run[0], model))
    assert {"tree", "importances", "members"}.isdisjoint(page.words)
    assert "settings" in page.words


@pytest.mark.usefixtures("unsaved_charts")
def test_a_tree_within_another_model_is_found(run):
    holder = SimpleNamespace(tree=run[1])
    assert Page(render(run[0], holder)).text("tree") == Page(render(*run)).text("tree")


@pytest.mark.usefixtures("unsaved_charts")
def test_parameters_of_the_tree_are_told_once(run):
    told = Page(render(*run, settings={"grace_period": "200", "delay": 24})).text("settings")
    assert told.count("grace_period") == 1
    assert "delay 24" in told


@pytest.mark.usefixtures("unsaved_charts")
def test_nothing_measured_at_all(run):
    nan = Errors(math.nan, math.nan, math.nan)
    empty = dataclasses.replace(
        run[0],
        **dict.fromkeys(["rows_read", "rows_predicted", "rows_learned"], 0),
        **dict.fromkeys(["total", "faded", "window"], nan),
        **dict.fromkeys(["seconds", "model_seconds"], 0.0),
        **dict.fromkeys(["leaves", "model_bytes"]),
        rejected=Rejections(0, {}, np.zeros((0, 2), np.int64)),
        curve=run[0].curve[:0],
        speed=run[0].speed[:0],
    )
    page = Page(render(empty, sapwood.HoeffdingTreeRegressor()))
    assert "nothing to report" in page.text("result")
    assert {"size", "speed"}.isdisjoint(page.words)
    assert "has not split yet" in page.text("tree")


# Names that are no markup


def test_hostile_names_are_only_text():
    X, y = drifting(3000)
    X = {
        HOSTILE.replace("\ud800", ""): X["temp"],
        "n" * 1000: X["wind"],
        "city": np.array([f"<b>{city}</b>{HOSTILE[:-1] * 9}" for city in X["city"]], object),
    }
    tree = sapwood.HoeffdingTreeRegressor(grace_period=50)
    refused = Rejections(3, {HOSTILE: 3}, np.array([[3000, 3]]))
    made = evaluate(tree, X, y, stream=HOSTILE, target=HOSTILE, refused=refused)
    made = dataclasses.replace(made, model=HOSTILE)
    source = render(made, tree, settings={HOSTILE: HOSTILE})
    page = Page(source)
    source.encode()
    assert not any(tag in ("img", "b") and found for tag, found in page.tags)
    assert sum(tag == "script" for tag, _ in page.tags) == 6  # five curves, and the page's own
    assert not any(name.startswith("on") for _, found in page.tags for name in found)
    assert "<img src=x onerror=alert(1)>&\"'</script>$\\frac{1$ \\x00\\n温度" in page.text(None)
    assert 'id="y" #0072b2 --> ]]> \\ud800' in page.text("rejected")
    assert "温度" in page.text("settings")
    assert len(source) < 300_000


def test_a_chart_keeps_text_that_looks_like_its_own_parts():
    name = 'id="p1" url(#p1) #0072b2 font-family: x;'
    found = chart("one", "A title", lambda ax: ax.set_title(name, parse_math=False))
    svg = ET.fromstring(re.search(r"<svg.*</svg>", found, re.DOTALL)[0])
    assert name in [text.text for text in svg.iter("text")]
    assert svg.get("aria-label") == "A title"


def test_ids_of_charts_do_not_meet():
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        'viewBox="0 0 1 1"><metadata>x</metadata><defs><style>*{}</style><path id="m"/></defs>'
        '<g id="unused"><use xlink:href="#m" clip-path="url(#c)" style="fill: #0072b2"/></g>'
        '<clipPath id="c"/></svg>'
    )
    root = ET.fromstring(inline(svg, "two", "t"))
    assert [each.get("id") for each in root.iter() if each.get("id")] == ["two-m", "two-c"]
    use = next(root.iter("use"))
    assert use.attrib == {
        "href": "#two-m",
        "clip-path": "url(#two-c)",
        "style": "fill: var(--blue)",
    }
    assert [each.tag for each in root.iter()] == ["svg", "defs", "path", "g", "use", "clipPath"]


# The tree


def shown_leaves(page):
    """Leaves that are written, and those that are only counted."""
    counted = re.findall(r"and ([\d,]+) more leaves below", page.text(None))
    return page.count("div", "leaf"), sum(int(number.replace(",", "")) for number in counted)


@given(trees())
def test_every_leaf_is_shown_or_counted(tree):
    page = Page(render_tree(tree, "y"))
    leaves = int(np.count_nonzero(tree.nodes["kind"] == LEAF))
    if leaves == 1:
        assert "not split yet" in page.text(None)
    else:
        assert shown_leaves(page) == (leaves, 0)
        assert sum(tag == "details" for tag, _ in page.tags) == leaves - 1 + 1  # and the table


@pytest.mark.parametrize("tree", [broad(13), chain(5000)], ids=["broad", "deep"])
def test_a_large_tree_makes_a_small_page(run, tree):
    source = render(run[0], tree)
    assert len(source.encode()) < 1_000_000
    leaves = len(tree.nodes) // 2 + 1
    assert leaves > 5000
    page = Page(render_tree(tree, "y"))
    written, counted = shown_leaves(page)
    assert written + counted == leaves
    folded, nodes = page.count("div", "folded"), page.count("summary", "node")
    assert written + folded + nodes <= MOST_NODES
    assert "200 leaves with the most rows" in page.text(None)


def test_the_nodes_that_most_rows_come_through_are_written():
    tree = broad(13)
    expanded = written_nodes(tree, most=101)
    assert len(expanded) == 50
    weight = tree.below.weight
    children = [node for each in expanded for node in (2 * each + 1, 2 * each + 2)]
    left_out = [node for node in children if node not in expanded]
    assert min(weight[node] for node in expanded) >= max(weight[node] for node in left_out)
    assert len(written_nodes(chain(5000))) == DEEPEST


def test_nodes_are_told_in_words_and_open_at_the_top():
    tree = picture(
        split(
            leaf(3.25, 120, "linear"),
            split(leaf(8, 60), leaf(10.5, 20), 1, subset=0b101, missing_left=1, gain=25.0),
            threshold=12.5,
            gain=75.0,
            weight=100,
            mean=5.0,
            deviation=3.0,
        )
    )
    source = render_tree(tree, "demand")
    page = Page(source)
    told = page.text(None)
    for words in (
        "all rows 100.0 % 5.40 75.0 %",
        "temp < 12.5 60.0 % 3.25 linear",
        "temp >= 12.5 or missing 40.0 % 8.62 25.0 %",
        "city in {Oslo, Rome}, unseen or missing 30.0 % 8.00 mean",
        "city not in {Oslo, Rome} 10.0 % 10.50 mean",
    ):
        assert words in told
    assert "node 0, depth 0; when it split: weight 100, mean 5, deviation 3, gain 75" in source
    assert [found for tag, found in page.tags if tag == "details"][:2] == [{"open": None}] * 2


def test_deeper_nodes_are_folded():
    tags = [found for tag, found in Page(render_tree(chain(6), "y")).tags if tag == "details"]
    assert ["open" in found for found in tags] == [True, True, False, False, False, False, False]


def test_the_rule_of_a_leaf_has_the_nearest_bounds():
    inner = split(leaf(), leaf(), threshold=5.0)
    categories = split(inner, leaf(), 1, subset=0b011)
    tree = picture(split(leaf(), categories, threshold=2.0, missing_left=1))
    rules = [
        leaf_rule(tree, node) for node in range(len(tree.nodes)) if tree.nodes["kind"][node] == 0
    ]
    assert rules == [
        "temp < 2 or missing",
        f"temp >= 2; city not in {{{CITIES[0]}, {CITIES[1]}}}, unseen or missing",
        f"2 <= temp < 5; city in {{{CITIES[0]}, {CITIES[1]}}}",
        f"temp >= 5; city in {{{CITIES[0]}, {CITIES[1]}}}",
    ]


# Rows, and what any model has to beat


@pytest.fixture(scope="module")
def timed():
    return timed_run()


@pytest.fixture(scope="module")
def timed_page(timed):
    return Page(render(*timed))


def test_baselines_are_in_the_table_and_in_the_verdict(timed, timed_page):
    evaluation, told = timed[0], timed_page.text("result")
    assert verdict(evaluation).startswith(f"{evaluation.headline}. On average")
    assert re.search(r"RMSE [\d.]+, \d+ % better than the exponentially weighted mean\.", told)
    for name, words in (("last", "repeating the last value"), ("mean", "the mean so far")):
        found = evaluation.baselines[name].total
        line = f"{words} {found.mae:.2f} {found.rmse:.2f} {found.r2:.4f}".replace("-", "−")
        assert line in told
    assert "the value one week earlier" in told


def test_a_file_is_called_by_its_name(timed, timed_page):
    assert "Tree on drifting.csv" in timed_page.text(None)
    assert "/data/a folder" not in timed_page.text(None)
    assert "stream /data/a folder/drifting.csv" in timed_page.text("settings")
    assert file_name("demand") == "demand"
    assert file_name("/a/folder/") == "folder"


def test_predictions_are_there_in_full(timed, timed_page):
    curves = [json.loads(data) for data in timed_page.data if data.startswith('{"time":true,"x"')]
    sample = timed[0].sample
    assert [line["name"] for line in curves[0]["lines"]] == ["actual", "predicted"]
    assert curves[0]["rows"] == sample.rows["row"].tolist()
    assert curves[0]["x"][0] == round(sample.rows["time"][0] / 86400, 6)
    np.testing.assert_allclose(curves[0]["lines"][0]["values"], sample.rows["y"], rtol=1e-4)
    np.testing.assert_allclose(
        curves[0]["lines"][1]["values"], sample.rows["prediction"], rtol=1e-4
    )
    assert f"one random row in {sample.interval}" in timed_page.text("predictions")


def test_residuals_by_hour_and_category(timed, timed_page):
    told = timed_page.text("residuals")
    assert "Residuals by hour of the day" in told
    assert "Distribution of residuals" in told
    assert "hour of the day (UTC)" in told
    labels, parts = timed[0].errors_by.groups["city"]
    part = parts[labels.index("Oslo")]
    assert parts["rows"].sum() == timed[0].rows_scored  # all rows, not those of the sample
    share = part["rows"] / timed[0].rows_scored
    assert f"Oslo {100 * share:.1f} % {part['mae']:.3f}" in told
    share = timed[0].bias / timed[0].total.mae
    assert ("next to no bias" in told) == (abs(share) < 0.02)


def test_curves_of_a_stream_with_times_go_along_them(timed_page, page):
    assert "time (UTC)" in timed_page.text("error")
    assert "time (UTC)" not in page.text("error")
    assert "Over the stream" in timed_page.text("importances")
    assert "Leaves gained and lost" in timed_page.text("size")


@pytest.mark.usefixtures("unsaved_charts")
def test_columns_are_told_if_the_stream_tells(timed):
    note = ColumnNote(
        name="<id>",
        kind="time",
        format="%d.%m.%Y",
        parts=("hour",),
        example="<b>",
        missing=3,
        distinct=7,
        rows=1000,
        warnings=("nearly unique: an id?",),
    )
    page = Page(render(dataclasses.replace(timed[0], columns=(note,))))
    told = page.text("columns")
    assert "inferred from the first 1,000 rows." in told
    assert "<id> time as %d.%m.%Y; also its hour <b> 3 7 nearly unique: an id?" in told


@pytest.mark.usefixtures("unsaved_charts")
def test_columns_of_a_file_are_told_as_they_were_read(tmp_path):
    rows = "".join(f"{1 + row % 28:02}.11.2026,{row},{row % 7},{row}\n" for row in range(60))
    (tmp_path / "flats.csv").write_text(f"sold,row,rooms,rent\n{rows}")
    found = prequential(
        sapwood.HoeffdingTreeRegressor(), tmp_path / "flats.csv", target="rent", progress=False
    )
    told = Page(render(found)).text("columns")
    assert "inferred from the first 60 rows." in told
    assert "sold time as %d.%m.%Y; also its weekday, season 01.11.2026 0 28" in told
    assert "row number 0 0 60 is the same as the target" in told
    assert "rooms number 0 0 7" in told
    assert "rent target 0 0 60" in told


def test_speed_is_told_without_the_start(timed):
    rows = np.arange(100, 2100, 100)
    seconds = 5.0 + rows / 1000  # five seconds until the first row
    made = dataclasses.replace(
        timed[0],
        curve=np.array([(row, *[0.0] * 9, 1, 1) for row in rows], timed[0].curve.dtype),
        speed=np.column_stack([seconds, seconds]),
        rows_read=2000,
        seconds=7.0,
    )
    assert made.steady_rows_per_second == pytest.approx(1000)
    assert made.rows_per_second == pytest.approx(2000 / 7)
