"""Integers that identify series, rows and categories stay exact, whatever their size."""

import csv
import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

import sapwood
from cli_cases import invoke
from sapwood.lags import LaggedModel, Lags

ROWS, SERIES = 160, 5
BASES = {"small": 0, "53 bits": 2**53, "63 bits": 2**63 - SERIES, "64 bits": 2**64 - SERIES}


def table(base):
    rng = np.random.default_rng(1)
    keys = [base + int(key) for key in rng.integers(0, SERIES, ROWS)]
    x = rng.random(ROWS).tolist()
    return {"key": keys, "x": x, "y": [10.0 * (k - base) + v for k, v in zip(keys, x, strict=True)]}


def write_text(columns, path, between=","):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file, delimiter=between)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def write_json(columns, path):
    with open(path, "w") as file:
        for row in zip(*columns.values(), strict=True):
            file.write(json.dumps(dict(zip(columns, row, strict=True))) + "\n")


def write_arff(columns, path):
    with open(path, "w") as file:
        file.write("@relation r\n" + "".join(f"@attribute {name} numeric\n" for name in columns))
        file.write("@data\n")
        file.writelines(",".join(map(repr, row)) + "\n" for row in zip(*columns.values()))  # noqa: B905


def arrow(columns):
    kind = pa.uint64() if max(columns["key"]) >= 2**63 else pa.int64()
    return pa.table(
        {name: pa.array(own, kind if name == "key" else None) for name, own in columns.items()}
    )


WRITERS = {
    "a.csv": write_text,
    "a.tsv": lambda columns, path: write_text(columns, path, "\t"),
    "a.jsonl": write_json,
    "a.arff": write_arff,
    "a.parquet": lambda columns, path: parquet.write_table(arrow(columns), path),
    "a.arrow": lambda columns, path: feather.write_feather(arrow(columns), path),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("name", WRITERS)
def test_files(folder, name, base):
    columns = table(BASES[base])
    WRITERS[name](columns, name)
    series = sorted(set(columns["key"]))
    lagged = ["--lags", "1", "--by", "key", "--save", "m"]
    lagged += ["--report", "r.html", "--monitor"] if (name, base) == ("a.csv", "63 bits") else []
    assert invoke("evaluate", name, "-t", "y", *lagged, "-q").code == 0
    model = sapwood.load("m")
    assert model.lags.n_series == SERIES
    assert sorted(key for (key,) in model.lags._history.places) == series
    last = dict(zip(columns["key"], columns["y"], strict=True))
    for key, y in last.items():
        assert model.lags.transform_one({"key": key})["y.lag1"] == y
    assert invoke("evaluate", name, "-t", "y", "--id", "key", "--predictions", "p", "-q").code == 0
    with open("p", newline="") as file:
        assert [int(row["key"]) for row in csv.DictReader(file)] == columns["key"]
    assert invoke("train", name, "-t", "y", "--categorical", "key", "--save", "c", "-q").code == 0
    labels = sapwood.load("c")._features.categories[0]
    assert sorted(labels) == series


@pytest.mark.parametrize("name", WRITERS)
def test_a_model_with_series_predicts_and_resumes_by_exact_keys(folder, name):
    columns = table(2**60)
    WRITERS[name](columns, name)
    typed = ("-t", "y", "--lags", "1", "--by", "key", "-q")
    assert invoke("train", name, *typed, "--save", "m").code == 0
    assert invoke("predict", "m", name, "-q", "-o", "p").code == 0
    rows = [{"key": key, "x": x} for key, x in zip(columns["key"], columns["x"], strict=True)]
    model = sapwood.load("m")
    expected = model.predict_many(rows).tolist()
    with open("p") as file:
        assert list(map(float, file.read().split()[1:])) == expected
    late = ("--delay", "3", "--save", "late")
    assert invoke("train", name, *typed, *late).code == 0
    assert sapwood.load("late").lags.n_series == SERIES
    assert invoke("train", name, "--model", "m", "-q", "--save", "m2").code == 0
    assert sapwood.load("m2").lags.n_series == SERIES


def test_labels_are_joined_by_exact_ids(folder):
    ids = [2**60 + place for place in range(50)]
    write_text({"id": ids, "x": list(range(50))}, "rows.csv")
    parquet.write_table(
        pa.table({"id": ids[::-1], "y": [float(p) for p in range(50)][::-1]}), "y.parquet"
    )
    typed = ("--labels", "y.parquet", "--id", "id", "-t", "y", "--predictions", "p", "-q")
    assert invoke("evaluate", "rows.csv", *typed).code == 0
    with open("p", newline="") as file:
        assert [float(row["target"]) for row in csv.DictReader(file)] == [
            float(p) for p in range(50)
        ]


def missing(keys):
    return [None if place % 7 == 0 else key for place, key in enumerate(keys)]


FORMS = {
    "lists": lambda c: c,
    "lists with missing values": lambda c: {**c, "key": missing(c["key"])},
    "arrays": lambda c: {name: np.array(own) for name, own in c.items()},
    "rows": lambda c: [dict(zip(c, row, strict=True)) for row in zip(*c.values(), strict=True)],
    "pandas": pd.DataFrame,
    "pandas, nullable": lambda c: pd.DataFrame({**c, "key": pd.array(missing(c["key"]), "Int64")}),
    "pandas, arrow": lambda c: pd.DataFrame(c).convert_dtypes(dtype_backend="pyarrow"),
    "polars": pl.DataFrame,
    "polars with missing values": lambda c: pl.DataFrame({**c, "key": missing(c["key"])}),
    "pyarrow": pa.table,
    "pyarrow with missing values": lambda c: pa.table({**c, "key": missing(c["key"])}),
}


@pytest.mark.parametrize("form", FORMS)
def test_rows_in_python(form):
    columns = table(2**60)
    y = columns.pop("y")
    keys = missing(columns["key"]) if form.endswith(("values", "nullable")) else columns["key"]
    series = sorted({key for key in keys if key is not None})
    lagged = LaggedModel(sapwood.HoeffdingTreeRegressor(), Lags(1, by="key"))
    lagged.learn_many(FORMS[form](columns), y)
    places = {key for (key,) in lagged.lags._history.places}
    assert places == set(keys)
    singly = LaggedModel(sapwood.HoeffdingTreeRegressor(), Lags(1, by="key"))
    for key, x, target in zip(keys, columns["x"], y, strict=True):
        singly.learn_one({"key": key, "x": x}, target)
    assert singly.to_bytes() == lagged.to_bytes()
    tree = sapwood.HoeffdingTreeRegressor(categorical=["key"])
    tree.learn_many(FORMS[form](columns), y)
    assert sorted(tree._features.categories[0]) == series
