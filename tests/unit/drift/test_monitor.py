"""The monitor of a stream: beside its slow twin, what it says, how often it errs, its files."""

import copy
import math
import pickle

import numpy as np
import pytest

import naive_drift
import sapwood
from sapwood import ModelFileError
from sapwood.drift import Monitor, _monitor
from sapwood.storage import container

CITIES = np.array(["Oslo", "Rome", "Lima"], dtype=object)


def stream(rows=12_000, seed=1):
    rng = np.random.default_rng(seed)
    x = {
        "temperature": rng.normal(12, 3, rows),
        "price": rng.lognormal(0, 1, rows),
        "city": rng.choice(CITIES, rows),
    }
    predictions = x["temperature"] * 2
    return x, predictions + rng.normal(size=rows), predictions


def part(x, start, stop):
    return {name: column[start:stop] for name, column in x.items()}


# -- the kernel ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["still", "shift", "missing", "smooth", "label"])
def test_the_evidence_is_that_of_the_twin(kind):
    rng = np.random.default_rng(7)
    rows = 30_000
    values = rng.normal(size=rows)
    if kind == "shift":
        values[20_000:] += 0.3
    elif kind == "missing":
        values[20_000:][rng.random(10_000) < 0.03] = np.nan
    elif kind == "smooth":
        values = np.convolve(values, np.ones(60) / 60, "same")
    elif kind == "label":
        values = rng.choice([0.0, 1.0, 2.0, 5.0], rows, p=[0.5, 0.3, 0.199, 0.001])
    parts = _monitor.column_parts()
    columns = np.zeros((3, _monitor.COLUMN_FIELDS))
    columns[:2, parts["kind"]] = _monitor.WAITING
    edges = np.quantile(rng.normal(size=500), np.linspace(0, 1, 9))
    edges[0], edges[-1] = -9.0, 9.0  # beyond which there is nothing: bins stay what they are
    columns[2, parts["edges"]] = edges
    columns[2, parts["kind"]] = _monitor.CATEGORY if kind == "label" else _monitor.NUMBER

    def bin_of(value):
        if kind == "label" or math.isnan(value):
            return "missing" if math.isnan(value) else value
        return sum(value >= edge for edge in edges[:-1]) + (value > edges[-1])

    twin, most = naive_drift.Column(bin_of), 0.0
    error = np.zeros(_monitor.ERROR_FIELDS)
    for start in range(0, rows, 1000):
        some = values[start : start + 1000]
        found = _monitor.watch_rows(
            columns,
            error,
            np.zeros(_monitor.SCALE_FIELDS),
            np.full((1000, 2), np.nan),
            some[:, None].copy(),
            0,
            float(start),
            1e300,
            1e9,
        )
        assert found[:3] == (1000, 0, [])
        for value in some.tolist():
            twin.see(value, 1e300)
        for name in ("evidence", "likeliest", "unrest", "spans", "turns", "weight"):
            own = columns[2, parts[name]].tolist()
            attribute = "overdispersion" if name == "unrest" else name
            expected = np.atleast_1d(getattr(twin, attribute)).tolist()
            assert own == pytest.approx(expected, rel=1e-6, abs=1e-9), (name, start)
        assert columns[2, parts["since"]][0] == (twin.since or 0)
        most = max(most, twin.evidence)
    assert most > (1e4 if kind in ("shift", "missing") else 0)


# -- what it says ----------------------------------------------------------------------------------

AT = 8000


def change(x, y, p, rng):
    """Yield a change of each kind: its name, what is told of it, and the words."""
    rows = len(y) - AT
    later = slice(AT, None)
    yield "level", {**x}, np.r_[y[:AT], y[later] + 40], p, "target", "y: median 23.9 → "
    yield "scale", {**x, "temperature": scaled(x["temperature"])}, y, p, "feature", "median 12 → 3"
    gone = np.r_[x["price"][:AT], np.full(rows, np.nan)]
    yield "gone", {**x, "price": gone}, y, p, "feature", "price: missing 0 % → 100 % of rows"
    some = x["price"].copy()
    some[AT:][rng.random(rows) < 0.2] = np.nan
    yield "missing", {**x, "price": some}, y, p, "feature", "price: missing 0 % → 2"
    city = x["city"].copy()
    city[AT:][rng.random(rows) < 0.3] = "Paris"
    yield "new", {**x, "city": city}, y, p, "feature", "city: Paris is new, 3"
    city = x["city"].copy()
    city[AT:][rng.random(rows) < 0.7] = "Oslo"
    yield "share", {**x, "city": city}, y, p, "feature", "city: Oslo 3"
    wide = x["temperature"].copy()
    wide[AT:] = 12 + 2 * (wide[AT:] - 12)
    yield "wide", {**x, "temperature": wide}, y, p, "feature", "temperature: "
    noise = np.r_[np.zeros(AT), rng.normal(0, 1.7, rows)]
    yield "noise", x, y + noise, p, "error", "error: mean size 0.802 → 2"
    local = np.where((np.arange(len(y)) >= AT) & (x["city"] == "Oslo"), rng.normal(0, 6, len(y)), 0)
    yield "local", x, y + local, p, "error", "most where city = Oslo: 0."
    yield "bias", x, y + np.r_[np.zeros(AT), np.full(rows, 1.0)], p, "bias", "bias: median"


def scaled(values):
    return np.r_[values[:AT], 3 * values[AT:]]


CHANGES = list(change(*stream(), np.random.default_rng(2)))


@pytest.mark.parametrize("case", CHANGES, ids=lambda case: case[0])
def test_a_change_is_noticed_and_told_in_words(case):
    _, x, y, p, what, words = case
    alarms = Monitor(once_in=100_000).update_many(x, y, p)
    assert alarms
    assert all(alarm.row > AT for alarm in alarms)
    found = [alarm for alarm in alarms if alarm.what == what and words in alarm.words]
    assert found, [str(alarm) for alarm in alarms]
    assert found[0].row <= AT + 1000
    assert abs(found[0].since - AT) <= 400
    told = f"{found[0].words} since row {found[0].since:,}, {found[0].severity}"
    assert str(found[0]) == told
    assert found[0].severity in ("moderate", "major")
    assert found[0].effect > 0.1
    assert found[0].to_dict()["since"] == found[0].since


def test_still_streams_have_few_alarms():
    once_in, rows = 20_000, 400_000
    alarms = 0
    for seed in range(2):
        x, y, p = stream(rows, seed=10 + seed)
        alarms += len(Monitor(once_in).update_many(x, y, p))
    assert alarms <= 2 * rows / once_in


def test_neighbours_that_are_alike_are_no_change():
    rng = np.random.default_rng(5)
    hours = np.arange(60_000)
    x = {"hour": hours % 24.0, "wave": np.sin(hours / 24 * np.pi) + rng.normal(0, 0.1, 60_000)}
    assert len(Monitor(once_in=100_000).update_many(x, rng.normal(size=60_000))) == 0


def seasonal(seed, rows):
    """Hours with a daily and a yearly cycle, weather that lasts, and columns of the calendar."""
    rng = np.random.default_rng(seed)
    hours = np.arange(rows) + rng.integers(0, 8760)
    year, day = np.sin(2 * np.pi * hours / 8760), np.sin(2 * np.pi * hours / 24)

    def lasting(rho, deviation):
        noise = rng.normal(size=rows + 2000) * deviation * math.sqrt(1 - rho * rho)
        found = [0.0]
        for each in noise.tolist():
            found.append(rho * found[-1] + each)
        return np.array(found[-rows:])

    season = hours % 8760 // 2190
    x = {
        "temperature": 10 + 10 * year + 4 * day + lasting(0.98, 3),
        "humidity": 60 - 10 * year + lasting(0.97, 10),
        "wind": np.exp(lasting(0.9, 0.5)),
        "month": hours % 8760 // 730 * 1.0,
        "season": season * 1.0,
        "name": np.array(["winter", "spring", "summer", "fall"], dtype=object)[season],
        "hour": hours % 24 * 1.0,
    }
    usual = 100 + 50 * day + 30 * year
    return x, usual + lasting(0.95, 20), usual


def test_seasons_and_weather_are_no_change():
    alarms = [
        alarm for seed in range(4) for alarm in Monitor().update_many(*seasonal(seed, 17_000))
    ]
    assert len(alarms) <= 1, [str(alarm) for alarm in alarms]  # it was 77 of each


@pytest.mark.parametrize("what", ["units", "missing", "hour", "error"])
def test_changes_of_seasonal_columns_are_noticed(what):
    x, y, p = seasonal(1, 32_000)
    at, rng = 30_000, np.random.default_rng(1)
    name = {"units": "temperature", "missing": "temperature", "hour": "hour", "error": "error"}[
        what
    ]
    if what == "units":
        x["temperature"][at:] = 32 + 1.8 * x["temperature"][at:] + 20
    elif what == "missing":
        x["temperature"][at:] = np.nan
    elif what == "hour":
        x["hour"][at:][rng.random(2000) < 0.2] = np.nan
    else:
        y[at:] += rng.normal(0, 40, 2000)
    found = [alarm for alarm in Monitor().update_many(x, y, p) if alarm.row > at]
    assert [alarm.name for alarm in found][:1] == [name]
    assert found[0].row <= at + 1000
    assert found[0].severity == "major"


def test_alarms_have_times():
    x, y, p = stream()
    x["temperature"][8000:] += 30
    times = 1e9 + 3600.0 * np.arange(len(y))
    whole, parts = Monitor(), Monitor()
    found = whole.update_many(x, y, p, times)
    assert [alarm.time for alarm in found] == [times[alarm.row - 1] for alarm in found]
    first = found[0]
    assert first.since_time == times[first.since - 1]
    assert "2002-08-08" in str(first)
    again = []
    for start in range(0, len(y), 77):
        some = slice(start, start + 77)
        again += parts.update_many(part(x, start, start + 77), y[some], p[some], times[some])
        parts = Monitor.from_bytes(parts.to_bytes())
    assert again == found
    with pytest.raises(ValueError, match="times has 3"):
        whole.update_many(part(x, 0, 2), y[:2], p[:2], times[:3])


# -- laws ------------------------------------------------------------------------------------------


def test_many_rows_are_the_same_as_one_by_one_and_so_is_a_saved_monitor():
    x, y, p = stream(3600)
    x["temperature"][2700:] += 30
    at_once, parts, singly = Monitor(1000), Monitor(1000), Monitor(1000)
    alarms = at_once.update_many(x, y, p)
    assert alarms
    found = []
    for start in range(0, len(y), 137):
        stop = start + 137
        found += parts.update_many(part(x, start, stop), y[start:stop], p[start:stop])
        parts = Monitor.from_bytes(parts.to_bytes())
    assert found == alarms
    assert parts.to_bytes() == at_once.to_bytes()
    lists = [column.tolist() for column in x.values()]
    told = []
    for place, values in enumerate(zip(*lists, strict=True)):
        told += singly.update(dict(zip(x, values, strict=True)), y[place], p[place])
    assert told == alarms
    assert singly.to_bytes() == at_once.to_bytes()


def test_features_may_appear_and_get_labels_late():
    x, y, p = stream(3000)
    monitor = Monitor()
    monitor.update_many({"temperature": x["temperature"][:1000]}, y[:1000], p[:1000])
    monitor.update_many({"city": [None] * 500}, y[:500])
    for start in range(1000, 3000, 500):
        stop = start + 500
        monitor.update_many(part(x, start, stop), y[start:stop], p[start:stop])
    assert monitor.names == ["error", "bias", "y", "temperature", "city", "price"]
    assert monitor.rows == 3500
    assert Monitor.from_bytes(monitor.to_bytes()).to_bytes() == monitor.to_bytes()


def of_labels(codes, names="L"):
    return {"k": [f"{names}{code}" for code in codes], "x": np.arange(len(codes)) % 7.0}


def test_a_category_of_many_labels_has_no_more_bins_than_there_are():
    """All labels from the 64th on share a bin; rows one by one, batches and files agree."""
    rng = np.random.default_rng(0)
    codes, y = rng.integers(0, 5_000, 6_000), rng.normal(size=6_000)
    monitor, twin = Monitor(), Monitor()
    assert monitor.update_many(of_labels(codes), y) == []
    for start in range(0, 6_000, 100):
        some = slice(start, start + 100)
        X = {name: column[some] for name, column in of_labels(codes).items()}
        assert twin.update_many(X, y[some]) == []
        twin = Monitor.from_bytes(twin.to_bytes())
    assert twin.to_bytes() == monitor.to_bytes()
    assert len(monitor._features.categories[0]) == 63
    few = monitor.update_many(of_labels(codes[:1] * np.ones(5_000, int)), rng.normal(size=5_000))
    assert any(alarm.name == "k" and "L" in alarm.words for alarm in few)


@pytest.mark.parametrize("value", [65.0, 5_000.0, 1e300, -1.0, -1e300])
def test_codes_without_a_bin_touch_no_other_memory(value):
    """The kernel takes no value for an index as it is."""
    parts = _monitor.column_parts()
    columns = np.zeros((3, _monitor.COLUMN_FIELDS))
    columns[:2, parts["kind"]] = _monitor.WAITING
    before = columns.copy()
    rows, own = np.full((50, 1), value), np.full((50, 2), np.nan)
    _monitor.watch_rows(
        columns,
        np.zeros(_monitor.ERROR_FIELDS),
        np.zeros(_monitor.SCALE_FIELDS),
        own,
        rows,
        0,
        0.0,
        1e300,
        1e9,
    )
    place = _monitor.MISSING if value < 0 else _monitor.BINS - 1
    assert columns[2, parts["block"]][place] == columns[2, parts["block"]].sum() > 0
    columns[:, parts["known"]] = columns[:, parts["last_bin"]] = 0.0  # of rows, not of bins
    changed = np.flatnonzero((columns != before).any(axis=0)).tolist()
    bins = [parts[name].start + place for name in ("block", "error_rows")]
    assert changed == bins


def test_a_file_with_more_labels_than_bins_is_read():
    """Releases before kept all labels."""
    monitor = Monitor()
    monitor.update_many(of_labels(np.arange(200) % 63), np.zeros(200))
    header, arrays = container.unpack(monitor.to_bytes(), "Monitor")
    header["model"]["features"]["labels"][0] += [f"M{code}" for code in range(100)]
    twin = Monitor.from_bytes(container.pack("Monitor", header, arrays))
    assert twin.to_bytes() == monitor.to_bytes()


@pytest.mark.parametrize(
    ("X", "y", "p"),
    [
        ({"a": [math.inf]}, [1.0], [1.0]),
        ({"a": ["x"]}, [1.0], [1.0]),
        ({"a": [1.0, 2.0]}, [1.0], [1.0]),
        ({"a": [1.0]}, [1.0], [1.0, 2.0]),
        ({"a": [1.0]}, ["x"], [1.0]),
    ],
)
def test_bad_rows_are_refused_and_change_nothing(X, y, p):
    monitor = Monitor()
    monitor.update_many({"a": [1.0, 2.0]}, [1.0, 2.0])
    before = monitor.to_bytes()
    with pytest.raises(ValueError, match=r"must|lengths"):
        monitor.update_many(X, y, p)
    assert monitor.to_bytes() == before


def test_odd_y_and_predictions_count_as_missing():
    monitor = Monitor()
    y = [math.nan, math.inf, 1e300, 1.0]
    assert monitor.update_many({"a": [1.0] * 4}, y, [1.0, 1.0, 1.0, math.nan]) == []
    assert monitor.rows == 4
    with pytest.raises(ValueError, match="once_in"):
        Monitor(once_in=10)


# -- files -----------------------------------------------------------------------------------------


def known():
    x, y, p = stream(1234)
    monitor = Monitor(target="demand")
    monitor.update_many(x, y, p)
    return monitor


def test_copies_are_equal_and_independent(tmp_path):
    monitor = known()
    monitor.save(tmp_path / "m")
    data = monitor.to_bytes()
    for twin in (
        sapwood.load(tmp_path / "m"),
        monitor.copy(),
        copy.deepcopy(monitor),
        pickle.loads(pickle.dumps(monitor)),
    ):
        assert twin.to_bytes() == data
        assert twin.nbytes == monitor.nbytes
        twin.update({"price": 1.0}, 3.0, 3.0)
        assert monitor.to_bytes() == data


def lies():
    header, arrays = known().to_state()
    parts = _monitor.column_parts()

    def with_number(name, column, value):
        changed = arrays["columns"].copy()
        changed[column, parts[name]] = value
        return header, {**arrays, "columns": changed}

    yield "entry", ({**header, "more": 1}, arrays)
    yield "rows", ({**header, "rows": -1}, arrays)
    yield "block", ({**header, "in_block": 100}, arrays)
    yield "features", ({**header, "features": {}}, arrays)
    yield "once_in", ({**header, "parameters": {"once_in": 1, "target": "y"}}, arrays)
    yield "lacking", (header, {name: arrays[name] for name in arrays if name != "last"})
    yield "columns", (header, {**arrays, "columns": arrays["columns"][:-1]})
    yield "first", (header, {**arrays, "first_rows": arrays["first_rows"] + 1})
    yield "last", (header, {**arrays, "last": arrays["last"][:, :-1]})
    yield "dtype", (header, {**arrays, "last": arrays["last"].astype(np.float32)})
    yield "scale", (header, {**arrays, "scale": -arrays["scale"]})
    yield "nan", with_number("evidence", 0, np.nan)
    yield "negative", with_number("before", 0, -1.0)
    yield "kind", with_number("kind", 4, 1.0)
    yield "label", with_number("kind", 2, 0.0)
    yield "other kind", with_number("kind", 2, 3.0)
    yield "unrest", with_number("unrest", 2, 0.5)
    yield "blocks", with_number("blocks", 2, 0.5)
    yield "edges", with_number("edges", 2, np.arange(9)[::-1])


@pytest.mark.parametrize("lie", list(lies()), ids=lambda lie: lie[0])
def test_lies_in_a_file_are_noticed(lie):
    header, arrays = lie[1]
    data = container.pack("Monitor", {"format": 1, "model": header}, arrays)
    with pytest.raises(ModelFileError, match="the buffer is damaged"):
        Monitor.from_bytes(data)
