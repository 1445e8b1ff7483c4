"""Parts of reports: delays, drift events, next steps, comparisons, and dates on axes."""

import dataclasses
import re
import warnings

import numpy as np
import pytest

import sapwood
from report_cases import HOURS, drifting, drifting_run, timed_run
from sapwood import plot
from sapwood.drift import DriftEvent
from sapwood.evaluate import prequential
from sapwood.evaluate.baselines import LastValue, RunningMean
from sapwood.evaluate.delay import Delay
from sapwood.evaluate.history import MOST_TIMES, RecentTimes
from sapwood.evaluate.recorder import LabelledRows
from sapwood.evaluate.result import ROW
from sapwood.plot.clock import places_of_recent
from sapwood.plot.style import looks_of
from sapwood.report import render
from sapwood.report.comparison import render_comparison
from sapwood.report.drift import grouped_events
from sapwood.report.next_steps import MOST as MOST_STEPS
from sapwood.report.titles import names_of_models, title_of


def text_of(source):
    return " ".join(
        re.sub(r"<script.*?</script>|<style.*?</style>|<[^>]*>", " ", source, flags=re.S).split()
    )


def part_of(source, name):
    return re.search(rf'<section id="{name}".*?</section>', source, re.DOTALL)[0]


# -- the header --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("amount", "by_time", "words"),
    [
        (1, False, "1 row"),
        (1500, False, "1,500 rows"),
        (7200.0, True, "2 hours"),
        (86400.0, True, "1 day"),
        (1209600.0, True, "2 weeks"),
        (90.0, True, "90 seconds"),
    ],
)
def test_delays_in_words(amount, by_time, words):
    assert Delay(amount, by_time).in_words == words


@pytest.mark.usefixtures("unsaved_charts")
def test_the_page_states_when_labels_arrived():
    X, y = drifting(300)
    X = {name: X[name] for name in ("wind", "noise")}
    late = prequential(LastValue(), X, y, delay=24)
    assert late.label_delay == "24 rows"
    assert "its label arrived 24 rows later, and was scored and learned then" in text_of(
        render(late)
    )
    at_once = prequential(LastValue(), X, y)
    assert at_once.label_delay is None
    assert "its label arrived at once" in text_of(render(at_once))


@pytest.mark.usefixtures("unsaved_charts")
def test_the_period_of_a_stream_with_times_is_stated():
    assert "20,000 rows from 2024-01-01 to 2026-04-13" in text_of(render(*timed_run()))


def test_a_title_has_levels_and_targets():
    made = dataclasses.replace(
        drifting_run(20_000)[0], stream="a/b.csv", targets={"u": 1, "v": 2}, model="<Mine(3)>"
    )
    made = dataclasses.replace(made, targets=dict.fromkeys("uv", drifting_run(20_000)[0]))
    assert title_of(made) == "Mine for 2 targets on b.csv"


def test_models_of_the_same_name_keep_what_was_typed():
    named = names_of_models(["a/m.sapwood", "b/m.sapwood", "tree"])
    assert list(named.values()) == ["a/m.sapwood", "b/m.sapwood", "Tree"]


# -- sections ----------------------------------------------------------------------------------


@pytest.mark.usefixtures("unsaved_charts")
def test_throughput_is_drawn_from_16000_rows_on():
    X, y = drifting(3000)
    tree = sapwood.HoeffdingTreeRegressor()
    short = prequential(tree, {"wind": X["wind"]}, y)
    assert 'id="speed"' not in render(short, tree)
    assert 'id="speed"' in render(*timed_run())


def event(row, since, severity="minor", effect=0.1, what="feature"):
    return DriftEvent(what, "a", row, since, f"a: changed at {row}", effect, severity)


@pytest.mark.usefixtures("unsaved_charts")
def test_drift_events_close_to_each_other_are_one_group():
    events = [event(100, 50), event(400, 90), event(1200, 1100), event(1700, 1600)]
    groups = grouped_events(events, 20_000)
    assert [[each.row for each in group] for group in groups] == [[100, 400], [1200, 1700]]
    assert len(grouped_events(events, 100_000)) == 1
    found = dataclasses.replace(
        timed_run()[0], drift_events=[*events[:1], event(400, 20, "major", 0.7), *events[2:]]
    )
    part = text_of(part_of(render(found), "drift"))
    assert "4 drift events were detected" in part
    assert "They form 2 groups" in part
    assert " 20 100 to 400 major 0.7 a: changed at 100 a: changed at 400" in part


@pytest.mark.usefixtures("unsaved_charts")
def test_a_monitor_that_detects_nothing_has_no_section_but_a_sentence():
    quiet = dataclasses.replace(timed_run()[0], drift_events=[])
    source = render(quiet)
    assert 'id="drift"' not in source
    assert "The monitor detected no drift." in text_of(source)


@pytest.mark.usefixtures("unsaved_charts")
def test_next_steps_depend_on_what_was_found():
    found, tree = timed_run()
    steps = part_of(render(found, tree), "next")
    assert "--lags" in steps
    assert "-m forest" in steps
    assert 0 < steps.count("<li>") <= MOST_STEPS
    bad = dataclasses.replace(found, total=dataclasses.replace(found.total, rmse=1e9))
    assert "The model is not better than" in part_of(render(bad, tree), "next")
    rejected = dataclasses.replace(found, rejected=drifting_run(20_000)[0].rejected)
    assert "--bad-rows" in part_of(render(rejected, tree), "next")


@pytest.mark.usefixtures("unsaved_charts")
def test_the_model_is_apart_from_baselines():
    table = text_of(part_of(render(*timed_run()), "result"))
    assert table.index("Model all rows") < table.index("Baselines, over all rows repeating")


@pytest.mark.parametrize("rows", [300, 1000, 2000])
def test_charts_of_short_streams_fit_without_a_warning(rows):
    from sapwood import streams

    tree = sapwood.HoeffdingTreeRegressor()
    found = prequential(tree, streams.demand(rows=rows))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        render(found, tree)


# -- new charts --------------------------------------------------------------------------------


def test_actual_against_predicted_has_the_sample_and_a_diagonal():
    found = timed_run()[0]
    points, diagonal = plot.actual_vs_predicted(found, most=10**6).get_lines()
    np.testing.assert_array_equal(points.get_xdata(), found.sample.rows["prediction"])
    np.testing.assert_array_equal(points.get_ydata(), found.sample.rows["y"])
    np.testing.assert_array_equal(diagonal.get_xdata(), diagonal.get_ydata())


def test_the_histogram_has_all_residuals_of_the_sample():
    found = timed_run()[0]
    (bars,) = plot.residual_histogram(found).patches
    values, edges, _ = bars.get_data()
    assert values.sum() == pytest.approx(100)
    residuals = found.sample.rows["prediction"] - found.sample.rows["y"]
    inside = (edges[10] <= residuals) & (residuals < edges[11])
    assert values[10] == pytest.approx(100 * inside.mean())


def test_the_intervals_of_the_stream_are_shaded():
    X, y = drifting(3000)
    model = sapwood.IntervalRegressor(sapwood.HoeffdingTreeRegressor(), (0.9,))
    found = prequential(model, {"wind": X["wind"]}, y)
    ax = plot.prediction_intervals(found)
    (band,) = ax.collections
    rows = found.intervals.sample
    low, high = band.get_datalim(ax.transData).intervaly
    assert low == pytest.approx(np.nanmin(rows["lower"]), rel=0.5)
    assert high == pytest.approx(np.nanmax(rows["upper"]), rel=0.5)
    inside, outside = ax.get_lines()
    assert len(inside.get_xdata()) + len(outside.get_xdata()) <= len(rows)
    assert len(outside.get_xdata()) > 0


def test_the_last_rows_have_dates():
    found = timed_run()[0]
    assert found.recent["time"].tolist() == HOURS[-len(found.recent) :]
    for drawn in (plot.recent(found), plot.leaves(found), plot.memory(found), plot.speed(found)):
        assert drawn.get_xlabel() == "time (UTC)"
    assert plot.recent(drifting_run(20_000)[0]).get_xlabel() == "rows"


def test_rows_of_the_same_day_are_spread_over_it():
    rows = np.zeros(7, ROW)
    rows["row"] = np.arange(7)
    rows["time"] = 86400.0 * np.array([10, 11, 11, 12, 12, 13, 13])
    assert places_of_recent(rows, "time").tolist() == [10.5, 11, 11.5, 12, 12.5, 13, 13.5]
    assert places_of_recent(rows, "rows").tolist() == list(range(7))


def test_times_of_the_last_rows_are_bounded_and_restored():
    log = RecentTimes()
    for start in (0, 900):
        y = np.arange(900.0)
        log.record(LabelledRows(y, y, times=start + y))
    arrays = log.to_arrays()
    assert arrays["recent_times"].tolist() == list(range(1800 - MOST_TIMES, 1800))
    again = RecentTimes().restored(arrays)
    np.testing.assert_array_equal(again.to_arrays()["recent_times"], arrays["recent_times"])
    assert len(RecentTimes().restored({}).to_arrays()["recent_times"]) == 0
    with pytest.raises(ValueError, match="1001 rows"):
        RecentTimes().restored({"recent_times": np.zeros(1001)})


# -- comparisons -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def compared():
    X, y = drifting(2500)
    X = {"wind": X["wind"]}
    models = {"mean": RunningMean, "tree": sapwood.HoeffdingTreeRegressor, "last": LastValue}
    found = {
        stream: {name: prequential(kind(), X, scale * y) for name, kind in models.items()}
        for stream, scale in (("first:rows=3", 1.0), ("second.csv", 2.0))
    }
    return render_comparison(found, {"tree": 1.0, "mean": 2.0, "last": 3.0})


def test_a_model_has_one_colour_throughout(compared):
    cells = re.findall(r'<i class="swatch" style="background:([^"]*)"></i>([^<]*)', compared)
    colours = {}
    for colour, name in cells:
        colours.setdefault(name, set()).add(colour)
    assert set(colours) == {"Tree", "Mean so far", "Last value"}
    assert all(len(each) == 1 for each in colours.values())
    assert len(set.union(*colours.values())) == 3
    curves = re.findall(r'"name":"exponentially weighted","colour":"([^"]*)"', compared)
    assert set(curves) <= set.union(*colours.values()) | {"var(--ink)"}


def test_names_are_without_syntax_and_baselines_are_listed_once(compared):
    text = text_of(compared)
    assert "first (rows 3)" in text
    assert "rows=3" not in text
    assert compared.count('<th scope="row">the exponentially weighted mean</th>') == 1
    assert text.index("Models Tree") < text.index("Baselines the exponentially weighted mean")
    assert "repeating the last value" not in text  # which is compared as a model


def test_axes_are_scaled_to_the_contenders():
    found = timed_run()[0]
    worse = found.curve.copy()
    for name in ("mae", "faded_mae"):
        worse[name] = 1e9
    bad = dataclasses.replace(found, curve=worse)
    alone = plot.learning_curve({"good": found}, "mae").get_ylim()[1]
    both = plot.learning_curve({"good": found, "bad": bad}, "mae")
    assert both.get_ylim()[1] <= 1.2 * alone
    assert any("1G" in text.get_text() for text in both.texts)


def test_more_models_than_colours_differ_by_markers():
    looks = looks_of([str(number) for number in range(20)])
    assert len(set(looks.values())) == 20


# -- old names ---------------------------------------------------------------------------------


def test_old_names_warn():
    import sapwood.drift

    found = drifting_run(20_000)[0]
    with pytest.warns(DeprecationWarning, match=r"use sapwood\.plot\.prediction_intervals"):
        assert plot.bounds is plot.prediction_intervals
    with pytest.warns(DeprecationWarning, match=r"use sapwood\.plot\.rejected"):
        assert plot.refused is plot.rejected
    with pytest.warns(DeprecationWarning, match=r"use sapwood\.drift\.DriftEvent"):
        assert sapwood.drift.Alarm is DriftEvent
    with pytest.warns(DeprecationWarning, match=r"use Evaluation\.rejected"):
        assert found.refused is found.rejected
    with pytest.raises(AttributeError, match="nothing"):
        plot.nothing  # noqa: B018
