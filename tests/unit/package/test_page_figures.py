"""Tables and figures of pages are those of the results files, or of the page that they quote."""

import csv

import numpy as np
import pytest

from places import ROOT

DOCS = ROOT / "docs"
RESULTS = DOCS / "benchmarks" / "results"
MINUS = "\N{MINUS SIGN}"


def records(name):
    with (RESULTS / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def text(page):
    return (DOCS / page).read_text(encoding="utf-8").replace(MINUS, "-")


def tables(page, start=""):
    """Return the rows of all tables of a page, from a heading on."""
    lines = text(page).partition(start)[2] if start else text(page)
    return [line.strip("| ").split(" | ") for line in lines.splitlines() if line.startswith("| ")]


@pytest.mark.parametrize("rows", ["2,500", "10,000"])
def test_forecasts(rows):
    known = [r for r in records("forecasting") if r["rows"] == rows.replace(",", "")]
    found = {(r["series"], r["horizon"], r["learner"]): r for r in known}
    head, _, *lines = tables("howto/forecasting.md", f"\n{rows} rows:")
    learners = head[2:]
    own = len(found) // len(learners)
    assert own * len(learners) == len(found) > 0
    for series, horizon, *cells in lines[:own]:
        values = [found[series, horizon, learner] for learner in learners]
        assert cells == [f"{float(r['r2']):.3f} ({float(r['mase']):.2f})" for r in values]


LEAST_R2 = -1.0  # in means and differences of the page


def test_hybrids():
    found = records("hybrid")
    rows = [row for row in tables("howto/hybrid.md", "### Mean R²") if ", held-out " in row[0]]
    rows += [row for row in tables("howto/hybrid.md", "### Mean R²") if ", all " in row[0]]
    assert len(rows) == 8
    for name, *cells in rows:
        timing, _, part = name.partition(", ")
        kinds = {"True", "False"} if part.startswith("all") else {"False"}
        for learner, cell in zip(("hybrid", "forest"), cells, strict=False):
            own = [
                max(LEAST_R2, float(row["r2"]))
                for row in found
                if (row["timing"], row["learner"]) == (timing, learner) and row["chose"] in kinds
            ]
            assert len(own) == int(part.split()[-1])
            assert cell.split()[0] == f"{np.mean(own):.4f}"


@pytest.mark.parametrize("timing", ["at once", "by 1,000"])
def test_classifiers(timing):
    rows = tables("benchmarks/classes.md", f"## Labels {timing}")
    start = next(i for i, row in enumerate(rows) if row[0] == "learner") + 2
    own = {}
    for row in records("classes"):
        if row["timing"] == timing:
            own.setdefault(row["learner"], []).append(float(row["accuracy"]))
    shown = {row[0]: row[3] for row in rows[start : start + len(own)]}
    assert shown == {learner: f"{np.mean(scores):.3f}" for learner, scores in own.items()}


def test_the_service():
    rows = [row for row in tables("howto/serving.md", "## Load") if row[1].isdigit()]
    assert rows == [list(row.values()) for row in records("serving-medians")]


def test_transforms():
    found = {
        (r["stream"], r["labels"], r["model"], r["transform"]): r for r in records("transforms")
    }
    rows = [row for row in tables("howto/skewed-targets.md") if row[1] in ("at once", "by 1,000")]
    assert len(rows) == 12
    for stream, labels, *cells in rows:
        own = [found[stream, labels, model, name] for model in MODELS for name in ("", "auto")]
        assert cells == [f"{float(r['r2']):.3f} / {float(r['deviance']):.4g}" for r in own]
    page = " ".join(text("howto/skewed-targets.md").split())
    pairs = [(row, found[*key[:3], "auto"]) for key, row in found.items() if not key[3]]
    assert f"In all {len(pairs)} cases, `auto` has a higher R²" in page
    assert all(float(auto["r2"]) > float(row["r2"]) for row, auto in pairs)
    assert all(float(auto["deviance"]) < float(row["deviance"]) for row, auto in pairs)
    assert all(float(auto["negative"]) == 0 for _, auto in pairs)
    worst = found["Beijing PM2.5", "by 1,000", "tree", "log1p"]["r2"]
    assert f"the tree with `log1p` has R² {float(worst):.3f}" in page


MODELS = ("tree", "forest")


def test_sparse_rows():
    head, _, *rows = tables("howto/sparse-rows.md")
    assert len(rows) == len({r["stream"].partition(",")[0] for r in records("sparse")})
    for stream, *cells in rows:
        for learner, cell in zip(head[1:], cells, strict=True):
            own = [
                r
                for r in records("sparse")
                if (r["stream"].partition(",")[0], r["model"]) == (stream, learner)
            ]
            r2, cost = (
                np.mean([float(r[name]) for r in own]) if own else None
                for name in ("r2", "microseconds")
            )
            assert cell == (f"{r2:.3f}, {cost:.0f} µs" if own else "\N{EN DASH}")


TIMINGS = ("at once", "by 1,000", "24 late", "never after 80 %")
LEARNERS = ("hybrid", "forest", "LightGBM refitted", "HistGradientBoosting refitted")


def test_each_stream_of_the_hybrid():
    found = {(r["data"], r["timing"], r["learner"]): r["r2"] for r in records("hybrid")}
    start = "### R²: hybrid / forest / refitted LightGBM"
    rows = [row for row in tables("howto/hybrid.md", start) if " / " in row[1]]
    assert len(rows) == len({stream for stream, timing, _ in found if timing == "at once"})
    for stream, *cells in rows:
        for timing, cell in zip(TIMINGS, cells, strict=True):
            learners = [*LEARNERS, *["LightGBM continued"] * (timing == "by 1,000")]
            values = [float(found[stream, timing, learner]) for learner in learners]
            assert cell == " / ".join(f"{value:.3f}" for value in values), (stream, timing)


def test_how_often_the_hybrid_is_behind():
    leads = {timing: [] for timing in TIMINGS}
    found = {
        (r["data"], r["timing"], r["learner"]): max(LEAST_R2, float(r["r2"]))
        for r in records("hybrid")
    }
    for (stream, timing, learner), r2 in found.items():
        if timing in leads and learner == "hybrid":
            members = [found[stream, timing, name] for name in LEARNERS[1:3]]
            leads[timing].append(r2 - max(members))
    page = " ".join(text("howto/hybrid.md").split())
    behind = {timing: sum(lead < -0.005 for lead in own) for timing, own in leads.items()}
    count = len(leads["at once"])
    assert (
        f"on {behind['by 1,000']} of {count} streams with batches, and on "
        f"{behind['never after 80 %']} of {count} without labels"
    ) in page
    most = -min(*leads["at once"], *leads["24 late"])
    assert f"at most {most:.4f} below, R² of the better member" in page


def test_how_much_slower_the_service_is():
    rows = {(r["server"], r["rows"]): r for r in records("serving-medians")}

    def ratio(rows_per_request, name):
        own, other = (
            float(rows[server, rows_per_request][name].replace(",", ""))
            for server in ("sapwood serve", "FastAPI, the same model")
        )
        return own / other

    rates, costs = (
        [ratio(rows_per_request, name) for rows_per_request in ("1", "100")]
        for name in ("requests/s", "CPU µs a request")
    )
    page = " ".join(text("howto/serving.md").split())
    assert f"answered {1 / rates[0]:.1f} to {1 / rates[1]:.1f} times as many requests" in page
    single, batches = (round(100 * cost - 100) for cost in costs)
    assert f"used {single} % (single rows) and {batches} % (batches) more CPU time" in page


# -- figures that a page quotes from another one ---------------------------------------------------


def test_delayed_labels_quote_the_page_on_labels():
    rows = {row[0]: row[1] for row in reversed(tables("benchmarks/timings.md", "## Means over 14"))}
    quoted = " ".join(text("howto/delayed-labels.md").split())
    once, day, week = (f"{float(rows[key]):.3f}" for key in ("at once", "24 late", "168 late"))
    assert (
        f"over 14 streams is {once} with immediate labels, {day} with labels 24 rows late, and "
        f"{week} with labels 168 rows late"
    ) in quoted


def test_limitations_quote_the_benchmarks():
    quoted = " ".join(text("explanation/limitations.md").split())
    rows = tables("benchmarks/timings.md", "## R², labels never after 80 %")[2:-1]
    ahead = sum(float(row[-1]) > float(row[1]) for row in rows)
    assert f"batch gradient boosting was better on {ahead} of {len(rows)} streams" in quoted
    head, _, *rows = tables("benchmarks/peers.md", "R² on real streams:")
    rows = rows[: next(i for i, row in enumerate(rows) if row[0] == "stream")]
    places = head.index("Sapwood"), head.index("LightGBM")
    scores = [[float(row[place].strip("*")) for place in places] for row in rows]
    ahead = sum(lightgbm > ours for ours, lightgbm in scores)
    assert f"on {len(rows)} real streams" in quoted
    assert f"LightGBM had a higher R² on {ahead} of them" in quoted


def test_methods_quote_each_page():
    rows = {row[0].partition("]")[0][1:]: row[-1] for row in tables("benchmarks/methods.md")[-4:]}
    summary = {(r["stream"], r["learner"]): r for r in records("headline") if r["measure"] == "r2"}
    assert rows["summary"] == f"{float(summary['bike', 'Sapwood tree']['value']):.3f}"
    for name, page, start in (
        ("tables", "tables.md", ""),
        ("labels and accuracy", "timings.md", "## R², labels at once"),
        ("peers", "peers.md", "R² on real streams:"),
    ):
        own = next(row for row in tables(f"benchmarks/{page}", start) if row[0] == "bike")
        place = 2 if name == "peers" else 1
        assert rows[name] == own[place].strip("*")


def test_the_page_on_intervals_quotes_the_tables():
    own = [row for row in tables("benchmarks/tables.md", "## Prediction intervals") if "0.9" in row]
    rows = {row[0].replace("river's ", "river "): row[2:] for row in own}
    shown = tables("explanation/conformal-intervals.md")[2:]
    assert len(shown) == 5
    for name, *cells in shown:
        assert cells == [cell.strip("*") for cell in rows[name]], name


def test_pages_quote_the_figures_of_other_pages():
    def cell(page, start, name, place):
        return next(row for row in tables(page, start) if row[0] == name)[place]

    honest = " ".join(text("explanation/evaluating-honestly.md").split())
    once, late = (
        float(cell("benchmarks/timings.md", f"## R², labels {timing}", "Beijing PM2.5", 1))
        for timing in ("at once", "24 late")
    )
    assert f"R² is {once:.3f} with immediate labels and {late:.3f} with labels 24 rows" in honest
    row = next(
        row
        for row in tables("benchmarks/tables.md", "## Multi-target regression")
        if row[3:5] == [".825", ".936"]
    )
    assert row[2] == "16"
    several = " ".join(text("howto/multi-target.md").split())
    assert "one tree for 16 targets reached R² 0.825, and separate trees reached 0.936" in several
    observer = " ".join(text("explanation/quantizer-observer.md").split())
    regret = "Regret: the share of E-BST's merit"
    auto, fixed = (
        float(cell("benchmarks/paper.md", regret, name, 1).strip("%"))
        for name in ("QO auto", "QO 0.01")
    )
    assert f"automatic radius is on average {auto:.3f} % below" in observer
    assert f"the merit is {fixed:.3f} % lower" in observer


def test_pages_on_distribution_and_drift_quote_the_tables():
    page = " ".join(text("howto/distributed-training.md").split())
    times = {
        row[0]: row[-1]
        for row in tables("benchmarks/tables.md", "Seconds of `sapwood train`")[:6]
        if "Parquet" in row[0]
    }
    assert (
        f"{times['8,000,000, Parquet']} times as fast as one process for 8 million rows and "
        f"{times['32,000,000, Parquet']} times for 32 million"
    ) in page
    rates = {
        row[0]: [float(cell.split()[0].replace(",", "")) for cell in row[1:]]
        for row in tables("benchmarks/tables.md", "## Concept drift")[2:6]
    }
    ours = rates["Sapwood detector, on errors"]
    others = [rates[f"river {name}, on errors"] for name in ("ADWIN", "Page\N{EN DASH}Hinkley")]
    fewest = min(theirs / own for each in others for theirs, own in zip(each, ours, strict=True))
    assert f"at least {fewest:.0f} times as many false alarms" in " ".join(
        text("howto/drift-alerts.md").split()
    )


def test_importances_of_forests():
    found = {}
    for row in records("importances"):
        columns = ("distance", "mean_distance", "rank", "mean_rank", "halves")
        found.setdefault(row["stream"], []).append([float(row[name]) for name in columns])
    means = {stream: np.mean(own, axis=0) for stream, own in found.items()}
    rows = tables("benchmarks/tables.md", "Forests, 12,000 rows")[2 : 2 + len(means)]
    assert rows == [[stream, *(f"{value:.2f}" for value in own)] for stream, own in means.items()]
    far = {stream: own for stream, own in means.items() if own[0] >= 0.15}
    page = " ".join(text("explanation/model-trees.md").split())
    assert f"less than 0.15 on {len(means) - len(far)} of {len(means)} streams" in page
    (beijing, warm) = (far.pop(name) for name in ("Beijing PM2.5", "maximum temperature"))
    assert not far
    words = f"(sums of {beijing[0]:.2f} and {warm[0]:.2f})"
    assert f"{words}, where the permutation importances of two halves of the last rows" in page
    assert f"differ by {beijing[-1]:.2f} and {warm[-1]:.2f}" in page


def test_pages_quote_the_tables_on_importances_and_kafka():
    rows = {row[0]: row[1:] for row in tables("benchmarks/tables.md", "## Feature importance")}
    found = [float(cell) for cell in rows["`feature_importances`"]]
    words = f"between {min(found):.2f} and {max(found):.2f} on six streams"
    assert len(found) == 6
    assert words in " ".join(text("explanation/model-trees.md").split())
    rates = {
        row[0]: row[-1]
        for row in tables("benchmarks/tables.md", "## Kafka")
        if row[1] == "read, predicted and learned"
    }
    assert (
        f"Sapwood predicted and learned {rates['Kafka']} rows per CPU second from Kafka, and "
        f"{rates['JSON lines']} from a file of JSON lines"
    ) in " ".join(text("howto/kafka.md").split())
