"""A model in production: rows come through a pipe, the machine dies, and nothing is lost.

Rows are written to ``sapwood evaluate -``, which predicts and learns each as it comes and saves all
that it knows from time to time. It is killed on the way, as by a failing machine. The same command
then goes on from its last checkpoint, and ends with the same model, to the last bit, as a run that
was never disturbed. The model then answers in a pipe of its own.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from sapwood import streams

ROWS = 12_000
PROGRAM = [sys.executable, "-m", "sapwood"]


def lines(rows: int) -> list[str]:
    """Return the lines of a CSV file with the hourly demand of three cities."""
    made = ["hour,weekday,holiday,temperature,city,demand"]
    for x, y in streams.demand(rows=rows):
        made.append(",".join("" if v is None else str(v) for v in [*x.values(), y]))
    return made


def learn(folder: Path, text: str, name: str, killed: bool = False) -> None:
    """Let a command learn what comes through its pipe, and perhaps kill it before the end."""
    command = [
        *(*PROGRAM, "evaluate", "-", "-t", "demand", "--lags", "24", "--by", "city", "--quiet"),
        *("--checkpoint", f"{name}.checkpoint", "--every", "1000", "--save", f"{name}.sapwood"),
        *("--predictions", f"{name}.csv"),
    ]
    process = subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write(text.encode())
    process.stdin.flush()
    if killed:
        while not (folder / f"{name}.checkpoint").exists():
            pass
        process.kill()
    else:
        process.stdin.close()
    process.wait()
    print(f"{name}: {'killed' if killed else 'ended'}")


def main() -> None:
    """Disturb one run, leave another one alone, and compare them."""
    folder = Path(tempfile.mkdtemp())
    text = "\n".join([*lines(ROWS), ""])
    learn(folder, text, "calm")
    learn(folder, text, "rough", killed=True)
    learn(folder, text, "rough")
    for suffix in ("sapwood", "csv"):
        same = (folder / f"calm.{suffix}").read_bytes() == (folder / f"rough.{suffix}").read_bytes()
        print(f"the .{suffix} of both are {'the same' if same else 'NOT the same'}")
    head, *_, last = text.splitlines()
    answer = subprocess.run(
        [*PROGRAM, "predict", "calm.sapwood", "--quiet", "--id", "city", "--id", "hour"],
        cwd=folder,
        input=f"{head}\n{last}\n",
        capture_output=True,
        text=True,
        check=True,
    )
    print(answer.stdout, end="")
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
