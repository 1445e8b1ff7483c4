"""Every measurement as a row of a CSV file that grows, so that a run that was stopped can go on."""

import csv
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

__all__ = ["COMPLETE", "FAILURE", "Job", "Record", "ResultsFile"]

COMPLETE = "complete"
FAILURE = "failure"


class Job(NamedTuple):
    """What is measured at a time, in a process of its own."""

    stage: str
    stream: str
    learner: str


class Record(NamedTuple):
    """One measurement.

    Attributes
    ----------
    stage : str
        Of the run: "accuracy", "cost", "growth" or "parts".
    stream, learner, setting : str
        What was measured.
    rows : int
        After how many rows of the stream.
    measure : str
        Such as "r2"; `FAILURE` if there is nothing but a note, `COMPLETE` after the last record of
        a job.
    value : float
        In the unit of the measure, which its name contains.
    note : str
        Why something failed.
    """

    stage: str
    stream: str
    learner: str
    setting: str
    rows: int
    measure: str
    value: float
    note: str = ""

    @property
    def job(self) -> Job:
        """The job that it is of."""
        return Job(self.stage, self.stream, self.learner)


class ResultsFile:
    """The file of all measurements of a run.

    Parameters
    ----------
    path : Path
        Where it is or will be. Records of a job that was not completed are dropped.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        found = list(_read(path)) if path.exists() else []
        self.done = {record.job for record in found if record.measure == COMPLETE}
        self.records = [record for record in found if record.job in self.done]
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([Record._fields, *self.records])

    def add(self, job: Job, records: Iterable[Record]) -> None:
        """Keep what a job has found.

        Parameters
        ----------
        job : Job
            What was done.
        records : iterable of Record
            All that it found.
        """
        found = [*records, Record(*job, "", 0, COMPLETE, 1.0)]
        with self.path.open("a", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(found)
        self.records += found
        self.done.add(job)


def _read(path: Path) -> Iterator[Record]:
    with path.open(newline="", encoding="utf-8") as file:
        rows = csv.reader(file)
        next(rows, None)
        for row in rows:
            # A run that was killed may have left half a line.
            if len(row) == len(Record._fields):
                stage, stream, learner, setting, count, measure, value, note = row
                yield Record(
                    stage, stream, learner, setting, int(count), measure, float(value), note
                )
