"""The live page in a real browser: it shows what comes, fits the window, and needs no mouse."""

import struct

import pytest

from browser_cases import Browser, needs_browser
from serve_cases import rows_of, saved, serving, until

pytestmark = needs_browser

READY = """
return document.querySelectorAll("#tree summary").length > 0
  && document.querySelectorAll("#fields input").length > 0
  && document.querySelectorAll("#numbers dd").length > 0;
"""
CHARTS = "return document.querySelectorAll('.chart canvas').length === 3"
MEASURE = """
const wide = [...document.querySelectorAll("body *")].filter((each) => {
  const held = each.closest(".scroll, .chart, pre, .skip");
  return !held && each.getBoundingClientRect().right > innerWidth + 0.5;
}).map((each) => each.outerHTML.slice(0, 90));
const clipped = [...document.querySelectorAll(".tiles dd")].filter((each) =>
  each.scrollWidth > each.clientWidth + 1).map((each) => each.textContent);
const style = getComputedStyle(document.body);
const controls = "button, input, select, a, [role=img], [role=region]";
const labelled = (each) => each.textContent.trim() || each.getAttribute("aria-label")
  || each.getAttribute("aria-labelledby") || (each.labels && each.labels.length);
const unnamed = [...document.querySelectorAll(controls)].filter((each) => each.offsetWidth)
  .filter((each) => !labelled(each)).map((each) => each.outerHTML.slice(0, 90));
return { page: document.documentElement.scrollWidth, wide, clipped, unnamed,
  background: style.backgroundColor, text: style.color,
  charts: [...document.querySelectorAll(".chart canvas")].map((each) => each.offsetWidth) };
"""
TILE = """
const names = [...document.querySelectorAll("#numbers dt")];
const found = names.find((each) => each.textContent === arguments[0]);
return found ? found.nextElementSibling.textContent : null;
"""
FOCUSED = """
const own = document.activeElement;
const style = getComputedStyle(own);
const visible = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0;
return [own.id || own.textContent.trim(), visible];
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    made = Browser(tmp_path_factory.mktemp("browser"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    path = saved(tmp_path_factory.mktemp("page"), 2_000, "intervals")
    with serving(path) as (server, client):
        for start in range(0, 1_200, 60):
            rows = rows_of(1_200, seed=5)[start : start + 60]
            for row in rows if start >= 600 else ():
                row["x"]["a"] += 3.0
                row["y"] += 4.0
            client.post("/learn", json={"rows": rows}).raise_for_status()
        yield server, client


def opened(browser, server, width=1280, dark=False):
    browser.look(width, dark=dark)
    browser.open(server.url)
    browser.until(READY)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_is_whole_at_all_widths_and_colours(browser, served, width, dark, tmp_path):
    opened(browser, served[0], width, dark)
    browser.until(CHARTS)
    found = browser.run(MEASURE)
    assert found["page"] <= width
    assert (found["wide"], found["clipped"], found["unnamed"]) == ([], [], [])
    assert all(200 < each < width for each in found["charts"])
    light = sum(map(int, found["background"].removeprefix("rgb(").removesuffix(")").split(",")))
    assert (light < 200) == dark
    assert found["background"] != found["text"]
    assert browser.complaints() == []
    picture = browser.screenshot(tmp_path / "page.png")
    assert struct.unpack(">II", picture[16:24])[0] == width


def test_new_rows_appear_without_reloading(browser, served):
    server, client = served
    opened(browser, server)
    browser.run("window.stays = true")
    before = client.get("/model").json()["rows"]
    client.post("/learn", json={"rows": rows_of(7, seed=9)}).raise_for_status()
    expected = f"{before + 7:,}"
    until(lambda: browser.run(TILE, "Rows learned") == expected)
    label = browser.run("return document.getElementById('rows-chart').getAttribute('aria-label')")
    assert label.startswith("Predictions and actuals of")
    assert browser.run("return window.stays") is True
    assert browser.run("return document.querySelectorAll('#drifts').length") == 1
    assert browser.run("return document.querySelectorAll('#importances li').length") == 3
    assert "%" in browser.run(TILE, "Coverage of 0.9")


def test_a_row_is_tried_and_the_tree_walked_by_keyboard(browser, served):
    server, client = served
    opened(browser, server)
    browser.press("tab")
    assert browser.run(FOCUSED) == ["Skip to content", True]
    seen = []
    while "field-0" not in seen:
        browser.press("tab")
        seen.append(browser.run(FOCUSED)[0])
        assert len(seen) < 30, seen
    browser.press(*"0.25", "tab", *"0.5", "tab", *"Oslo")
    assert browser.run(FOCUSED) == ["field-2", True]
    browser.press("enter")
    shown = browser.until("return document.querySelector('#answer .result')?.textContent")
    answer = client.post("/predict", json={"x": {"a": 0.25, "b": 0.5, "city": "Oslo"}}).json()
    assert float(shown) == pytest.approx(answer["predictions"][0], rel=1e-4)
    assert "90 % interval" in browser.run("return document.getElementById('answer').textContent")
    assert browser.run("return document.querySelectorAll('#answer tbody tr').length") > 1
    nodes = browser.run("return document.querySelectorAll('#tree summary').length")
    browser.run("document.querySelectorAll('#tree summary')[0].focus()")
    browser.press("enter")  # folds the root
    browser.until("return !document.querySelector('#tree details').open")
    browser.press("enter")
    browser.until("return document.querySelector('#tree details').open")
    assert nodes > 1


def test_a_bad_row_is_answered_by_its_message(browser, served):
    opened(browser, served[0])
    browser.run(
        "document.getElementById('field-0').value = 'warm';"
        "document.getElementById('try').requestSubmit()"
    )
    words = browser.until("return document.getElementById('try-error').textContent")
    assert words.startswith("x['a'] = 'warm' must be a number")
    browser.complaints()  # the browser logs each status of 422


def test_without_traffic_and_after_a_restart(browser, tmp_path):
    path = saved(tmp_path, 500)
    token = "0123456789abcdef-token"
    with serving(path, env={"SAPWOOD_TOKEN": token}) as (server, _):
        browser.look(1280)
        browser.open(server.url)
        browser.until("return !document.getElementById('token-form').hidden")
        browser.press(*"wrong", "enter")
        browser.until("return document.getElementById('token-error').textContent")
        browser.press(*token, "enter")
        browser.until(READY)
        assert browser.run("return document.getElementById('status').dataset.state") == "live"
        assert browser.run("return !document.getElementById('rows-empty').hidden")
        assert browser.run("return document.getElementById('coverage-card').hidden")
        assert browser.run(TILE, "MAE") == "\N{EN DASH}"
        port = server.url.rpartition(":")[2]
        assert server.stop() == 0  # the stream of the page does not hold it up
        browser.until("return document.getElementById('status').dataset.state === 'lost'")
    with serving(path, "--port", port, env={"SAPWOOD_TOKEN": token}):
        browser.until("return document.getElementById('status').dataset.state === 'live'")
    browser.complaints()
