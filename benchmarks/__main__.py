"""Answer the questions: ``python -m benchmarks [name ...] [--quick]``."""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks import (
    anomalies,
    bins,
    bounds,
    categories,
    class_observers,
    class_weights,
    classes,
    corrections,
    coverage,
    drift,
    endurance,
    evaluate_speed,
    family,
    forecasting,
    forests,
    hard_cases,
    hard_columns,
    hard_concepts,
    hard_features,
    hard_shifts,
    headline,
    hybrid,
    importances,
    intervals,
    kafka,
    labels,
    losses,
    moments_accuracy,
    newcomers,
    observers_accuracy,
    observers_memory,
    observers_regret,
    observers_speed,
    panels,
    row_costs,
    scale,
    serving,
    sharing,
    sites,
    source_size,
    sparse,
    stage_costs,
    targets,
    timings,
    transforms,
    tree_accuracy,
    tree_growth,
    tree_speed,
    units,
)
from benchmarks.ensembles import question as ensembles
from benchmarks.tables import Answer, Bound, Table

RESULTS = Path(__file__).parent / "results"

QUESTIONS: dict[str, Callable[[bool], Answer]] = {
    "headline": headline.run,
    "observers_speed": observers_speed.run,
    "observers_memory": observers_memory.run,
    "moments_accuracy": moments_accuracy.run,
    "observers_accuracy": observers_accuracy.run,
    "observers_regret": observers_regret.run,
    "tree_speed": tree_speed.run,
    "row_costs": row_costs.run,
    "sharing": sharing.run,
    "tree_growth": tree_growth.run,
    "tree_accuracy": tree_accuracy.run,
    "timings": timings.run,
    "evaluate_speed": evaluate_speed.run,
    "forests": forests.run,
    "hard_cases": hard_cases.run,
    "hard_columns": hard_columns.run,
    "hard_concepts": hard_concepts.run,
    "hard_features": hard_features.run,
    "hard_shifts": hard_shifts.run,
    "forecasting": forecasting.run,
    "corrections": corrections.run,
    "coverage": coverage.run,
    "panels": panels.run,
    "ensembles": ensembles.run,
    "units": units.run,
    "sparse": sparse.run,
    "stage_costs": stage_costs.run,
    "transforms": transforms.run,
    "anomalies": anomalies.run,
    "losses": losses.run,
    "bounds": bounds.run,
    "bins": bins.run,
    "family": family.run,
    "hybrid": hybrid.run,
    "endurance": endurance.run,
    "newcomers": newcomers.run,
    "intervals": intervals.run,
    "drift": drift.run,
    "categories": categories.run,
    "classes": classes.run,
    "class_observers": class_observers.run,
    "class_weights": class_weights.run,
    "importances": importances.run,
    "labels": labels.run,
    "kafka": kafka.run,
    "serving": serving.run,
    "scale": scale.run,
    "sites": sites.run,
    "targets": targets.run,
    "source_size": source_size.run,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Answer the questions that are named, or all; return 1 if a promise is broken.

    Parameters
    ----------
    arguments : sequence of str, optional
        Instead of those of the command line.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("questions", nargs="*", help=f"of {', '.join(QUESTIONS)}; default: all")
    parser.add_argument("--quick", action="store_true", help="fewer rows and repetitions")
    options = parser.parse_args(arguments)
    if unknown := set(options.questions) - set(QUESTIONS):
        parser.error(f"no such question: {', '.join(sorted(unknown))}")

    promises: list[Bound] = []
    for name in options.questions or QUESTIONS:
        answer = QUESTIONS[name](options.quick)
        print(f"== {name}\n", *(f"{table}\n" for table in answer.tables), sep="\n", flush=True)
        answer.records.write_csv(RESULTS / f"{name}.csv")
        promises += answer.bounds
    print(Table("== Bounds", ("bound", "measured", "limit", "met"), [b.row() for b in promises]))
    return 0 if all(bound.met for bound in promises) else 1


if __name__ == "__main__":
    sys.exit(main())
