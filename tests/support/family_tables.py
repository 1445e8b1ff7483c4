"""The tables of the page "The family of the paper", of the results that benchmarks have written.

``python tests/support/family_tables.py`` prints them.
"""

import csv
import math

import numpy as np

from places import ROOT

RESULTS = ROOT / "docs" / "benchmarks" / "results"
RULED = ("tree", "tree of depth 2", "river AMRules")  # of which the number of rules is known
DRIFTING = ("friedman-gra", "friedman-lea", "friedman-gsg", "hyperplane")


def read(name):
    """Return the rows of a results file."""
    with (RESULTS / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def score(text):
    """Return R² as a page shows it: three digits, in short where it is far below 0."""
    value = float(text) if text else math.nan
    if math.isnan(value):
        return "fails"
    return f"{value:.3f}".replace("-", "−") if value > -10 else f"{value:.0f}".replace("-", "−")


def lines(heads, rows):
    """Return a table of Markdown."""
    sides = ["---", *["--:"] * (len(heads) - 1)]
    return [f"| {' | '.join(cells)} |" for cells in (heads, sides, *rows)]


def by_stream(columns, with_rules=()):
    """Return R² of learners on each stream, for some with the number of rules."""
    found = {(row["stream"], row["learner"]): row for row in read("family")}
    streams = list(dict.fromkeys(stream for stream, _ in found))
    rows = []
    for stream in streams:
        cells = [stream]
        for name in columns:
            row = found[stream, name]
            rules = f" ({row['rules']})" if name in with_rules and row["rules"] else ""
            cells.append(score(row["r2"]) + rules)
        rows.append(cells)
    return lines(["stream", *columns], rows)


def costs(columns):
    """Return the medians of R² of learners, over drifting streams and over real ones, and costs."""
    found = read("family")
    rows = []
    for name in columns:
        own = [row for row in found if row["learner"] == name]
        parts = [
            [row for row in own if (row["stream"] in DRIFTING) == drifting]
            for drifting in (True, False)
        ]
        r2 = [score(str(np.median([float(row["r2"]) for row in part]))) for part in parts]
        micro = np.nanmean([float(row["microseconds"]) for row in own])
        sizes = [float(row["megabytes"]) for row in own if row["megabytes"]]
        size = f"{np.mean(sizes):.2f}" if sizes else "-"
        rows.append([name, *r2, f"{micro:.1f}", size])
    return lines(["learner", "R², drifting", "R², real", "µs a row", "MB"], rows)


def anomalies():
    """Return the mean AUC of scores on each stream, and on streams that chose no constant."""
    found = read("anomalies")
    names = list(dict.fromkeys(row["score"] for row in found))
    streams = list(dict.fromkeys(row["stream"] for row in found))
    own = {row["stream"]: row["constants"] for row in found}

    def mean(name, keep):
        aucs = [float(row["auc"]) for row in found if row["score"] == name and keep(row)]
        return f"{np.mean(aucs):.3f}"

    rows = [
        [
            stream + (" *" if own[stream] == "chosen" else ""),
            *(mean(n, lambda r, s=stream: r["stream"] == s) for n in names),
        ]
        for stream in streams
    ]
    for kind in ("mixed", "shifted", "uniform"):
        keep = lambda row, kind=kind: row["constants"] == "held out" and row["anomalies"] == kind  # noqa: E731
        rows.append([f"all but *, {kind}", *(mean(name, keep) for name in names)])
    rows.append(["all but *", *(mean(n, lambda r: r["constants"] == "held out") for n in names)])
    return lines(["stream", *names], rows)


def counts():
    """Return R² and deviance of models of counts."""
    found = read("losses")
    names = ["tree", "transform auto", "transform log1p", "poisson"]
    scores = {(r["stream"], r["labels"], r["model"]): r for r in found}
    keys = [key for key in dict.fromkeys(k[:2] for k in scores) if (*key, "poisson") in scores]
    rows = [
        [
            f"{stream}, {labels}",
            *(
                f"{float(scores[stream, labels, n]['r2']):.3f} / "
                f"{float(scores[stream, labels, n]['deviance']):.4g}"
                for n in names
            ),
        ]
        for stream, labels in keys
    ]
    return lines(["stream, labels", *names], rows)


def outliers():
    """Return R² of the truth, with outliers among labels and without."""
    scores = {(r["stream"], r["labels"], r["model"]): r["r2"] for r in read("losses")}
    streams = [
        s.removesuffix(", clean")
        for s, by, m in scores
        if s.endswith("clean") and m == "huber" and by == "at once"
    ]
    rows = [
        [
            f"{stream}, {by}",
            *(
                score(scores[f"{stream}, {kind}", by, m])
                for kind in ("outliers", "clean")
                for m in ("tree", "huber")
            ),
        ]
        for stream in streams
        for by in ("at once", "by 1,000")
    ]
    return lines(
        ["stream, labels", "tree, outliers", "huber, outliers", "tree, clean", "huber, clean"], rows
    )


def bounds():
    """Return the rates of false splits, and the accuracy of trees."""
    found = read("bounds")
    stops = ("10000", "100000", "1000000")
    rows = []
    for question in ("means", "false splits"):
        own = [r for r in found if r["question"] == question]
        for key in dict.fromkeys((r["bound"], r["delta"], r["least_evidence"]) for r in own):
            rates = {
                r["rows"]: float(r["value"])
                for r in own
                if (r["bound"], r["delta"], r["least_evidence"]) == key
            }
            guard = "" if question == "means" else f", guard {float(key[2]):g}"
            rows.append(
                [f"{question}, {key[0]}{guard}", key[1], *(f"{rates[s]:.3f}" for s in stops)]
            )
    first = lines(["null", "δ", "10⁴ rows", "10⁵", "10⁶"], rows)
    accuracy = [
        [
            r["bound"],
            r["delta"] or "-",
            f"{float(r['least_evidence']):g}",
            f"{float(r['value']):.4f}",
            f"{float(r['leaves']):.1f}",
        ]
        for r in found
        if r["question"] == "accuracy"
    ]
    return first, lines(["bound", "δ", "least evidence", "R²", "leaves"], accuracy)


def bins():
    """Return the means over streams by the number of bins."""
    found = read("bins")
    rows = []
    for model in ("tree", "forest"):
        for size in ("8", "16", "32", "64"):
            own = [r for r in found if (r["model"], r["bins"]) == (model, size)]
            means = [np.mean([float(r[n]) for r in own]) for n in ("r2", "leaves", "megabytes")]
            rows.append([model, size, f"{means[0]:.4f}", f"{means[1]:.1f}", f"{means[2]:.2f}"])
    return lines(["model", "bins", "R²", "leaves", "MB"], rows)


def tables():
    """Return all tables by name."""
    null, accuracy = bounds()
    return {
        "rules": by_stream(["tree", "tree of depth 2", "river AMRules", "MOA AMRules"], RULED),
        "anomalies": anomalies(),
        "counts": counts(),
        "outliers": outliers(),
        "gradients": by_stream(["tree", "river SGT", "MOA SGT"]),
        "revision": costs(["tree", "adaptive tree", "pruning tree", "river HAT", "MOA FIMT-DD"]),
        "options": costs(["tree", "forest of 2", "forest of 3", "forest of 10", "MOA ORTO"]),
        "null": null,
        "accuracy": accuracy,
        "bins": bins(),
    }


if __name__ == "__main__":
    for name, table in tables().items():
        print(f"## {name}\n", *table, "", sep="\n")
