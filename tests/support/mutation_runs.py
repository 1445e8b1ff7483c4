"""Changed files, each tried in a process of its own, where a crash or a hang is noticed."""

import os
import subprocess
import sys
from collections import Counter

from places import SUPPORT

MOST_SECONDS = 1200  # far more than any part takes


def tried_apart(program, seed, first, last):
    """The results of files, loaded one by one in a process of its own: counts, and all faults."""
    found, troubles = Counter(), []
    while first < last:
        arguments = [sys.executable, os.fspath(SUPPORT / program), str(seed), str(first), str(last)]
        try:
            done = subprocess.run(
                arguments, capture_output=True, text=True, timeout=MOST_SECONDS, check=False
            )
            end, printed = f"exit code {done.returncode}", done.stdout
        except subprocess.TimeoutExpired as error:
            end, printed = "hang", (error.stdout or b"").decode()
        for line in printed.splitlines():
            place, _, word = line.partition(" ")
            word = word or f"crash or hang: {end}"
            first = int(place) + 1
            found[word.partition(":")[0]] += 1
            if word not in ("rejected", "accepted"):
                troubles.append(f"{seed} {place}: {word}")
        assert printed, done.stderr
    print(f"\nchanged files of seed {seed}: {dict(found)}")
    return found, troubles
