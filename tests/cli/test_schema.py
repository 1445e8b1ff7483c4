"""A model reads rows in Python as the command line reads the file that it was trained on."""

import copy
import csv
import datetime as dt
import json
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sapwood
from cli_cases import invoke
from sapwood.evaluate import prequential
from sapwood.intervals import IntervalRegressor
from sapwood.lags import LaggedModel, Lags
from sapwood.merge import ShardLearner, take_snapshot
from sapwood.rows.times import (
    parts_of,
    parts_of_one,
    seconds_of_array,
    seconds_of_time,
    seconds_of_word,
)
from sapwood.schema import PARTS, Rule, Schema
from sapwood.storage import container
from sapwood.streams.times import seconds_of_text

ROWS = 300
START = dt.datetime(2021, 12, 5, 7)
FORMATS = {  # of the column of times: how a file has it
    "iso": lambda t: t.isoformat(sep=" "),
    "iso with zone": lambda t: t.isoformat() + "Z",
    "day first": lambda t: t.strftime("%d.%m.%Y %H:%M"),
    "name of the month": lambda t: t.strftime("%d %b %Y %H:%M"),
    "half days": lambda t: t.strftime("%m/%d/%Y %I:%M %p"),
    "seconds": lambda t: str(int(t.replace(tzinfo=dt.UTC).timestamp())),
    "milliseconds": lambda t: str(int(t.replace(tzinfo=dt.UTC).timestamp()) * 1000),
    "digits": lambda t: t.strftime("%Y%m%d%H%M"),
}
WHOLE = ("seconds", "milliseconds", "digits")


def table(form):
    """Return the columns of a file as Python has them, and y."""
    rng = np.random.default_rng(3)
    times = [START + dt.timedelta(hours=7 * row) for row in range(ROWS)]
    columns = {
        "when": times,
        "price": np.round(rng.uniform(900, 3000, ROWS), 2).tolist(),
        "city": rng.choice(["Oslo", "Bonn", "7"], ROWS).tolist(),
        "zone": rng.integers(1, 4, ROWS).tolist(),
        "open": (rng.random(ROWS) < 0.5).tolist(),
        "area": rng.random(ROWS).tolist(),
    }
    y = [
        10 * (t.hour > 11) + 3 * t.weekday() + 5 * (c == "7") + 4 * z + 6 * o + p / 500
        for t, p, c, z, o in zip(*list(columns.values())[:5], strict=True)
    ]
    words = {
        **columns,
        "when": [FORMATS[form](each) for each in times],
        "price": [
            f"{each:,.2f} €".translate(str.maketrans(",.", ".,")) for each in columns["price"]
        ],
        "open": ["true" if each else "false" for each in columns["open"]],
    }
    return columns, words, y


def trained(form, *options):
    """Train a model by the command line; return it, the columns, and what `predict` prints."""
    columns, words, y = table(form)
    for name, with_y in (("train.csv", True), ("rows.csv", False)):
        with open(name, "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow([*words, *(["y"] if with_y else [])])
            writer.writerows(zip(*words.values(), *([y] if with_y else []), strict=True))
    typed = ["train.csv", "-t", "y", "--categorical", "zone", "-s", "grace_period=50", "-q"]
    assert invoke("train", *typed, "--save", "m", *options).code == 0
    found = invoke("predict", "m", "rows.csv", "-q")
    assert found.code == 0, found.stderr
    return sapwood.load("m"), columns, words, np.array(list(map(float, found.stdout.split()[1:])))


def forms_of(columns, words, form):
    """Return the rows in all forms that a caller may have."""
    whole = {**words, "when": [int(each) for each in words["when"]]} if form in WHOLE else words
    utc = [each.replace(tzinfo=dt.UTC) for each in columns["when"]]
    ahead = dt.timezone(dt.timedelta(hours=5, minutes=30))
    stamps = np.array(columns["when"], "datetime64[us]")
    frame = pd.DataFrame(columns)
    names = list(columns)
    yield "columns of datetimes", columns
    yield (
        "columns of datetimes with a zone",
        {**columns, "when": [t.astimezone(ahead) for t in utc]},
    )
    for unit in ("s", "ms", "us", "ns"):
        yield f"datetime64[{unit}]", {**columns, "when": stamps.astype(f"datetime64[{unit}]")}
        frame[f"when {unit}"] = stamps.astype(f"datetime64[{unit}]")
    yield "words", words
    yield "whole numbers", whole
    yield "an array of whole numbers", {**whole, "when": np.array(whole["when"])}
    yield (
        "rows of datetimes",
        [dict(zip(names, row, strict=True)) for row in zip(*columns.values(), strict=True)],
    )
    yield (
        "rows of words",
        [dict(zip(names, row, strict=True)) for row in zip(*words.values(), strict=True)],
    )
    for unit in ("s", "ms", "us", "ns"):
        yield f"pandas, {unit}", frame[names].assign(when=frame[f"when {unit}"])
    frame = frame[names]
    yield (
        "pandas with a zone",
        frame.assign(when=frame["when"].dt.tz_localize("UTC").dt.tz_convert("Asia/Kolkata")),
    )
    yield "pandas of words", pd.DataFrame(words)
    yield "pandas of whole numbers", pd.DataFrame(whole)
    yield "pandas of categoricals", frame.assign(city=frame["city"].astype("category"))
    yield "pandas of objects", frame.astype(object)
    yield "pandas of arrow", frame.convert_dtypes(dtype_backend="pyarrow")
    yield "polars", pl.DataFrame(columns)
    yield "polars of words", pl.DataFrame(words)
    yield "polars of whole numbers", pl.DataFrame(whole)
    yield (
        "polars with a zone",
        pl.DataFrame(columns).with_columns(pl.col("when").dt.replace_time_zone("UTC")),
    )
    yield "pyarrow", pa.table(columns)
    yield "pyarrow of words", pa.table(words)
    yield "pyarrow, a batch", pa.table(columns).to_batches()[0]
    yield "an array", np.array(list(zip(*columns.values(), strict=True)), dtype=object)
    yield "lists", [list(row) for row in zip(*columns.values(), strict=True)]


@pytest.mark.parametrize("form", FORMATS)
def test_rows_in_any_form_are_predicted_as_by_the_command_line(form, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model, columns, words, expected = trained(form)
    assert np.ptp(expected) > 10
    assert model.schema.targets == ("y",)
    for what, rows in forms_of(columns, words, form):
        assert np.asarray(model.predict_many(rows)).tolist() == expected.tolist(), what
        again = model.predict_many(model.schema.encode(rows))
        assert again.tolist() == expected.tolist(), what
    for what, rows in forms_of(columns, words, form):
        if isinstance(rows, list) and isinstance(rows[0], dict):
            assert [model.predict_one(row) for row in rows] == expected.tolist(), what
            encoded = [model.schema.encode_one(row) for row in rows]
            assert [model.predict_one(row) for row in encoded] == expected.tolist(), what
    stamped = [
        {
            **{name: own[row] for name, own in columns.items()},
            "when": pd.Timestamp(columns["when"][row]),
        }
        for row in range(50)
    ]
    assert [model.predict_one(row) for row in stamped] == expected[:50].tolist()


WRAPPED = {
    "forest": ["-m", "forest", "-s", "members=3"],
    "adaptive": ["-m", "adaptive"],
    "lags": ["--lags", "1,2", "--lags-of", "price:1"],
    "intervals": ["--interval", "0.9"],
    "forest with intervals": ["-m", "forest", "-s", "members=3", "--interval", "0.9"],
    "lags and intervals": ["--lags", "1", "--interval", "0.9"],
    "no parts": ["--time-parts", "none"],
    "all parts": ["--time-parts", ",".join(PARTS)],
}


@pytest.mark.parametrize(
    ("wrapped", "form"),
    [*zip(WRAPPED, ["iso", "day first", "milliseconds", "digits"] * 2, strict=True)],
)
def test_wrappers_and_ensembles_apply_the_schema(wrapped, form, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model, columns, words, expected = trained(form, *WRAPPED[wrapped])
    for what, rows in forms_of(columns, words, form):
        if ("array" in what and wrapped.startswith("lags")) or what == "lists":
            continue
        assert np.asarray(model.predict_many(rows)).tolist() == expected.tolist(), what
    first = {name: own[0] for name, own in columns.items()}
    said = {name: own[0] for name, own in words.items()}
    assert model.predict_one(first) == model.predict_one(said) == expected[0]


@pytest.mark.parametrize("wrapped", ["tree", *WRAPPED])
def test_rows_in_any_form_are_learned_alike(wrapped, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model, columns, words, _ = trained("milliseconds", *WRAPPED.get(wrapped, []))
    y, schema = np.arange(ROWS, dtype=float), sapwood.load("m").schema
    one, many, encoded, told = (sapwood.load("m") for _ in range(4))
    names = list(columns)
    for row in range(60):
        one.learn_one({name: columns[name][row] for name in names}, y[row])
        told.learn_one(schema.encode_one({n: words[n][row] for n in names}), y[row])
    many.learn_many(pd.DataFrame(columns)[:60], y[:60])
    encoded.learn_many(model.schema.encode(pl.DataFrame(words)[:60]), y[:60])
    probe = pd.DataFrame(columns)[60:70]
    found = [np.asarray(each.predict_many(probe)).tolist() for each in (one, many, encoded, told)]
    assert found[0] == found[1] == found[2] == found[3]
    assert found[0] != np.asarray(model.predict_many(probe)).tolist()


@pytest.mark.parametrize("form", ["iso", "milliseconds", "name of the month"])
def test_wrappers_made_in_python_and_adapters_apply_the_schema(form, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model, columns, words, expected = trained(form)
    for wrapper in (
        IntervalRegressor(model.copy()),
        LaggedModel(model.copy(), Lags(1)),
        LaggedModel(IntervalRegressor(model.copy()), Lags(1)),
    ):
        assert wrapper.schema == model.schema
        for what, rows in forms_of(columns, words, form):
            if "array" not in what and what != "lists":
                assert np.asarray(wrapper.predict_many(rows)).tolist() == expected.tolist(), what
        first = {name: own[0] for name, own in words.items()}
        assert wrapper.predict_one(first) == expected[0]
        twin = type(wrapper).from_bytes(wrapper.to_bytes())
        assert twin.schema == model.schema
        assert np.asarray(twin.predict_many(words)).tolist() == expected.tolist()
    river = pytest.importorskip("sapwood.river").HoeffdingTreeRegressor()
    river.model = model
    frame = pd.DataFrame(columns)
    assert river.predict_many(frame).tolist() == expected.tolist()
    assert river.predict_one({name: own[0] for name, own in columns.items()}) == expected[0]
    sklearn = (
        pytest.importorskip("sapwood.sklearn")
        .HoeffdingTreeRegressor()
        .fit(frame[["area"]], expected)
    )
    sklearn.fit(frame.drop(columns="when"), expected).model_ = model
    sklearn.feature_names_in_ = np.array(list(frame.columns), dtype=object)
    sklearn.n_features_in_ = len(frame.columns)
    assert sklearn.predict(frame).tolist() == expected.tolist()


def test_copies_members_and_targets_keep_the_schema(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model, columns, words, expected = trained("day first", "-m", "forest", "-s", "members=2")
    for twin in (model.copy(), pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert twin.schema == model.schema
        assert twin.predict_many(columns).tolist() == expected.tolist()
    member = model.member(0)
    assert member.predict_many(columns).tolist() == member.predict_many(words).tolist()
    row = {name: own[0] for name, own in words.items()}
    assert model.explain(row).prediction == expected[0]


def test_two_schemas_are_joined():
    when = Rule("when", "time", "%d.%m.%Y", ("hour",))
    one = Schema((when, Rule("x", "number")), ("y",))
    other = Schema((Rule("when", "time", "%d.%m.%Y", ("season",)), Rule("z", "category")), ("y",))
    both = one.joined(other)
    assert list(both.features) == ["when", "when.hour", "when.season", "x", "z"]
    assert one.joined(Schema()) == Schema().joined(one) == one
    with pytest.raises(ValueError, match="'x' was read as number for one model and as category"):
        one.joined(Schema((Rule("x", "category"),)))
    with pytest.raises(ValueError, match="the target of one model is 'y', and that of another"):
        one.joined(Schema((), ("price",)))


def test_workers_train_with_the_same_schema(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    one, columns, words, _ = trained("day first")
    more = ("--workers", "1", "--engine", "threads")
    model, _, _, expected = trained("day first", *more)
    assert model.schema == one.schema
    assert model.predict_many(columns).tolist() == expected.tolist()
    shards = [ShardLearner(take_snapshot(model)) for _ in range(2)]
    told = [
        s.predict_learn_many(x, expected) for s, x in zip(shards, (columns, words), strict=True)
    ]
    assert told[0].tolist() == told[1].tolist()


@pytest.mark.parametrize("form", ["day first", "milliseconds"])
def test_rows_are_evaluated_in_any_form(form, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _, columns, words, y = trained(form)
    scores = [
        prequential(sapwood.load("m"), rows, y).total.rmse
        for _, rows in forms_of(columns, words, form)
    ]
    names = list(words)
    pairs = [
        (dict(zip(names, row, strict=True)), t) for *row, t in zip(*words.values(), y, strict=True)
    ]
    scores.append(prequential(sapwood.load("m"), pairs).total.rmse)
    late = [
        prequential(sapwood.load("m"), rows, y, delay=5).total.rmse for rows in (columns, words)
    ]
    assert len(set(scores)) == len(set(late)) == 1


# -- values ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "value", "words"),
    [
        (
            Rule("t", "time", "%d.%m.%Y"),
            "2012-10-02",
            "must be a time: .* in the format '%d.%m.%Y'",
        ),
        (Rule("t", "time"), "2.10.2012", "must be a time: .* of ISO 8601"),
        (Rule("t", "time"), object(), "must be a number or a string"),
        (Rule("t", "time"), float("inf"), "must be finite"),
        (Rule("t", "time", "milliseconds"), "soon", "must be a time"),
        (Rule("b", "boolean"), "maybe", "must be true or false"),
        (Rule("n", "number", number_format="1.234,5"), "1,234.5", "must be a number, or text like"),
    ],
)
def test_bad_values_are_rejected_with_their_place(rule, value, words):
    schema = Schema((rule,))
    with pytest.raises(ValueError, match=rf"^x\['{rule.name}'\] = .* {words}"):
        schema.encode_one({rule.name: value})
    with pytest.raises(ValueError, match=rf"^x\['{rule.name}'\] = .* at position 1 {words}"):
        schema.encode({rule.name: [None, value]})


MISSING_VALUES = [None, float("nan"), np.datetime64("NaT", "s"), pd.NaT, pd.NA, "", " NA", "?"]


@pytest.mark.parametrize("value", MISSING_VALUES, ids=repr)
def test_missing_times(value):
    schema = Schema((Rule("t", "time", "%d.%m.%Y", ("hour", "season")),))
    row = schema.encode_one({"t": value})
    assert row == {"t": None, "t.hour": None, "t.season": None}
    columns = schema.encode({"t": [value, "1.1.1970"]})
    assert np.isnan(columns["t"]).tolist() == [True, False]
    assert np.isnan(columns["t.season"]).tolist() == [True, False]
    assert schema.encode_one({"x": 1}) == {"x": 1}


@settings(max_examples=200)
@given(
    moment=st.datetimes(dt.datetime(1, 1, 2), dt.datetime(9999, 12, 30)),
    format=st.sampled_from(
        [
            "%d.%m.%Y",
            "%Y%m%d%H%M",
            "%d %b %Y %H:%M:%S.%f",
            "%I:%M %p",
            "%m/%d/%y",
            "%j %Y",
            None,
            "%Y-%m-%d %H:%M %z",
            "%A, %B %d, %Y",
            "%H:%M",
        ]
    ),
    zone=st.sampled_from(["+0530", "-01:00", "Z"]),
    swapped=st.booleans(),
)
def test_a_text_is_the_same_time_as_in_a_file(moment, format, zone, swapped):
    text = moment.isoformat() if format is None else moment.strftime(format.replace("%z", zone))
    text = text.swapcase() if swapped else text
    column, bad = seconds_of_text(pa.array([text]), format)
    found = seconds_of_word(text, format)
    assert (found is None) == bool(bad[0])
    assert found is None or found == column[0]
    if not bad[0]:
        whole = parts_of(column, PARTS)
        assert parts_of_one(found, PARTS) == {part: own[0] for part, own in whole.items()}


@settings(max_examples=100)
@given(count=st.integers(-(2**62), 2**62), unit=st.sampled_from(["s", "ms", "us", "ns"]))
def test_units_of_numpy_are_exact(count, unit):
    per = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    time = np.array([count], f"datetime64[{unit}]")
    assert seconds_of_array(time)[0] == seconds_of_time(time[0]) == count / per


# -- files ----------------------------------------------------------------------------------------


def test_a_schema_is_saved_as_it_is():
    schema = Schema(
        (
            Rule("when", "time", "%d.%m.%Y", ("hour", "season")),
            Rule("price", "number", number_format="1.234,5 €"),
            Rule("zone", "category", declared=True),
            Rule(3, "boolean"),
            Rule("key", "number", exact=True),
        ),
        ("y", 2),
        "when",
        ("id",),
    )
    header = json.loads(json.dumps(schema.to_header()))
    assert Schema.from_header(header) == schema
    tree = sapwood.HoeffdingTreeRegressor()
    tree.schema = schema
    assert type(tree).from_bytes(tree.to_bytes()).schema == schema
    with pytest.raises(TypeError, match=r"schema = 3: a sapwood\.schema\.Schema is expected"):
        tree.schema = 3


BAD = [
    None, [], {}, "x",
    {"rules": {}}, {"rules": [1]}, {"rules": [{}]}, {"rules": [{"name": "a"}]},
    {"rules": [{"name": 1.5, "role": "number"}]}, {"rules": [{"name": "a", "role": "undecided"}]},
    {"rules": [{"name": "a", "role": "number", "more": 1}]}, {"rules": [{"name": "a", "role": []}]},
    {"rules": [{"name": "a", "role": "time", "parts": ["minute"]}]},
    {"rules": [{"name": "a", "role": "time", "parts": ["hour", "hour"]}]},
    {"rules": [{"name": "a", "role": "time", "parts": "hour"}]},
    {"rules": [{"name": "a", "role": "time", "time_format": 3}]},
    {"rules": [{"name": "a", "role": "number", "number_format": "%Y"}]},
    {"rules": [{"name": "a", "role": "number", "number_format": "1,234,5"}]},
    {"rules": [{"name": "a", "role": "category", "declared": 1}]},
    {"rules": [{"name": "a", "role": "number"}] * 2},
    {"targets": [None]}, {"targets": "y"}, {"time": 3}, {"ids": [3]}, {"more": 1},
]  # fmt: skip


@pytest.mark.parametrize("bad", BAD, ids=repr)
def test_what_no_model_has_saved_is_damaged(bad):
    good = Schema((Rule("a", "number"),), ("y",)).to_header()
    kind = "HoeffdingTreeRegressor"
    header, arrays = container.unpack(sapwood.HoeffdingTreeRegressor().to_bytes(), kind)
    header["schema"] = {**good, **bad} if isinstance(bad, dict) and bad else bad or []
    with pytest.raises(sapwood.ModelFileError, match="the schema is not as it was saved"):
        sapwood.HoeffdingTreeRegressor.from_bytes(container.pack(kind, header, arrays))


@pytest.mark.parametrize("form", ["iso", "day first"])
def test_files_without_a_schema_read_dates_by_formats_and_names(form, tmp_path, monkeypatch):
    """As the releases before have saved them: formats alone, and the names of parts."""
    monkeypatch.chdir(tmp_path)
    model, columns, words, expected = trained(form)
    kind = "HoeffdingTreeRegressor"
    header, arrays = container.unpack(model.to_bytes(), kind)
    del header["schema"]
    header["format"] = 3
    if model.schema.formats:
        header["column_formats"] = model.schema.formats
    older = type(model).from_bytes(container.pack(kind, header, arrays))
    assert older.schema.targets == ()
    encoded = {**columns, "open": np.array(columns["open"], float)}
    assert older.predict_many(encoded).tolist() == expected.tolist()
    assert older.predict_many({**encoded, "when": words["when"]}).tolist() == expected.tolist()
    assert older.predict_many(pd.DataFrame(encoded)).tolist() == expected.tolist()
