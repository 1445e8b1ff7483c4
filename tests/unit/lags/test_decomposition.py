"""What predictions consist of: contributions that sum to them, and groups of columns."""

import numpy as np
import pytest

import sapwood
from sapwood.lags import LaggedModel, Lags
from sapwood.lags.decomposition import Decomposition, decompose, groups_of
from sapwood.schema import Rule, Schema

GROUPS = {"calendar": ["hour"], "lags": ["lag", "mean"], "other columns": ["kind"]}


def columns():
    rng = np.random.default_rng(1)
    return {
        "hour": np.arange(48.0) % 24,
        "lag": rng.normal(size=48),
        "mean": rng.normal(size=48),
        "kind": ["a", "b"] * 24,
    }


def by_all_orders(predict, given, background):
    """Return the contributions to each row, by the mean over all orders of three groups."""
    from itertools import permutations

    parts = {group: np.zeros(48) for group in GROUPS}
    for row in range(48):
        for other in background:
            for order in permutations(GROUPS):
                mixed = {name: [column[other]] for name, column in given.items()}
                before = predict(mixed)[0]
                for group in order:
                    mixed |= {name: [given[name][row]] for name in GROUPS[group]}
                    after = predict(mixed)[0]
                    parts[group][row] += (after - before) / 6 / len(background)
                    before = after
    return parts


def test_contributions_are_the_means_over_all_orders():
    def predict(X):
        kind = np.array([3.0 if each == "a" else 1.0 for each in X["kind"]])
        return kind * np.asarray(X["hour"]) + np.asarray(X["lag"]) * np.asarray(X["mean"]) * kind

    given = columns()
    found = decompose(predict, given, GROUPS)
    order = np.argsort(predict(given), kind="stable")
    expected = by_all_orders(predict, given, order[np.arange(3, 48, 6)])
    for group, own in expected.items():
        assert found.parts[group] == pytest.approx(own, abs=1e-9), group
    assert sum(found.parts.values()) + found.level == pytest.approx(predict(given))


def test_means_are_by_the_parts_of_known_times():
    times = np.array([0.0, 1800.0, 3600.0, np.nan, 90_000.0])
    found = Decomposition(5.0, {"lags": np.array([1.0, 3.0, 4.0, 100.0, 8.0])}, times)
    hours, means = found.by("hour")
    assert (hours.tolist(), means["lags"].tolist()) == ([0, 1], [2.0, 6.0])
    days, means = found.by("day")
    assert (days.tolist(), means["lags"].tolist()) == ([0, 1], [8 / 3, 8.0])
    assert len(Decomposition(5.0, {"lags": np.ones(2)}).by("hour")[0]) == 0
    assert decompose(lambda X: np.empty(0), {"x": []}, {"lags": ["x"]}).parts["lags"].shape == (0,)


def test_groups_are_by_the_role_of_columns():
    lags = Lags(["24h"], time="at", by="shop", lags_of={"temp": ["1h"]})
    model = LaggedModel(sapwood.HoeffdingTreeRegressor(), lags)
    rules = (Rule("at", "time", parts=("hour",)), Rule("until", "time", parts=("weekday",)))
    model.schema = Schema(rules)
    names = ["at", "at.hour", "until.weekday", "shop", "temp", *lags.features]
    assert groups_of(model, names) == {
        "calendar": ["at", "at.hour", "until.weekday"],
        "lags": lags.features,
        "series": ["shop"],
        "other columns": ["temp"],
    }
