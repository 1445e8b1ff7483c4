"""Pictures by matplotlib: that they show the numbers, and say what they are of."""

import dataclasses
import subprocess
import sys

import numpy as np
import pytest
from matplotlib.figure import Figure

import sapwood
from report_cases import drifting_run
from sapwood import plot
from sapwood.evaluate import prequential
from sapwood.evaluate.baselines import LastValue, RunningMean
from sapwood.evaluate.result import CURVE, Rejections
from sapwood.inspect.view import sample
from sapwood.plot.style import COLOURS, looks_of, short
from view_cases import EMPTY, SMALL, chain

ROWS = 20_000


@pytest.fixture
def made():
    return drifting_run(ROWS)[0]


@pytest.fixture
def grown():
    return drifting_run(ROWS)[1]


def texts(ax):
    return [text.get_text() for text in ax.texts]


def legend_texts(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def changed(evaluation, **fields):
    """The same evaluation with some fields of its curve set."""
    curve = evaluation.curve.copy()
    for name, value in fields.items():
        curve[name] = value
    return dataclasses.replace(evaluation, curve=curve)


# Axes


def test_pyplot_stays_out_of_it():
    code = "import sys, sapwood, sapwood.plot; print('matplotlib.pyplot' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


def test_sapwood_alone_does_not_import_matplotlib():
    code = "import sys, sapwood; print('matplotlib' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


def test_without_matplotlib_the_remedy_is_told():
    code = "import sys; sys.modules['matplotlib'] = None; import sapwood.report"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "ImportError: sapwood.plot needs matplotlib, which is not installed: run" in run.stderr


def test_a_given_axis_is_drawn_on_and_returned(made, grown):
    observer = sapwood.QuantizerObserver()
    observer.update_many([1, 2, 3], [1, 1, 5])
    calls = [
        lambda ax: plot.learning_curve(made, "rmse", ax),
        lambda ax: plot.speed(made, ax),
        lambda ax: plot.leaves(made, ax),
        lambda ax: plot.memory(made, ax),
        lambda ax: plot.size(made, ax),
        lambda ax: plot.rejected(made, ax),
        lambda ax: plot.importances(grown, ax),
        lambda ax: plot.observer(observer, ax),
        lambda ax: plot.tree(grown, ax),
    ]
    for call in calls:
        given = Figure().subplots()
        assert call(given) is given
        assert isinstance(call(None).figure, Figure)


@pytest.mark.parametrize(
    ("call", "x", "y"),
    [
        (plot.learning_curve, "rows", "MAE (units of demand)"),
        (lambda made: plot.learning_curve(made, "rmse"), "rows", "RMSE (units of demand)"),
        (lambda made: plot.learning_curve(made, "r2"), "rows", "R²"),
        (plot.speed, "rows", "rows per second"),
        (plot.leaves, "rows", "leaves"),
        (plot.memory, "rows", "memory (MB)"),
        (plot.rejected, "rows read", "rows rejected"),
    ],
)
def test_axes_say_what_they_are_of(made, call, x, y):
    ax = call(made)
    assert (ax.get_xlabel(), ax.get_ylabel()) == (x, y)


def test_several_things_have_colours_and_markers_of_their_own():
    looks = looks_of([f"m{k}" for k in range(len(COLOURS))])
    assert len({look.colour for look in looks.values()}) == len(COLOURS)
    assert len({look.marker for look in looks.values()}) == len(COLOURS)


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (999, "999"), (1500, "1.5k"), (2e6, "2M"), (-0.5, "−0.5")]
)
def test_short_numbers(value, text):
    assert short(value) == text


# The learning curve


@pytest.mark.parametrize("measure", ["mae", "rmse", "r2"])
def test_a_learning_curve_has_the_faded_and_the_total_error(made, measure):
    ax = plot.learning_curve(made, measure)
    faded, total = ax.get_lines()[:2]
    np.testing.assert_array_equal(faded.get_xdata(), made.curve["row"])
    np.testing.assert_array_equal(faded.get_ydata(), made.curve[f"faded_{measure}"])
    np.testing.assert_array_equal(total.get_ydata(), made.curve[measure])
    assert faded.get_linestyle() != total.get_linestyle()
    assert legend_texts(ax)[:2] == ["exponentially weighted", "all rows"]


def test_errors_start_at_nought_and_r2_ends_at_one(made):
    assert plot.learning_curve(made, "mae").get_ylim()[0] == 0
    low, high = plot.learning_curve(made, "r2").get_ylim()
    assert -0.1 < low <= 0
    assert 1 <= high < 1.1
    assert "mean alone" in legend_texts(plot.learning_curve(made, "r2"))


def test_several_evaluations_are_told_apart(made):
    named = {"first": made, "_second": made, "$third": made}
    ax = plot.learning_curve(named, "mae")
    faded = ax.get_lines()[::2]
    assert legend_texts(ax) == ["first", "_second", "$third", "exponentially weighted", "all rows"]
    assert len({line.get_color() for line in faded}) == 3
    assert len({line.get_marker() for line in faded}) == 3


def test_what_is_beyond_the_axis_is_told(made):
    mae = made.curve["faded_mae"].copy()
    mae[0] = 4e6
    ax = plot.learning_curve(changed(made, faded_mae=mae))
    assert ax.get_ylim()[1] < 1000
    assert texts(ax) == ["↑ 4M at row 500"]
    r2 = made.curve["faded_r2"].copy()
    r2[1] = -25
    ax = plot.learning_curve(changed(made, faded_r2=r2), "r2")
    assert ax.get_ylim()[0] > -1.1
    assert texts(ax) == ["↓ −25 at row 1k"]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e308])
def test_values_that_cannot_be_drawn_are_left_out(made, value):
    everywhere = {name: value for name in CURVE.names if "mae" in name or "r2" in name}
    for measure in ("mae", "r2"):
        ax = plot.learning_curve(changed(made, **everywhere), measure)
        assert texts(ax) == ["nothing was measured"]


def test_a_single_point_is_seen(made):
    one = dataclasses.replace(made, curve=made.curve[:1], speed=made.speed[:1])
    assert plot.learning_curve(one).get_lines()[0].get_marker() == "o"
    assert plot.speed(one).get_lines()[0].get_marker() == "o"


def test_wrong_arguments_are_named(made):
    with pytest.raises(ValueError, match="measure = 'mse': 'mae', 'rmse' or 'r2' is expected"):
        plot.learning_curve(made, "mse")
    for wrong in (3, {}, {"a": 3}):
        with pytest.raises(TypeError, match="an Evaluation is expected"):
            plot.learning_curve(wrong)
    with pytest.raises(TypeError, match="an Evaluation is expected"):
        plot.speed({"a": made})


# Speed, size and refused rows


def test_speed_is_that_of_the_last_two_chunks(made):
    line, mean = plot.speed(made).get_lines()
    rows, seconds = [0, *made.curve["row"]], [0.0, *made.speed[:, 0]]
    for place in range(1, len(rows)):
        since = next(k for k in range(place) if rows[k] >= rows[place] - 2 * 8192)
        expected = (rows[place] - rows[since]) / (seconds[place] - seconds[since])
        assert line.get_ydata()[place - 1] == pytest.approx(expected)
    assert mean.get_ydata()[0] == made.rows_per_second
    assert legend_texts(plot.speed(made)) == ["last 16k rows", "all rows"]


def test_speed_of_no_time_at_all(made):
    still = dataclasses.replace(made, speed=np.zeros_like(made.speed), seconds=0.0)
    assert texts(plot.speed(still)) == ["nothing was measured"]


def test_size_is_leaves_and_megabytes(made):
    ax = plot.size(made)
    right = next(other for other in ax.figure.axes if other is not ax)
    np.testing.assert_array_equal(ax.get_lines()[0].get_ydata(), made.curve["leaves"])
    np.testing.assert_allclose(right.get_lines()[0].get_ydata(), made.curve["bytes"] / 1e6)
    assert right.get_ylabel() == "memory (MB)"
    assert legend_texts(ax) == ["leaves", "memory"]


def test_a_model_that_does_not_tell_its_size(made):
    silent = changed(made, leaves=-1, bytes=-1)
    assert texts(plot.leaves(silent)) == ["the model does not report it"]
    assert texts(plot.memory(silent)) == ["the model does not report it"]
    assert plot.size(silent).get_legend() is None


def test_refused_rows(made):
    (steps,) = plot.rejected(made).patches
    values, edges, _ = steps.get_data()
    np.testing.assert_array_equal(values, made.rejected.where[:, 1])
    np.testing.assert_array_equal(edges[1:], made.rejected.where[:, 0])
    assert values.sum() == made.rejected.count
    none = dataclasses.replace(made, rejected=Rejections(0, {}, np.array([[ROWS, 0]])))
    assert texts(plot.rejected(none)) == ["no row was rejected"]


# Importances


def test_importances_are_those_of_the_tree(grown):
    ax = plot.importances(grown)
    shares = sorted(grown.feature_importances.items(), key=lambda item: -item[1])
    assert [label.get_text() for label in ax.get_yticklabels()] == [name for name, _ in shares]
    widths = [bar.get_width() for bar in ax.patches]
    np.testing.assert_allclose(widths, [100 * share for _, share in shares])
    assert "(%)" in ax.get_xlabel()


def test_many_features_share_a_bar():
    ax = plot.importances({f"x{k}": k / 4950 for k in range(100)})
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels[0] == "x99"
    assert labels[-1] == "88 others"
    assert sum(bar.get_width() for bar in ax.patches) == pytest.approx(100)


def test_importances_without_a_split_and_wrong_ones():
    assert texts(plot.importances(sapwood.HoeffdingTreeRegressor())) == [
        "the tree has not split yet"
    ]
    with pytest.raises(TypeError, match="a HoeffdingTreeRegressor is expected"):
        plot.importances(3)
    for share in (np.nan, -0.5, "much", np.inf):
        with pytest.raises(ValueError, match="share of 'a' = "):
            plot.importances({"a": share})


# Observers


def watched(observer, rows=3000):
    rng = np.random.default_rng(2)
    x = rng.normal(10, 5, rows)
    observer.update_many(x, np.where(x < 12, 1.0, 9.0) + rng.normal(0, 1, rows))
    return observer


@pytest.mark.parametrize(
    "observer",
    [
        sapwood.QuantizerObserver(slots=32),
        sapwood.QuantizerObserver(radius=0.5),
        sapwood.QuantizerObserver(radius=0.5, cut="prototype"),
        sapwood.EBSTObserver(),
        sapwood.TEBSTObserver(digits=1),
    ],
    ids=repr,
)
def test_an_observer_shows_its_slots_and_merits(observer):
    seen = watched(observer)
    ax = plot.observer(seen)
    right = next(other for other in ax.figure.axes if other is not ax)
    heights = [bar.get_height() for bar in ax.patches]
    assert sum(heights) == pytest.approx(seen.total.n)
    thresholds, merits = seen.candidates()
    curve, cut, mark = right.get_lines()
    np.testing.assert_array_equal(curve.get_xdata(), thresholds)
    np.testing.assert_array_equal(curve.get_ydata(), merits)
    best = seen.best_split()
    assert cut.get_xdata()[0] == mark.get_xdata()[0] == best.threshold
    assert mark.get_ydata()[0] == best.merit == merits.max()


def test_slots_are_darker_where_y_is_larger():
    observer = sapwood.QuantizerObserver()
    observer.update_many([1, 2, 3, 4], [0, 10, 20, 30])
    shades = [sum(bar.get_facecolor()[:3]) for bar in plot.observer(observer).patches]
    assert shades == sorted(shades, reverse=True)
    assert len(set(shades)) == 4


def test_observers_that_have_nothing_to_cut():
    assert texts(plot.observer(sapwood.QuantizerObserver())) == ["nothing to split yet"]
    one = sapwood.EBSTObserver()
    one.update(3.0, 1.0)
    ax = plot.observer(one)
    assert [bar.get_height() for bar in ax.patches] == [1.0]
    assert texts(ax) == ["nothing to split yet"]


def test_several_targets_and_other_objects():
    observer = sapwood.QuantizerObserver(targets=2)
    observer.update_many([1, 2, 3], [[1, 2], [1, 2], [5, 2]])
    assert legend_texts(plot.observer(observer))[0] == "slot"
    with pytest.raises(TypeError, match="an observer is expected"):
        plot.observer(3)


# Trees


def test_the_top_of_a_tree():
    ax = plot.tree(sample())
    assert [text for text in texts(ax) if text not in ("yes", "no")] == [
        "temp < 12.5",
        "missing: no",
        "3.25",
        "weight 120",
        "city in {Oslo, Rome}",
        "unseen or missing: yes",
        "8",
        "weight 60",
        "10.5",
        "weight 20",
    ]
    assert texts(ax).count("yes") == texts(ax).count("no") == 2
    assert len(ax.patches) == 5


def test_a_deep_tree_is_cut_at_max_depth():
    assert "… 19 leaves" in texts(plot.tree(chain(20), max_depth=2))
    assert len(plot.tree(chain(20), max_depth=2).patches) == 5
    assert "no rows yet" in texts(plot.tree(EMPTY))


def test_the_letters_of_a_tree_fit_its_axis():
    def letters(width):
        ax = plot.tree(SMALL, Figure(figsize=(width, width)).subplots())
        return ax.texts[0].get_fontsize()

    assert letters(8) == pytest.approx(2 * letters(4))


def test_other_models_have_no_tree():
    with pytest.raises(TypeError, match="a HoeffdingTreeRegressor is expected"):
        plot.tree(object())
    with pytest.raises(ValueError, match="max_depth"):
        plot.tree(SMALL, max_depth=-1)


@pytest.mark.parametrize("baseline", [LastValue, RunningMean])
def test_a_baseline_that_is_evaluated_is_drawn_once(baseline):
    y = np.cumsum(np.ones(500)) if baseline is LastValue else np.random.default_rng(1).random(500)
    found = prequential(baseline(), (np.zeros((500, 1)), y))
    assert found.best_baseline == ("last" if baseline is LastValue else "mean")
    ax = plot.learning_curve(found, "rmse")
    assert legend_texts(ax) == ["exponentially weighted", "all rows"]


class Echo(LastValue):
    """A model that predicts as a baseline does, and is none."""

    def __repr__(self):
        return "<an echo>"


def test_a_baseline_is_drawn_if_it_is_near():
    y = np.random.default_rng(3).normal(size=2000).cumsum()
    noise = np.random.default_rng(4).normal(size=2000)
    far = prequential(sapwood.HoeffdingTreeRegressor(), noise[:, None], noise)
    assert far.best_baseline == "mean"
    labels = [line.get_label() for line in plot.learning_curve(far).get_lines()]
    assert labels == ["exponentially weighted", "all rows"]
    alike = prequential(Echo(), np.zeros((2000, 1)), y)
    rival, *others = plot.learning_curve(alike, "rmse").get_lines()
    assert rival.get_label() == "repeating the last value, exp. weighted"
    np.testing.assert_array_equal(rival.get_ydata(), alike.further["last_faded_rmse"])
    assert [line.get_label() for line in others] == ["exponentially weighted", "all rows"]
    assert len(plot.learning_curve(alike, "r2").get_lines()) == 3  # with that of the mean


def test_pictures_of_rows():
    rng = np.random.default_rng(3)
    times = np.datetime64("2026-01-01T00", "h") + np.arange(500)
    y = rng.normal(size=500)
    found = prequential(LastValue(), {"t": times, "c": ["red", "blue"] * 250}, y)
    came, predicted = plot.predictions(found).get_lines()
    np.testing.assert_array_equal(came.get_ydata(), y)
    np.testing.assert_array_equal(predicted.get_ydata(), [0.0, *y[:-1]])
    assert came.get_xdata()[1] - came.get_xdata()[0] == pytest.approx(1 / 24)
    assert plot.predictions(found).get_xlabel() == "time (UTC)"
    assert plot.recent(found, most=10).get_lines()[0].get_ydata().tolist() == y[-10:].tolist()
    faded, total, _ = plot.bias(found).get_lines()
    assert total.get_ydata()[-1] == found.bias
    assert faded.get_ydata()[-1] == found.further["faded_bias"][-1]
    mean = plot.errors_by_hour(found).get_lines()[0]
    error = np.array([0.0, *y[:-1]]) - y
    assert mean.get_xdata().tolist() == list(range(24))
    np.testing.assert_allclose(mean.get_ydata()[5], error[5::24].mean())
    mean = plot.errors_by_prediction(found).get_lines()[0]
    order = np.argsort(np.array([0.0, *y[:-1]]), kind="stable")
    np.testing.assert_allclose(
        mean.get_ydata()[0], error[np.array_split(order, 12)[0]].mean(), rtol=0.02
    )
    for drawn in (plot.changes(found), plot.importances_over_time(found)):
        assert drawn.texts[0].get_text() == "the model does not report it"


def test_leaves_gained_and_lost_are_drawn():
    made = dataclasses.replace(drifting_run(20_000)[0])
    steps = np.diff(made.curve["leaves"], prepend=1)
    drawn = plot.changes(made)
    assert sum(patch.get_data().values.sum() for patch in drawn.patches) == steps.sum()
