"""Errors by series on the command line."""

import numpy as np
import pytest

from cli_cases import invoke, read_csv


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Three shops, of which one opens late and one closes early."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(5)
    lines = ["at,shop,sold"]
    for day in range(400):
        at = np.datetime64("2024-01-01") + np.timedelta64(day, "D")
        for place, shop in enumerate(("north", "south", "west")):
            if (shop == "south" and day < 200) or (shop == "west" and day >= 100):
                continue
            lines.append(f"{at},{shop},{rng.normal(10 * place + day % 7, 1 + place):.2f}")
    (tmp_path / "shops.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


EVALUATE = ("evaluate", "shops.csv", "-t", "sold", "--series", "shop")


def test_errors_by_series_are_printed_and_written(folder):
    ended = invoke(*EVALUATE, "--series-errors", "by.csv", "--report", "r.html", "--json")
    assert ended.code == 0, ended.stderr
    found = ended.json()["series"]
    rows = {each["key"][0]: each for each in found["series"]}
    assert {name: each["rows"] for name, each in rows.items()} == {
        "north": 400,
        "south": 200,
        "west": 100,
    }
    total = sum(each["mae"] * each["rows"] for each in rows.values())
    assert total == pytest.approx(ended.json()["total"]["mae"] * 700)
    written = {row["shop"]: row for row in read_csv(folder / "by.csv")}
    assert float(written["south"]["mase"]) == rows["south"]["mase"]
    assert float(written["south"]["first"]) == 1_704_067_200.0 + 200 * 86_400
    page = (folder / "r.html").read_text()
    assert "Scores by series" in page
    assert "2024-07-19" in page
    shown = invoke(*EVALUATE)
    assert "3 series; those with the largest sums of absolute errors are shown" in shown.stdout
    assert "2024-04-09" in shown.stdout


def test_the_season_and_late_labels_apply_to_each_series(folder):
    late = (*EVALUATE, "--by", "shop", "--lags", "7d", "--horizon", "3d", "--season", "7d")
    ended = invoke(*late, "--json")
    assert ended.code == 0, ended.stderr
    found = ended.json()["series"]
    assert found["season"] == "7d"
    assert sum(each["rows"] for each in found["series"]) == ended.json()["rows"]["learned"]
    several = invoke(*EVALUATE, "--horizon", "1d,7d", "--lags", "7d", "--series-errors", "by.csv")
    assert several.code == 2
    assert "--series-errors by.csv is for one --horizon" in several.stderr


def test_a_resumed_run_ends_with_the_same_errors(folder):
    text = (folder / "shops.csv").read_text().splitlines()
    (folder / "shops.csv").write_text("\n".join(text[:300]) + "\n")
    kept = ("--checkpoint", "C", "--json")
    assert invoke(*EVALUATE, *kept).code == 0
    (folder / "shops.csv").write_text("\n".join(text) + "\n")
    resumed = invoke(*EVALUATE, *kept)
    assert resumed.code == 0, resumed.stderr
    assert resumed.json()["series"] == invoke(*EVALUATE, "--json").json()["series"]
    other = invoke("evaluate", "shops.csv", "-t", "sold", *kept)
    assert other.code == 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--series", "shops"), "--series shops: shops.csv has no such feature"),
        (("--series-errors", "by.csv"), "needs --series"),
        (("--series", "at", "--task", "classes"), "--series is for numbers"),
    ],
)
def test_what_is_no_series_is_rejected(folder, options, words):
    ended = invoke("evaluate", "shops.csv", "-t", "sold", *options)
    assert ended.code == 2
    assert words in ended.stderr
