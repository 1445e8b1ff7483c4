"""The figures about recurring concepts, columns and features are those of the results files."""

import csv
import re
from collections import defaultdict

import numpy as np
import pytest

from places import ROOT

PAGE = (ROOT / "docs" / "benchmarks" / "hard-cases.md").read_text(encoding="utf-8")
RESULTS = ROOT / "docs" / "benchmarks" / "results"
MODELS = ("tree", "adaptive", "forest")
CONCEPTS = {
    "Recurring concepts, labels at once": [
        ("at once", model, when) for model in MODELS for when in ("plain", "pool")
    ],
    "Recurring concepts, labels by 1,000": [
        *(("by 1,000", model, when) for model in MODELS for when in ("plain", "pool")),
        ("by 1,000", "tree", "lightgbm"),
    ],
}
COLUMNS = {
    "Locations": (
        "location",
        [
            *(
                (model, which)
                for model in ("tree", "forest")
                for which in ("plain", "2 rotated", "views")
            ),
            ("LightGBM", "plain"),
            ("nearest neighbours", "plain"),
        ],
    ),
    "Crosses of categories": (
        "crosses",
        [
            *(
                (model, which)
                for model in ("tree", "forest")
                for which in ("plain", "crosses", "views")
            ),
            ("LightGBM", "plain"),
        ],
    ),
    "Lags that make a model worse": (
        "lags",
        [
            *(
                (model, which)
                for model in ("tree", "forest")
                for which in ("without lags", "with lags", "mean of both", "views")
            ),
            ("a day before", "lag 24"),
        ],
    ),
}


SCREENED = ("tree", "tree, screened", "forest", "forest, screened")
FEATURES = [
    *(("at once", model) for model in SCREENED),
    *(("by 1,000", model) for model in (*SCREENED, "LightGBM")),
]


def rows_of(name):
    with (RESULTS / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def table_of(title):
    section = PAGE.split(f"### {title}\n")[1].split("\n### ")[0].split("\n## ")[0]
    rows = re.findall(r"^\| ((?!stream|---).+?) \| (.+) \|$", section, re.M)
    return {stream: cells.split(" | ") for stream, cells in rows}


def concepts():
    found = defaultdict(lambda: defaultdict(list))
    for row in rows_of("hard_concepts.csv"):
        if row["case"] != "real":
            for when in ("plain", "pool", "lightgbm"):
                if row[when]:
                    column = row["labels"], row["model"], when
                    found[row["stream"].split(", seed")[0]][column].append(float(row[when]))
    return found


@pytest.mark.parametrize("title", CONCEPTS)
def test_a_table_of_concepts_is_that_of_the_file(title):
    expected = {
        stream: [f"{np.mean(own[column]):.3f}" for column in CONCEPTS[title]]
        for stream, own in concepts().items()
    }
    assert table_of(title) == expected


@pytest.mark.parametrize("title", COLUMNS)
def test_a_table_of_columns_is_that_of_the_file(title):
    case, columns = COLUMNS[title]
    found = defaultdict(lambda: defaultdict(list))
    for row in rows_of("hard_columns.csv"):
        if row["case"] == case:
            own = found[row["stream"].split(", seed")[0]]
            own[row["model"], row["columns"]].append(float(row["r2"]))
    expected = {
        stream: [f"{np.mean(own[column]):.3f}" for column in columns]
        for stream, own in found.items()
    }
    assert table_of(title) == expected


def test_the_costs_of_cells_are_those_of_the_file():
    costs = defaultdict(list)
    for row in rows_of("hard_columns.csv"):
        if row["case"] == "location" and row["microseconds"]:
            costs[row["model"], row["columns"]].append(float(row["microseconds"]))
    plain, cells, forest, wide = (
        f"{np.mean(costs[model, columns]):.0f} µs"
        for model in ("tree", "forest")
        for columns in ("plain", "views")
    )
    words = f"takes {plain} with a tree, {cells} with cells, {forest} with a forest, and {wide} with cells"
    assert words in " ".join(PAGE.split())


def test_real_streams_lose_nothing_at_once_and_may_lose_in_batches():
    gains = {
        (row["stream"], row["labels"], row["model"]): float(row["pool"]) - float(row["plain"])
        for row in rows_of("hard_concepts.csv")
        if row["case"] == "real"
    }
    text = " ".join(PAGE.split())
    at_once = [abs(gain) for (_, labels, _), gain in gains.items() if labels == "at once"]
    assert f"R² changes by at most {max(at_once):.4f} with labels at once" in text
    worst = min(gains, key=gains.get)
    assert f"the largest loss is {-gains[worst]:.3f} ({worst[0]}, {worst[2]})" in text
    best = max(gains, key=gains.get)
    assert f"the largest gain {gains[best]:.3f} ({best[0]}, {best[2]})" in text


def test_the_table_of_screened_features_is_that_of_the_file():
    found = defaultdict(lambda: defaultdict(list))
    for row in rows_of("hard_features.csv"):
        own = found[row["stream"].split(", seed")[0]]
        own[row["labels"], row["model"]].append(float(row["r2"]))
    expected = {
        stream: [f"{np.mean(own[column]):.3f}" for column in FEATURES]
        for stream, own in found.items()
    }
    assert table_of("Screened features") == expected


def test_the_costs_of_a_row_with_many_features_are_those_of_the_file():
    costs = defaultdict(list)
    for row in rows_of("hard_features.csv"):
        if "narrow" not in row["stream"]:
            costs[row["model"]].append(float(row["microseconds"]))
    tree, screened, forest, small = (f"{np.mean(costs[model]):.0f} µs" for model in SCREENED)
    words = (
        f"a row takes {tree} of the processor with a tree, {screened} with a screened tree, "
        f"{forest} with a forest, and {small} with a screened forest"
    )
    assert words in " ".join(PAGE.split())
