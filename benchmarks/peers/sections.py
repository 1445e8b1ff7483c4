"""The sections of the page, in order."""

import math
from collections.abc import Callable, Sequence

from benchmarks import row_costs
from benchmarks.peers import sets
from benchmarks.peers.contents import ABSENT, Cell, Section, Table, number_cells, plain, r2_text
from benchmarks.peers.findings import LIGHTGBM, LOWER_IS_BETTER, Findings, Loss
from benchmarks.peers.roster import OURS
from sapwood.evaluate.ranking import ALPHA, Ranking
from sapwood.report.html import count, measured, megabytes

__all__ = ["MEASURES", "sections", "verdicts"]

MEASURES = {
    "r2": "R²",
    "r2_without_worst": "R² without the worst 1 %",
    "mae": "MAE",
    "rmse": "RMSE",
}
COSTS: dict[str, tuple[str, Callable[[float], str]]] = {
    "microseconds": ("µs a row", lambda value: measured(value, 3)),
    "worst_milliseconds": ("worst call, ms", lambda value: measured(value, 3)),
    "model_bytes": ("model in memory", lambda value: megabytes(int(value))),
    "process_bytes": ("process grows by", lambda value: megabytes(int(value))),
    "file_bytes": ("model file", lambda value: megabytes(int(value))),
}
MOST_FAILURES = 60


def sections(found: Findings) -> list[Section]:
    """Return all sections of the page.

    Parameters
    ----------
    found : Findings
        What was measured.
    """
    return [
        Section("verdict", "In short", verdicts(found)),
        _accuracy(found),
        _ranks(found),
        _grid(found),
        _costs(found),
        _growth(found),
        _parts(found),
        _losses(found),
        _failures(found),
        _streams(found),
        _learners(found),
        _machine(found),
    ]


def verdicts(found: Findings) -> list[str]:
    """Return the main results, in a sentence each.

    Parameters
    ----------
    found : Findings
        What was measured.
    """
    texts = []
    if found.real:
        trees = found.ranking(found.scores(found.real, found.trees, "r2"), found.trees)
        texts.append(_rank_verdict(trees, "single online trees", len(found.real)))
        everyone = found.ranking(found.scores(found.real, found.compared, "r2"), found.compared)
        texts.append(_rank_verdict(everyone, "learners", len(found.real)))
        if LIGHTGBM in [who.name for who in found.compared]:
            won = len(found.wins(LIGHTGBM, found.real))
            texts.append(
                "With labels at once, R² better than that of LightGBM's continued training, which "
                f"gets them by 1,000 rows, on {won} of {len(found.real)} real streams; with labels "
                "by 1,000 rows for both, see timings.md."
            )
    texts += _speed_verdicts(found)
    return texts


def _rank_verdict(ranking: Ranking, of: str, streams: int) -> str:
    place = ranking.models.index(OURS)
    own = f"average rank {ranking.ranks[place]:.2f} of {len(ranking.models)} {of}"
    if place == 0:
        next_ = f"{ranking.models[1]} follows with {ranking.ranks[1]:.2f}"
    else:
        next_ = f"{ranking.models[0]} is first with {ranking.ranks[0]:.2f}"
    return f"R² on {streams} real streams, with defaults: {own}; {next_}."


def _speed_verdicts(found: Findings) -> list[str]:
    own = {name: found.cost(name, "microseconds") for name in (OURS, f"{OURS}, one by one")}
    others = [who for who in found.entries if OURS not in (who.name, who.same_as)]
    rows = {who.name: found.cost(who.name, "microseconds") for who in others}
    rows = {name: value for name, value in rows.items() if math.isfinite(value)}
    if not rows or not all(map(math.isfinite, own.values())):
        return []
    quickest = min(rows, key=lambda name: rows[name])
    batch, single = own.values()
    return [
        f"A row of ten numbers, predicted and learned, takes {measured(batch, 3)} µs in batches "
        f"and {measured(single, 3)} µs one by one; the quickest of the others, {quickest}, takes "
        f"{measured(rows[quickest], 3)} µs."
    ]


# -- accuracy -------------------------------------------------------------------------------------


def _accuracy(found: Findings) -> Section:
    plan = found.run.plan
    texts = [
        "Each row is predicted, then learned, by every learner with its defaults: labels come at "
        "once, but for LightGBM, which gets them by 1,000 rows. The same rows "
        f"for all: the first {count(plan.rows)} of a stream at most. The first "
        f"{count(plan.warm_up)} are learned but not scored, since LightGBM has nothing to predict "
        "its first batch by. R² is against the mean of the rows that are scored; the best of a "
        "row is bold.",
    ]
    tables = []
    for measure, name in MEASURES.items():
        for kind, streams in (("real", found.real), ("generated", found.generated)):
            if streams:
                caption = f"{name} on {kind} streams"
                tables.append(_score_table(found, caption, streams, measure))
    return Section("accuracy", "Accuracy", texts, tables, ["dots"])


def _score_table(found: Findings, caption: str, streams: Sequence[str], measure: str) -> Table:
    is_r2 = measure in ("r2", "r2_without_worst")
    rows = []
    for stream, values in zip(
        streams, found.scores(streams, found.compared, measure).tolist(), strict=True
    ):
        texts = [r2_text(v) if is_r2 else _error_text(v) for v in values]
        cells = number_cells(values, texts, lower=LOWER_IS_BETTER[measure], shaded=is_r2)
        rows.append([*plain(stream, count(found.run.sizes[stream])), *cells])
    header = ["stream", "rows", *(who.name for who in found.compared)]
    folded = measure != "r2"
    return Table(caption, header, rows, folded=folded, in_short=not folded)


def _error_text(value: float) -> str:
    return "failed" if math.isnan(value) else measured(value)


# -- ranks ----------------------------------------------------------------------------------------


def _ranks(found: Findings) -> Section:
    plan, trees, compared = found.run.plan, found.trees, found.compared
    texts = [
        "Within each real stream the best R² has rank 1; a learner that failed is last. Ranks are "
        "averaged over the streams, and learners that a bar joins do not differ significantly "
        f"(Nemenyi's test at the level {ALPHA}).",
    ]
    if not found.real:
        return Section("ranks", "Average ranks", ["There are no real streams."])
    rankings = {
        "single trees": found.ranking(found.scores(found.real, trees, "r2"), trees),
        "all": found.ranking(found.scores(found.real, compared, "r2"), compared),
        f"all, best of the grid on {count(plan.grid_rows)} rows": found.ranking(
            found.grid_scores(compared), compared
        ),
    }
    rows = []
    for who in compared:
        values = [_rank_of(ranking, who.name) for ranking in rankings.values()]
        rows.append([Cell(who.name), *values])
    table = Table("Average ranks over the real streams", ["learner", *rankings], rows)
    p_values = [
        f"{name}: p = {ranking.tests.friedman_p:.1e}, critical difference "
        f"{ranking.tests.critical_difference:.2f}"
        for name, ranking in rankings.items()
        if ranking.tests is not None
    ]
    if p_values:
        texts.append(f"Friedman's test that all are alike: {'; '.join(p_values)}.")
    return Section(
        "ranks", "Average ranks", texts, [table], ["ranks-trees", "ranks-all", "ranks-grid"]
    )


def _rank_of(ranking: Ranking, name: str) -> Cell:
    if name not in ranking.models:
        return Cell(ABSENT)
    place = ranking.models.index(name)
    return Cell(f"{ranking.ranks[place]:.2f}", best=place == 0)


# -- the grid -------------------------------------------------------------------------------------


def _grid(found: Findings) -> Section:
    sizes = {len(who.grid) for who in found.compared}
    assert len(sizes) == 1, "equal numbers of settings"
    texts = [
        f"Every learner may choose the best of {sizes.pop()} settings for each real stream, in "
        f"hindsight, on its first {count(found.run.plan.grid_rows)} rows. Trees: grace period 50 "
        "or 200, split confidence 1e-7 or 1e-3, leaves with a model or a mean; LightGBM: 2, 5, 10 "
        "or 20 trees a batch, learning rate 0.1 or 0.3; SGD: learning rate 0.001, 0.01, 0.03 or "
        "0.1, falling or constant. The defaults are among them.",
    ]
    rows, chosen = [], []
    for stream, values in zip(found.real, found.grid_scores(found.compared).tolist(), strict=True):
        cells = number_cells(values, [r2_text(v) for v in values], lower=False, shaded=True)
        rows.append([*plain(stream, count(found.grid_rows(stream))), *cells])
        best = [found.best_of_grid(stream, who)[1] for who in found.compared]
        chosen.append(plain(stream, *best))
    names = [who.name for who in found.compared]
    tables = [
        Table("R², each learner's best of the grid", ["stream", "rows", *names], rows),
        Table(
            "Which settings were best",
            ["stream", *names],
            chosen,
            words=tuple(range(1, len(names) + 1)),
            folded=True,
            in_short=False,
        ),
    ]
    return Section("grid", "Each learner's best settings", texts, tables)


# -- costs ----------------------------------------------------------------------------------------


def _costs(found: Findings) -> Section:
    plan = found.run.plan
    texts = [
        f"Friedman's function, {count(plan.cost_rows)} rows of ten numbers in memory before the "
        "clock starts, one job at a time: CPU time of the thread that predicts and learns, the "
        f"best of {plan.passes} passes (of one, if a pass takes longer than five seconds). The "
        "worst call is the longest that a user has to wait: a row, or a whole batch, the shortest "
        "of the passes each. Memory is what the model occupies by its own account (Sapwood, "
        "river), by a copy of it in Java's heap (MOA), or by its arrays (SGD); LightGBM does not "
        "report it. The next column is by how much Python's process grows, which has the caches "
        "and garbage of all in it. Files: Sapwood's and LightGBM's own formats, Java's "
        "serialization, pickle. LightGBM runs on one thread.",
    ]
    entries = found.entries
    columns = []
    for measure, (_, written) in COSTS.items():
        values = [found.cost(who.name, measure) for who in entries]
        shown = [written(value) if math.isfinite(value) else ABSENT for value in values]
        best = measure != "process_bytes"  # which is too rough to compete by
        columns.append(number_cells(values, shown, lower=True) if best else plain(*shown))
    fixed = [
        plain(who.name, "one by one" if who.batch == 1 else count(who.batch)) for who in entries
    ]
    rows = [[*head, *cells] for head, cells in zip(fixed, zip(*columns, strict=True), strict=True)]
    header = ["learner", "rows a call", *(name for name, _ in COSTS.values())]
    table = Table("Costs on Friedman's function", header, rows)
    return Section("costs", "Costs", texts, [table], ["scatter"])


def _growth(found: Findings) -> Section:
    plan = found.run.plan
    texts = [
        "Friedman's function without end: what a row costs, and what the model occupies, after "
        f"more and more rows, up to {count(plan.growth_rows)} or until a learner has used "
        f"{plan.budget:.0f} seconds of CPU time. Each figure is the mean since the place before.",
    ]
    rows = []
    for who in found.entries:
        times = found.growth(who.name, "microseconds")
        if times:
            sizes = found.growth(who.name, "model_bytes")
            (first, start), (last, end) = times[0], times[-1]
            at = dict(times)
            cells = [
                measured(at[place], 3) if place in at else ABSENT
                for place in (10**4, 10**5, 10**6, 10**7)
            ]
            size = f"{megabytes(int(sizes[-1][1]))} at {count(sizes[-1][0])}" if sizes else ABSENT
            growth = _times(end / start) if last > first else ABSENT
            rows.append(plain(who.name, *cells, count(last), measured(end, 3), growth, size))
    header = ["learner", *(f"µs at {place}" for place in ("10⁴", "10⁵", "10⁶", "10⁷"))]
    header += ["rows reached", "µs there", "since 10⁴", "model in memory"]
    table = Table("How costs grow", header, rows)
    return Section(
        "growth", "How costs grow", texts, [table], ["growth-microseconds", "growth-model_bytes"]
    )


def _parts(found: Findings) -> Section:
    whole, floor = found.part(row_costs.WHOLE), found.part(row_costs.FLOOR)
    if not math.isfinite(whole):
        return Section("parts", "Where the time of a row goes", ["It could not be measured."])
    texts = [
        f"Friedman's function, the second {count(row_costs.ROWS)} rows of ten numbers, in one "
        "batch and a tree that grows: nanoseconds a row, the best of several runs. The floor is "
        "the bare update of the linear models and the slots of each row's leaf, the same rows in "
        "the same leaves, in a loop that does nothing else. `python -m benchmarks row_costs` "
        "measures it again.",
    ]
    rows = [
        plain(part, f"{value:.0f}", f"{100 * value / whole:.0f} %", f"{value / floor:.2f}")
        for part in (*row_costs.PARTS, row_costs.WHOLE)
        for value in [found.part(part)]
    ]
    other = [plain(name, f"{found.part(name):.0f}") for name in row_costs.OTHER]
    tables = [
        Table("A row by its parts", ["part", "ns", "share", "times the floor"], rows),
        Table("Other costs", ["what", "ns a row"], other),
    ]
    return Section("parts", "Where the time of a row goes", texts, tables)


# -- where we lose --------------------------------------------------------------------------------


def _losses(found: Findings) -> Section:
    losses, on_grid, costs = found.losses(), found.grid_losses(), found.cost_losses()
    all_scores = len(found.run.sizes) * len(MEASURES)
    texts = [
        f"Of {all_scores} scores ({len(found.run.sizes)} streams, {len(MEASURES)} measures) "
        f"another learner is better than Sapwood in {len(losses)}; by its best settings another "
        f"one is better on {len(on_grid)} of {len(found.real)} real streams. All of them:",
    ]
    growth = [
        plain(loss.stream, loss.measure, _times(loss.ours), loss.best, _times(loss.theirs))
        for loss in found.growth_losses()
    ]
    tables = [
        Table(
            "Scores with defaults in which another learner is better",
            ["stream", "measure", OURS, "the best", "its score", "learners ahead"],
            [_loss_row(loss, MEASURES[loss.measure], _score_text(loss.measure)) for loss in losses],
            words=(1, 3),
        ),
        Table(
            "R² with the best settings of each",
            ["stream", "measure", OURS, "the best", "its score", "learners ahead"],
            [_loss_row(loss, MEASURES[loss.measure], r2_text) for loss in on_grid],
            words=(1, 3),
        ),
        Table(
            "Costs that are lower elsewhere",
            ["entry", "cost", OURS, "the lowest", "its cost", "learners ahead"],
            [_loss_row(loss, *COSTS[loss.measure]) for loss in costs],
            words=(1, 3),
        ),
        Table(
            "Costs a row that grow less from 10⁴ rows on, as far as both went",
            ["entry", "to rows", OURS, "another", "its growth"],
            growth,
            words=(1, 3),
        ),
    ]
    return Section(
        "losses", "Where Sapwood is behind", texts, [table for table in tables if table.rows]
    )


def _loss_row(loss: Loss, name: str, written: Callable[[float], str]) -> list[Cell]:
    return plain(
        loss.stream, name, written(loss.ours), loss.best, written(loss.theirs), str(loss.better)
    )


def _times(ratio: float) -> str:
    return f"{ratio:.2f} times"


def _score_text(measure: str) -> Callable[[float], str]:
    return r2_text if measure in ("r2", "r2_without_worst") else _error_text


def _failures(found: Findings) -> Section:
    failures, absent = found.failures(), found.run.absent
    texts = []
    if not failures:
        texts.append("No learner failed on any stream.")
    else:
        text = f"{count(len(failures))} failures; a learner that fails on a stream ranks last there"
        more = len(failures) > MOST_FAILURES
        texts.append(f"{text}. The first {MOST_FAILURES}:" if more else f"{text}.")
    for duplicate in found.duplicates():
        texts.append(
            f"{duplicate.name} gives the predictions of {duplicate.of} on {duplicate.equal} of "
            f"{duplicate.streams} streams, as it should on all."
        )
    texts += [f"Left out: {name}, {why}." for name, why in absent.items()]
    rows = [
        plain(r.learner, r.stage if r.stage != "accuracy" else r.stream, r.setting, r.note)
        for r in failures[:MOST_FAILURES]
    ]
    tables = []
    if rows:
        header = ["learner", "where", "setting", "what happened"]
        tables.append(Table("Failures", header, rows, words=(1, 2, 3)))
    return Section("failures", "Failures and omissions", texts, tables)


# -- how it was done ------------------------------------------------------------------------------


def _streams(found: Findings) -> Section:
    assert sets.__doc__ is not None
    _, *rest = sets.__doc__.split("\n\n")
    texts = [" ".join(text.split()) for text in rest]
    rows = []
    for name in found.real:
        about = sets.REAL[name]
        source = about.package or "file"
        order = "time" if about.ordered else "shuffled"
        rows.append(
            plain(
                name,
                count(found.run.sizes[name]),
                found.run.shapes[name],
                order,
                source,
                about.target,
                about.about,
            )
        )
    for name in found.generated:
        about_text = sets.GENERATED[name]
        size, shape = count(found.run.sizes[name]), found.run.shapes[name]
        rows.append(plain(name, size, shape, "time", "sapwood.streams", "y", about_text))
    header = ["stream", "rows", "numbers + words", "order", "from", "target", "what it is"]
    table = Table("The streams", header, rows, words=(3, 4, 5, 6))
    return Section("streams", "Streams", texts, [table])


def _learners(found: Findings) -> Section:
    texts = [
        "Every learner gets the rows as its users would give them. river: numbers behind its "
        "StandardScaler, missing ones replaced by the mean so far, words as nominal features; its "
        "linear leaves, which reject words, get the numbers alone. MOA: words as nominal "
        "attributes, which FIMT-DD ignores, missing numbers replaced by the mean so far. LightGBM: "
        "its own handling of categories and missing values. SGD: numbers behind StandardScaler, "
        "missing ones as the mean, words as 0 or 1 for each category. Sapwood: rows as they are.",
    ]
    rows = [plain(who.name, "yes" if who.tree else "no", who.about) for who in found.entries]
    table = Table("The learners", ["learner", "single online tree", "what it is"], rows, (1, 2))
    return Section("learners", "Learners", texts, [table])


def _machine(found: Findings) -> Section:
    rows = [plain(name, value) for name, value in found.run.machine.items()]
    table = Table("Machine and versions", ["what", "which"], rows, words=(1,))
    full = found.run.plan.name == "full"
    how = "make bench-full" if full else "make bench"
    folder = "benchmarks/results/peers" if full else "build/benchmark"
    texts = [
        f"Written by `{how}`, which leaves every measurement in `{folder}/results.csv`. That file "
        "is made by the run and is not part of the repository."
    ]
    return Section("machine", "Machine and versions", texts, [table])
