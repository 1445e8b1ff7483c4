"""Compare: ``python -m benchmarks.peers [--full] [--page FOLDER] [--fresh]``."""

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
FOLDERS = {
    "full": REPOSITORY / "benchmarks" / "results" / "peers",
    "quick": REPOSITORY / "build" / "benchmark",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is not done yet, and write the page.

    Parameters
    ----------
    arguments : sequence of str, optional
        Instead of those of the command line.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("--full", action="store_true", help="all streams and rows: half an hour")
    parser.add_argument("--page", type=Path, help="the folder that the results are written to")
    parser.add_argument("--fresh", action="store_true", help="forget the results that are there")
    options = parser.parse_args(arguments)

    # Imported here, as the process of each job imports this file too.
    from benchmarks.peers.findings import Findings
    from benchmarks.peers.page import write_page
    from benchmarks.peers.run import FULL, QUICK, run
    from benchmarks.peers.sections import verdicts

    plan = FULL if options.full else QUICK
    folder = options.page or FOLDERS[plan.name]
    if options.fresh:
        for name in ("results.csv", "run.json"):
            (folder / name).unlink(missing_ok=True)
    try:
        found = Findings(run(plan, folder, partial(print, flush=True)))
    except ValueError as error:
        parser.error(str(error))
    print("", *verdicts(found), "", *write_page(found, folder), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
