"""The critical-difference diagram: average ranks, and which of them do not differ."""

from collections.abc import Mapping

import pandas as pd
import scikit_posthocs
from matplotlib.axes import Axes

from sapwood.evaluate.ranking import Ranking
from sapwood.plot.style import INK, axis, looks_of

__all__ = ["ranks"]

BAR_ABOVE = 0.9
"""How far the bar of the critical difference is above the diagram, in lines of labels."""


def ranks(
    ranking: Ranking,
    ax: Axes | None = None,
    *,
    title: str = "Average rank",
    colours: Mapping[str, str] | None = None,
) -> Axes:
    """Draw average ranks on a line; models that do not differ significantly are joined by a bar.

    - `colours`: the colours of the models, if they are to be those of other pictures.
    - Raises ValueError if there are no tests.

    Examples
    --------
    >>> import numpy as np
    >>> from sapwood.evaluate.ranking import rank
    >>> errors = np.random.default_rng(1).random((9, 3)) + [0.0, 0.4, 0.5]
    >>> axes = ranks(rank(errors, ["tree", "mean", "last"]))
    >>> [text.get_text().strip() for text in axes.texts][0]
    'tree (1.33)'
    """
    if ranking.tests is None:
        raise ValueError("there are too few streams or models to test whether ranks differ")
    names = list(ranking.models)
    ax = axis(ax, 7.0, 0.9 + 0.24 * len(names))
    if colours is None:
        colours = {name: look.colour for name, look in looks_of(sorted(names)).items()}
    scikit_posthocs.critical_difference_diagram(
        dict(zip(names, ranking.ranks, strict=True)),
        pd.DataFrame(ranking.tests.pair_p, index=names, columns=names),
        ax=ax,
        label_fmt_left="{label} ({rank:.2f})  ",
        label_fmt_right="  ({rank:.2f}) {label}",
        color_palette={name: colours[name] for name in names},
        crossbar_props={"linewidth": 3.0, "color": "#555555", "marker": ""},
        text_h_margin=0.1,
    )
    for label in ax.texts:
        label.set_color(INK)
    ax.set_xlim(0.95, len(names) + 0.05)
    ax.set_xticks(range(1, len(names) + 1))
    ax.grid(False)
    width = ranking.tests.critical_difference
    height = ax.get_ylim()[1] + BAR_ABOVE
    ax.plot([1, 1 + width], [height] * 2, color="black", linewidth=2, marker="|", clip_on=False)
    ax.text(1 + width, height, f"  CD = {width:.2f}", va="center", fontsize=8)
    ax.set_title(title, fontsize=10, pad=22)
    return ax
