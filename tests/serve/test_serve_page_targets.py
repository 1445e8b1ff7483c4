"""The live page of other models: several targets, classes, and no explanations."""

import pytest

import sapwood
from browser_cases import Browser, needs_browser
from serve_cases import class_rows_of, rows_of, saved, serving, until

pytestmark = needs_browser

CHART = "return document.getElementById('rows-chart').getAttribute('aria-label') || ''"
SELECT = """
const select = document.getElementById("target");
select.value = arguments[0];
select.dispatchEvent(new Event("change"));
"""
MAE = """
const names = [...document.querySelectorAll("#numbers dt")];
return names.find((each) => each.textContent === "MAE").nextElementSibling.textContent;
"""


@pytest.fixture
def browser(tmp_path):
    made = Browser(tmp_path)
    yield made
    made.close()


def test_each_target_has_its_charts(browser, tmp_path):
    path = tmp_path / "model.sapwood"
    tree = sapwood.HoeffdingTreeRegressor()
    items = [
        {"x": item["x"], "y": {"low": item["y"], "high": 100 + 10 * item["y"]}}
        for item in rows_of(400)
    ]
    tree.learn_many([item["x"] for item in items], [item["y"] for item in items])
    tree.save(path)
    with serving(path) as (server, client):
        client.post("/learn", json={"rows": items[:200]}).raise_for_status()
        until(lambda: client.get("/model").json()["scores"]["rows"] == 200)
        errors = client.get("/model").json()["scores"]["errors"]
        browser.look(390)
        browser.open(server.url)
        browser.until("return document.querySelectorAll('#target option').length === 2")
        browser.until("return document.querySelectorAll('.chart canvas').length === 2")
        last = items[199]["y"]
        for place, name in enumerate(("low", "high")):
            browser.run(SELECT, str(place))
            assert f"actual {last[name]:.4g}" in browser.run(CHART)
            assert browser.run(MAE) == f"{errors[name]['mae']:.4g}"
        assert browser.run("return document.documentElement.scrollWidth") <= 390
        assert browser.complaints() == []
        browser.screenshot(tmp_path / "page.png")


TRY = """
document.querySelectorAll("#fields input").forEach((field, place) => {
  field.value = ["0.25", "0.5", "Oslo"][place];
});
document.getElementById("try").requestSubmit();
"""
ANSWER = "return document.querySelector('#answer .result')?.textContent"
ROW = {"a": 0.25, "b": 0.5, "city": "Oslo"}


@pytest.mark.parametrize("width", [1280, 390])
def test_classes_and_their_probabilities_are_shown(browser, tmp_path, width):
    path = saved(tmp_path, 1_000, "classes")
    with serving(path) as (server, client):
        client.post("/learn", json={"rows": class_rows_of(200, seed=2)}).raise_for_status()
        until(lambda: client.get("/model").json()["scores"]["rows"] == 200)
        browser.look(width)
        browser.open(server.url)
        browser.until("return document.querySelectorAll('.chart canvas').length === 2")
        browser.until("return document.querySelectorAll('#fields input').length === 3")
        names = browser.run(
            "return [...document.querySelectorAll('#numbers dt')].map((e) => e.textContent)"
        )
        assert names[1:4] == ["Accuracy", "Log-loss", "Classes"]
        browser.run(TRY)
        found = client.post("/predict", json={"x": ROW}).json()
        assert browser.until(ANSWER) == found["predictions"][0]
        shares = browser.run(
            "return [...document.querySelectorAll('#answer .share')].map((e) => e.textContent)"
        )
        expected = sorted(found["probabilities"][0], reverse=True)
        assert shares == [f"{100 * share:.1f} %" for share in expected]
        assert "%" in browser.until("return document.querySelector('#tree .facts')?.textContent")
        assert "correctly" in browser.run(CHART)
        assert browser.run("return document.documentElement.scrollWidth") <= width
        assert browser.complaints() == []


@pytest.mark.parametrize("kind", ["lags", "hybrid"])
def test_a_row_can_be_tried_whether_or_not_it_is_explained(browser, tmp_path, kind):
    path = saved(tmp_path, 500, kind)
    with serving(path) as (server, client):
        browser.look(1280)
        browser.open(server.url)
        browser.until("return document.querySelectorAll('#fields input').length >= 3")
        browser.run(TRY)
        shown = browser.until(ANSWER)
        expected = client.post("/predict", json={"x": ROW}).json()["predictions"][0]
        assert float(shown.replace(",", "")) == pytest.approx(expected, rel=1e-4)
        explained = browser.run("return document.querySelectorAll('#answer details').length")
        assert explained == (1 if kind == "lags" else 0)
        assert browser.complaints() == []
