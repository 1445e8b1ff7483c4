"""What all charts have in common: the axis that they draw on and return, and why it is empty."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol

from matplotlib.axes import Axes

from sapwood.plot.style import axis, note

__all__ = ["EmptyChartError", "chart"]

Options = ParamSpec("Options")
PARAMETERS = """

Parameters
----------
{name} : {kind}
    What to draw.
ax : matplotlib.axes.Axes, optional
    Where to draw; a new figure by default.
"""
FURTHER = {"most": "How many rows are drawn at the most.", "bins": "How many bars there are."}
"""What further parameters of charts mean, which are whole numbers."""


class EmptyChartError(Exception):
    """There is nothing to draw; the reason is written in the middle of the axis."""


class Chart(Protocol[Options]):
    """A function that draws on an axis, by default that of a new figure, and returns it."""

    __name__: str

    def __call__(
        self, drawn: Any, /, ax: Axes | None = None, *args: Options.args, **given: Options.kwargs
    ) -> Axes: ...


def chart(draw: Callable[Concatenate[Any, Axes, Options], None]) -> Chart[Options]:
    """Return a chart by what draws it; the parameters of all charts are documented here."""
    signature = inspect.signature(draw)
    first, place, *others = signature.parameters.values()
    place = place.replace(default=None, annotation=Axes | None)
    signature = signature.replace(parameters=[first, place, *others], return_annotation=Axes)

    @wraps(draw)
    def drawn(*args: Any, **given: Any) -> Axes:
        call = signature.bind(*args, **given)
        ax = call.arguments["ax"] = axis(call.arguments.get("ax"))
        try:
            draw(*call.args, **call.kwargs)
        except EmptyChartError as reason:
            note(ax, str(reason))
        return ax

    drawn.__signature__ = signature  # type: ignore[attr-defined]
    summary = inspect.getdoc(draw) or ""
    if "Parameters\n---" not in summary:
        kind = "HybridRegressor" if first.annotation is Any else first.annotation.__name__
        more = (f"{each.name} : int\n    {FURTHER[each.name]}\n" for each in others)
        drawn.__doc__ = summary + PARAMETERS.format(name=first.name, kind=kind) + "".join(more)
    return drawn
