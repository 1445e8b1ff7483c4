"""The live page of a model of several targets: each of them can be looked at."""

import pytest

import sapwood
from browser_cases import Browser, needs_browser
from serve_cases import rows_of, serving, until

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
