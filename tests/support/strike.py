"""Run the command line as a program that a signal strikes at a moment of its work, not of a clock.

``python strike.py SIGNAL MOMENT COUNT SECONDS ARGUMENTS...`` sends itself the signal when a moment
has come for the given time, or when it has then used some seconds of the processor, which end it by
SIGPROF. So it is struck at the same place on every machine, however slow or busy that is.
"""

import os
import signal
import sys


def is_import(event, arguments):
    """A module is about to be imported: the program starts."""
    return event == "import"


def is_opening(event, arguments):
    """The file of predictions is about to be opened."""
    return event == "open" and os.path.basename(str(arguments[0])) == "predictions.csv"


def is_saved(event, arguments):
    """A checkpoint is about to get its name."""
    return event == "os.rename" and os.path.basename(arguments[1]) == "C"


def is_saving(event, arguments):
    """A file is written under a name of its own, and about to get the one that it is for."""
    return event == "os.rename" and arguments[0].endswith(".tmp")


MOMENTS = {"start": is_import, "opening": is_opening, "saved": is_saved, "saving": is_saving}


def main():
    """Wait for the moment while the command runs."""
    number, moment, count, seconds, *typed = sys.argv[1:]
    left = int(count)

    def look(event, arguments):
        nonlocal left
        if left == 0 or not MOMENTS[moment](event, arguments):
            return
        left -= 1
        if left > 0:
            return
        if moment == "saving":  # and had come half as far
            os.truncate(arguments[0], os.path.getsize(arguments[0]) // 2)
        if float(seconds):
            signal.setitimer(signal.ITIMER_PROF, float(seconds))
        else:
            os.kill(os.getpid(), int(number))

    sys.argv[1:] = typed
    sys.addaudithook(look)
    from sapwood import cli

    cli.main()


if __name__ == "__main__":
    main()
