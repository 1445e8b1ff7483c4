"""The report in a real browser: it is whole, no script fails, and nothing is out of place."""

import hashlib
import json
import re
import shutil
import subprocess
from base64 import b64encode
from datetime import datetime
from html import unescape

import pytest

from cases import PATIENCE
from report_cases import timed_run
from sapwood.report import render

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
BROWSER = next(filter(None, map(shutil.which, NAMES)), None)

pytestmark = pytest.mark.skipif(BROWSER is None, reason=f"no browser: none of {', '.join(NAMES)}")

PARTS = [
    *("result", "predictions", "error", "residuals", "size", "speed", "importances"),
    *("rules", "tree", "next", "settings"),
]

COLLECT = """
window.faults = [];
addEventListener("error", (event) => faults.push(String(event.message || event.target)), true);
addEventListener("unhandledrejection", (event) => faults.push(String(event.reason)));
addEventListener("securitypolicyviolation", (event) => faults.push(event.violatedDirective));
"""

# Faults are told later than they happen.
MEASURE = """
addEventListener("load", () => setTimeout(() => {
const all = (what) => [...document.querySelectorAll(what)];
const wide = () => all("body *").filter((element) => {
  const held = element.parentElement.closest(".scroll");
  return !held && element.getBoundingClientRect().right > innerWidth + 0.5;
}).map((element) => element.outerHTML.slice(0, 80));
const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1
  && a.top < b.bottom - 1 && b.top < a.bottom - 1;
const meeting = (elements) => elements.flatMap((one, place) =>
  elements.slice(place + 1).filter((other) =>
    meet(one.getBoundingClientRect(), other.getBoundingClientRect()))
    .map((other) => one.textContent + " | " + other.textContent));
const found = { width: innerWidth, page: document.documentElement.scrollWidth };
found.parts = all("section").filter((part) => part.offsetHeight > 30 && part.querySelector("h2"))
  .map((part) => part.id);
found.wide = wide();
found.charts = meeting(all("figure.chart"));
found.texts = all("figure.chart").flatMap((figure) =>
  meeting([...figure.querySelectorAll("text")]));
found.letters = Math.min(...all("figure.chart text").map((text) => {
  const scale = text.getScreenCTM();
  return parseFloat(getComputedStyle(text).fontSize) * Math.hypot(scale.a, scale.b);
}));
const figure = document.querySelector("#error figure.chart");
const svg = figure.querySelector("svg");
const box = svg.getBoundingClientRect();
const pointer = (x) => svg.dispatchEvent(new PointerEvent("pointermove", { clientX: x }));
pointer(box.left + box.width / 2);
found.tip = figure.querySelector(".tip").innerText;
pointer(box.left);
found.tipHidden = figure.querySelector(".tip").hidden;
const zoom = document.querySelector("figure.zoom");
const view = () => zoom.dataset.view.split(" ").map(Number);
const press = (words) => [...zoom.querySelectorAll("button")]
  .find((button) => button.textContent === words).click();
const shownPlot = [...zoom.querySelectorAll(".plot")].filter((plot) => plot.offsetWidth > 0);
found.plots = shownPlot.length;
const canvas = shownPlot[0].querySelector("svg");
const drag = (type, share) => {
  const box = canvas.getBoundingClientRect();
  canvas.dispatchEvent(new PointerEvent(type, { clientX: box.left + box.width * share }));
};
const points = () => canvas.querySelectorAll("path[d]").length
  && Math.max(...[...canvas.querySelectorAll("g[clip-path] path")]
    .map((path) => path.getAttribute("d").split(/[ML]/).length - 1));
const ticked = () => [...canvas.querySelectorAll(".ticked")].map((text) => text.textContent);
found.views = [view()];
found.ticked = [ticked()];
found.points = [points()];
drag("pointermove", 0.5);
found.zoomTip = shownPlot[0].querySelector(".tip").innerText;
drag("pointerdown", 0.4);
drag("pointermove", 0.5);
drag("pointerup", 0.6);
found.views.push(view());
found.ticked.push(ticked());
found.points.push(points());
for (const words of ["Zoom in", "Later", "Zoom out"]) {
  press(words);
  found.views.push(view());
}
found.zoomTexts = meeting([...canvas.querySelectorAll("text")]);
found.range = zoom.querySelector(".range").textContent;
press("All");
found.views.push(view());
const paper = document.querySelector(".paper");
found.cue = [paper.scrollWidth > paper.clientWidth,
  getComputedStyle(paper.nextElementSibling).display !== "none"];
paper.scrollLeft = paper.scrollWidth;
paper.dispatchEvent(new Event("scroll"));
found.cueAtEnd = getComputedStyle(paper.nextElementSibling).display !== "none";
all("details").forEach((each) => { each.open = true; });
found.wideUnfolded = wide();
const buttons = all("table.leaves th button");
const means = () => all("table.leaves tbody tr").map((row) =>
  Number(row.cells[3].querySelector("[data-value]").dataset.value));
buttons[3].click();
found.down = means();
buttons[3].click();
found.up = means();
all("#tree .buttons button")[1].click();
found.folded = all(".tree details").every((each) => !each.open);
found.faults = faults;
parent.postMessage(found, "*");
}, 100));
"""

# Windows of a browser have a least width, frames have none.
FRAMES = """<!doctype html>
<title>frames</title>
<script>
const found = {};
addEventListener("message", (event) => {
  found[event.data.width] = event.data;
  document.documentElement.dataset.found = JSON.stringify(found);
});
</script>
"""
WIDTHS = [390, 1280]


def watched(source):
    """The page with scripts of ours beside its own, which its policy has to let in."""
    known = " ".join(
        f"'sha256-{b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
        for script in (COLLECT, MEASURE)
    )
    source = source.replace("script-src ", f"script-src {known} ", 1)
    source = source.replace("<title>", f"<script>{COLLECT}</script><title>", 1)
    return source.replace("</body>", f"<script>{MEASURE}</script></body>", 1)


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What the scripts have found, for each width."""
    folder = tmp_path_factory.mktemp("report")
    source = watched(render(*timed_run()))
    (folder / "report.html").write_text(source, encoding="utf-8")
    frames = "".join(
        f'<iframe src="report.html" style="border: 0; height: 900px; width: {width}px"></iframe>'
        for width in WIDTHS
    )
    (folder / "frames.html").write_text(FRAMES + frames, encoding="utf-8")
    command = [
        BROWSER,
        *("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--dump-dom"),
        *("--no-first-run", "--disable-background-networking", "--disable-component-update"),
        *("--virtual-time-budget=3000", f"--user-data-dir={folder / 'profile'}"),
        (folder / "frames.html").as_uri(),
    ]
    run = subprocess.run(command, capture_output=True, timeout=PATIENCE, check=True)
    told = re.search(r'<html[^>]* data-found="([^"]*)"', run.stdout.decode())
    assert told, run.stderr.decode()[-2000:]
    return json.loads(unescape(told[1]))


@pytest.fixture(params=WIDTHS)
def shown(request, found):
    return found[str(request.param)]


def test_the_page_is_whole_and_without_faults(shown):
    assert shown["faults"] == []
    assert shown["parts"] == PARTS


def test_nothing_is_wider_than_the_window(shown):
    assert shown["page"] <= shown["width"]
    assert shown["wide"] == []
    assert shown["wideUnfolded"] == []


def test_nothing_in_charts_overlaps_and_letters_can_be_read(shown):
    assert shown["charts"] == []
    assert shown["texts"] == []
    assert shown["letters"] >= 9.5


def test_the_pointer_finds_numbers(shown):
    moment, faded, total = shown["tip"].split("\n")
    evaluation = timed_run()[0]
    seconds = datetime.fromisoformat(f"{moment}Z").timestamp()
    place = evaluation.further["time"].tolist().index(seconds)
    assert float(faded.removeprefix("exponentially weighted: ")) == pytest.approx(
        evaluation.curve["faded_mae"][place], rel=1e-3
    )
    assert float(total.removeprefix("all rows: ")) == pytest.approx(
        evaluation.curve["mae"][place], rel=1e-3
    )
    assert shown["tipHidden"]


def test_leaves_can_be_sorted_and_nodes_folded(shown):
    assert len(shown["down"]) == timed_run()[1].n_leaves
    assert shown["down"] == sorted(shown["down"], reverse=True)
    assert shown["up"] == sorted(shown["up"])
    assert shown["folded"]


def test_predictions_can_be_zoomed(shown):
    whole, chosen, nearer, later, wider, again = shown["views"]
    assert shown["plots"] == 1  # of two widths
    sample = timed_run()[0].sample.rows
    assert whole == again == pytest.approx([sample["time"][0] / 86400, sample["time"][-1] / 86400])
    assert whole[0] < chosen[0] < chosen[1] < whole[1]
    width = chosen[1] - chosen[0]
    assert 0.15 < width / (whole[1] - whole[0]) < 0.35  # a fifth of the picture, axes included
    assert nearer[1] - nearer[0] == pytest.approx(width / 2)
    assert sum(nearer) == pytest.approx(sum(chosen))
    assert later == pytest.approx([nearer[0] + width / 4, nearer[1] + width / 4])
    assert wider[1] - wider[0] == pytest.approx(width)
    assert shown["points"][1] < 0.4 * shown["points"][0]
    assert shown["ticked"][0] != shown["ticked"][1]
    assert all(re.fullmatch(r"(\w{3} )?20\d\d", words) for words in shown["ticked"][0])
    assert shown["zoomTexts"] == []
    start, end = shown["range"].split(" to ")
    assert start < end
    told = r"202\d-\d\d-\d\d \d\d:\d\d, row [\d,]+\nactual: [\d.]+\npredicted: [\d.]+"
    assert re.fullmatch(told, shown["zoomTip"])


def test_a_picture_that_is_too_wide_says_so(shown):
    overflows, told = shown["cue"]
    assert overflows == (shown["width"] == 390)
    assert told == overflows
    assert not shown["cueAtEnd"]
