"""The tree in the report: its top as a picture, then node by node, then its leaves as a table."""

import heapq
import xml.etree.ElementTree as ET
from collections.abc import Iterator

from sapwood.formatting import number, plain
from sapwood.inspect.draw import draw
from sapwood.inspect.view import Limits, TreePicture, condition, hints, question
from sapwood.report.html import Words, aligned_column, count, share, table, text
from sapwood.tree.layout import LEAF, NUMBER

__all__ = ["leaf_rule", "render_tree", "written_nodes"]

MOST_NODES = 600  # that the page shows
DEEPEST = 30  # browsers limit how deep elements may be nested
OPEN = 2  # nodes above this depth show their children at first
MOST_LEAVES = 200  # of the table
TOP = 3  # levels of the picture
LONGEST_TITLE = 300
MOST_HINT = 300

LIMITS = Limits(6)
SVG = "http://www.w3.org/2000/svg"


def render_tree(picture: TreePicture, target: str) -> str:
    """Return the tree as a piece of a page."""
    leaves = picture.below.leaves[0]
    hinted = "".join(f"<p>{text(each, MOST_HINT)}</p>\n" for each in hints(picture))
    if leaves == 1:
        return f'{hinted}<p class="quiet">One leaf: the tree has not split yet.</p>'
    expanded = written_nodes(picture)
    depth = max(picture.columns["depth"])
    words_shown = (
        f"{count(leaves)} leaves, the deepest at depth {depth}. "
        "A row starts at the top and goes where its values send it; the leaf where it ends "
        "predicts it."
    )
    head = (
        '<div class="node head" aria-hidden="true"><span class="asks">rows for which</span>'
        '<span class="bar"></span><span>share of rows</span>'
        f"<span>mean of {text(plain(target), 16)}</span><span>gain</span></div>"
    )
    hint = (
        "Gain is a split's share of the squared error that all splits removed. More numbers "
        "appear where the pointer rests."
    )
    nodes = "".join(_nodes(picture, expanded))
    return (
        f"<p>{words_shown}</p>\n{hinted}{_drawing(picture, target)}\n"
        f"<h3>Node by node</h3>\n<p>{hint}</p>\n"
        f'<div class="scroll tree"><div class="nodes">{head}{nodes}</div></div>\n'
        f"{_leaf_table(picture)}"
    )


def written_nodes(picture: TreePicture, most: int = MOST_NODES, deepest: int = DEEPEST) -> set[int]:
    """Return the splits whose children are shown: those that most rows come through.

    - `most`: how many nodes are shown at the most, the root included.
    """
    kind, child, weight = picture.columns["kind"], picture.columns["child"], picture.reached
    waiting = [(-weight[0], 0, 0)]
    expanded: set[int] = set()
    while waiting and 2 * len(expanded) + 3 <= most:
        _, node, depth = heapq.heappop(waiting)
        if kind[node] != LEAF and depth < deepest:
            expanded.add(node)
            for below in (child[node], child[node] + 1):
                heapq.heappush(waiting, (-weight[below], below, depth + 1))
    return expanded


def _nodes(picture: TreePicture, expanded: set[int]) -> Iterator[str]:
    """Yield the nodes as nested elements."""
    gains = float(picture.nodes["gain"][picture.nodes["kind"] != LEAF].sum())
    means = aligned_column(picture.below.mean)
    child = picture.columns["child"]
    waiting: list[tuple[int, int] | str] = [(0, 0)]  # nodes with their depth, or ends of elements
    while waiting:
        entry = waiting.pop()
        if isinstance(entry, str):
            yield entry
            continue
        node, depth = entry
        line = _line(picture, node, node in expanded, means[node], gains)
        if node not in expanded:
            look = "leaf" if picture.columns["kind"][node] == LEAF else "folded"
            yield f'<div class="node {look}"{_title(picture, node)}>{line}</div>\n'
            continue
        state = " open" if depth < OPEN else ""
        yield f'<details{state}><summary class="node"{_title(picture, node)}>{line}</summary>'
        yield '<div class="below">\n'
        waiting += ["</div></details>\n", (child[node] + 1, depth + 1), (child[node], depth + 1)]


def _line(picture: TreePicture, node: int, is_open: bool, mean: str, gains: float) -> str:
    columns, weight = picture.columns, picture.reached
    is_leaf = columns["kind"][node] == LEAF
    last = ""
    if is_leaf:
        last = f"<i>{text(columns['model'][node])}</i>"
    elif gains > 0:
        last = text(share(columns["gain"][node], gains))
    more = ""
    if not is_leaf and not is_open:
        more = f" <em>and {count(picture.below.leaves[node])} more leaves below</em>"
    part = weight[node] / weight[0] if weight[0] > 0 else 0.0
    return (
        f'<span class="asks">{_words(picture, node)}{more}</span>'
        f'<span class="bar"><i style="width:{100 * part:.1f}%"></i></span>'
        f"<span>{text(share(weight[node], weight[0]))}</span>"
        f"<span>{mean}</span><span>{last}</span>"
    )


def _words(picture: TreePicture, node: int) -> str:
    return "all rows" if node == 0 else text(condition(picture, node, LIMITS))


def _title(picture: TreePicture, node: int) -> str:
    """Return the numbers of a node, as what a pointer finds."""
    columns = picture.columns
    names = ["weight", "mean", "deviation"]
    if columns["kind"][node] == LEAF:
        what = "watching" if columns["watching"][node] else "not watching"
    else:
        what = "when it split"
        names.append("gain")
    numbers = ", ".join(f"{name} {number(columns[name][node], 6)}" for name in names)
    depth = columns["depth"][node]
    return f' title="{text(f"node {node}, depth {depth}; {what}: {numbers}")}"'


def _drawing(picture: TreePicture, target: str) -> str:
    svg = draw(picture, TOP, target=plain(target), orientation="right").svg
    root = ET.fromstring(svg)
    for title in root.iter(f"{{{SVG}}}title"):
        words_shown = title.text or ""
        title.text = (
            words_shown if len(words_shown) <= LONGEST_TITLE else words_shown[:LONGEST_TITLE] + "…"
        )
    root.set("role", "img")
    root.set("aria-label", f"the top of the tree, to depth {TOP}; all of it is below as text")
    for each in root.iter():
        each.tag = each.tag.removeprefix(f"{{{SVG}}}")
    picture_itself = ET.tostring(root, encoding="unicode")
    return (
        f'<div class="scroll paper" tabindex="0">{picture_itself}</div>'
        '<p class="cue">The picture continues at the right: scroll it sideways.</p>'
    )


def _leaf_table(picture: TreePicture) -> str:
    """Return the leaves that most rows come to, each with all that holds for its rows."""
    columns, weight = picture.columns, picture.reached
    leaves = [node for node, kind in enumerate(columns["kind"]) if kind == LEAF]
    leaves.sort(key=lambda node: -weight[node])
    shown = leaves[:MOST_LEAVES]
    rest = ""
    if more := len(leaves) - len(shown):
        part = share(sum(weight[node] for node in leaves[MOST_LEAVES:]), weight[0])
        rest = f"<p>The {count(more)} other leaves have {text(part)} of the rows.</p>"

    def value(of: float, words: str) -> str:
        return f'<span data-value="{of!r}">{text(words)}</span>'

    means = aligned_column([columns["mean"][node] for node in shown])
    deviations = aligned_column([columns["deviation"][node] for node in shown])
    rows = [
        (
            value(node, str(node)),
            text(leaf_rule(picture, node), 400),
            value(weight[node], share(weight[node], weight[0])),
            value(columns["mean"][node], mean),
            value(columns["deviation"][node], deviation),
            text(columns["model"][node]),
            "yes" if columns["watching"][node] else "no",
        )
        for node, mean, deviation in zip(shown, means, deviations, strict=True)
    ]
    heads = [
        "node",
        Words("rows for which"),
        "share of rows",
        "mean",
        "deviation",
        Words("predicts by"),
        Words("may split"),
    ]
    title = "All leaves" if not rest else f"The {len(shown)} leaves with the most rows"
    made = table(heads, rows, kind="leaves")
    return (
        f'<details class="more"><summary>{title}, as a table</summary>{rest}'
        f'<div class="scroll">{made}</div></details>'
    )


def leaf_rule(picture: TreePicture, leaf: int) -> str:
    """Return what holds for the rows that come to a leaf; of a number, only the nearest bounds.

    Examples
    --------
    >>> from sapwood.inspect.view import sample
    >>> leaf_rule(sample(), 3)
    'temp >= 12.5 or missing; city in {Oslo, Rome}, unseen or missing'
    """
    columns = picture.columns
    bounds: dict[int, dict[bool, str]] = {}  # of each number: the upper (True) and the lower
    sets: dict[int, list[str]] = {}  # of each category: its conditions
    missing: dict[int, bool] = {}  # whether rows without a value come this way
    node = leaf
    while (parent := columns["parent"][node]) >= 0:
        left, feature = picture.is_left(node), columns["feature"][parent]
        lets = left == bool(columns["missing_left"][parent])
        missing[feature] = missing.pop(feature, True) and lets  # and to the end of the dict
        if columns["kind"][parent] == NUMBER and feature not in picture.levels:
            threshold = number(columns["threshold"][parent], LIMITS.digits)
            bounds.setdefault(feature, {}).setdefault(left, threshold)
        else:
            sets.setdefault(feature, []).insert(0, question(picture, parent, LIMITS, left))
        node = parent
    words_shown = []
    for feature, lets in reversed(missing.items()):  # in the order of their splits from the root on
        if feature in sets:
            words = ", ".join(sets[feature])
            if lets:
                words += " or missing" if feature in picture.levels else ", unseen or missing"
        else:
            words = _between(plain(picture.names[feature], LIMITS.letters), bounds[feature])
            words += " or missing" if lets else ""
        words_shown.append(words)
    return "; ".join(words_shown) or "all rows"


def _between(name: str, bounds: dict[bool, str]) -> str:
    if len(bounds) == 2:
        return f"{bounds[False]} <= {name} < {bounds[True]}"
    return f"{name} < {bounds[True]}" if True in bounds else f"{name} >= {bounds[False]}"
