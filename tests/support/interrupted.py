"""Calls that break off at a line of our Python code."""

import linecache
import sys


class Stop(BaseException):
    """What breaks off a call."""


def _is_block(frame):
    """Whether a line only enters or leaves a block, where Python raises no signals."""
    text = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
    return text.strip().startswith(("with ", "try:"))


def interrupted_at(line, action):
    """Run an action that breaks off at a line of our Python code; return whether it was reached."""
    seen = 0

    def trace(frame, event, argument):
        nonlocal seen
        if "/sapwood/" not in frame.f_code.co_filename:
            return None
        if event == "line" and not _is_block(frame):
            seen += 1
            if seen == line:
                raise Stop
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        action()
    except Stop:
        return True
    finally:
        sys.settrace(before)
    return False
