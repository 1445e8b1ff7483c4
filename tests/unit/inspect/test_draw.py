"""The picture of a tree: what it shows, and that nothing in it is in the way of anything else."""

import itertools
import re
import xml.etree.ElementTree as ET
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapwood.inspect.draw import SCALE, colour, draw, fitted, ink_on, text_width
from view_cases import EMPTY, SMALL, chain, leaf, picture, split, trees

SVG = "{http://www.w3.org/2000/svg}"
ORIENTATIONS = ["down", "right"]


class Rect(NamedTuple):
    left: float
    top: float
    right: float
    bottom: float

    def within(self, other):
        return (
            self.left >= other.left
            and self.top >= other.top
            and self.right <= other.right
            and self.bottom <= other.bottom
        )

    def overlaps(self, other):
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )


class Parsed:
    """What a reader of the picture finds."""

    def __init__(self, drawing):
        self.root = ET.fromstring(drawing.svg)
        self.page = Rect(*map(float, self.root.get("viewBox").split()))
        (moved,) = (group for group in self.root.iter(f"{SVG}g") if group.get("transform"))
        self.shift = [float(part) for part in re.findall(r"[-\d.]+", moved.get("transform"))]
        self.groups = list(self._group("nodes"))
        self.boxes = [self._box(group.find(f"{SVG}rect")) for group in self.groups]
        self.looks = [group.get("class") for group in self.groups]
        self.tooltips = [group.find(f"{SVG}title").text for group in self.groups]
        self.texts = [[text.text for text in group.iter(f"{SVG}text")] for group in self.groups]
        self.fills = [group.find(f"{SVG}rect").get("fill") for group in self.groups]
        self.lines = [path.get("d") for path in self._group("lines")]
        self.thickness = [float(path.get("stroke-width")) for path in self._group("lines")]
        self.answers = [text.text for text in self._group("answers")]
        self.answer_boxes = [self._text_box(text) for text in self._group("answers")]

    def _group(self, name):
        return next(group for group in self.root.iter(f"{SVG}g") if group.get("class") == name)

    def _box(self, rect):
        x, y, width, height = (float(rect.get(key)) for key in ("x", "y", "width", "height"))
        x, y = x + self.shift[0], y + self.shift[1]
        return Rect(x, y, x + width, y + height)

    def _text_box(self, text):
        width = text_width(text.text, 11)
        x, y = float(text.get("x")) + self.shift[0], float(text.get("y")) + self.shift[1]
        x -= {"start": 0, "end": width}[text.get("text-anchor")]
        return Rect(x, y - 8, x + width, y)


def centre(box):
    return (box.left + box.right) / 2, (box.top + box.bottom) / 2


# What it shows


def test_a_small_tree():
    shown = Parsed(draw(SMALL))
    assert shown.texts == [
        ["temp < 12.5", "missing: no"],
        ["3.25", "weight 120"],
        ["city in {Oslo, Rome}", "unseen or missing: yes"],
        ["8", "weight 60"],
        ["10.5", "weight 20"],
    ]
    assert shown.looks == ["split", "leaf", "split", "leaf", "leaf"]
    assert shown.answers == ["yes", "no", "yes", "no"]
    assert [text.text for text in shown._group("legend").iter(f"{SVG}text")] == [
        "colour: mean of y, line width: weight",
        "3.25",
        "6.875",
        "10.5",
    ]


def test_tooltips_tell_all_numbers():
    tooltips = Parsed(draw(SMALL)).tooltips
    assert tooltips[2].splitlines() == [
        "node 2, depth 1",
        "temp >= 12.5 or missing",
        "condition: city in {Oslo, Rome} (unseen or missing: yes)",
        "gain 75",
        "when it split: weight 40, mean 8.5, deviation 1.5",
        "now below: leaves 2, weight 80, mean 8.625",
    ]
    assert tooltips[4].splitlines() == [
        "node 4, depth 2",
        "city not in {Oslo, Rome}",
        "leaf: mean, not watching",
        "weight 20, mean 10.5, deviation 0",
    ]


def test_what_is_too_deep_is_folded():
    shown = Parsed(draw(SMALL, max_depth=1))
    assert shown.texts[-1] == ["… 2 leaves", "mean 8.625, weight 80"]
    assert shown.looks == ["split", "leaf", "folded"]
    assert Parsed(draw(SMALL, max_depth=0)).texts == [["… 3 leaves", "mean 5.4, weight 200"]]
    assert draw(SMALL, max_depth=2) == draw(SMALL, max_depth=None)


def test_an_empty_tree():
    shown = Parsed(draw(EMPTY))
    assert shown.texts == [["no rows yet", "weight 0"]]
    assert "legend" not in draw(EMPTY).svg
    assert Parsed(draw(picture(leaf(2.5, 3)))).texts == [["2.5", "weight 3"]]


def test_lines_are_as_wide_as_their_share_of_the_weight():
    shown = Parsed(draw(SMALL))
    assert shown.thickness == [5.9, 4.35, 3.57, 2.02]
    assert Parsed(draw(picture(split(leaf(1, 0), leaf(2, 0))))).thickness == [1.25, 1.25]


def test_long_names_are_cut_before_the_threshold():
    tree = picture(split(leaf(), leaf(), threshold=-12.625), ["name_" * 40], [()])
    title = Parsed(draw(tree)).texts[0][0]
    assert title == "name_name_name_na… < -12.625"
    assert f"condition: {'name_' * 40} < -12.625 (missing: no)" in Parsed(draw(tree)).tooltips[0]


def test_long_sets_are_cut():
    labels = [f"a label that is long {code}" for code in range(9)]
    tree = picture(split(leaf(), leaf(), subset=0b111111111), ["x"], [labels])
    title = Parsed(draw(tree)).texts[0][0]
    assert title == "x in {a label that is long 0, +8 more}"


def test_the_name_of_the_target_is_in_the_legend():
    legend = Parsed(draw(SMALL, target="price & <tax>"))._group("legend")
    assert legend.find(f"{SVG}text").text == "colour: mean of price & <tax>, line width: weight"


def test_without_finite_means_it_is_grey():
    tree = picture(split(leaf(np.nan), leaf(np.inf)))
    assert Parsed(draw(tree)).fills == ["#ffffff", "#e4e4e4", "#e4e4e4"]


# Colours


def luminance(colour):
    channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_the_scale_goes_evenly_from_light_to_dark():
    lightness = [116 * luminance(colour(part / 50, 0, 1)) ** (1 / 3) - 16 for part in range(51)]
    steps = -np.diff(lightness)
    assert steps.min() > 0.5 * steps.mean()
    assert steps.max() < 2 * steps.mean()
    assert colour(0, 0, 1) == SCALE[0]
    assert colour(1, 0, 1) == SCALE[-1]


def test_letters_can_be_read_on_every_colour():
    for part in range(501):
        fill = colour(part / 500, 0, 1)
        light, dark = sorted([luminance(fill), luminance(ink_on(fill))], reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5


def test_extreme_means_have_colours():
    assert colour(1.7e308, -1.7e308, 1.7e308) == SCALE[-1]
    assert colour(5e-324, 0.0, 5e-324) == colour(0.25, 0.0, 1.0)


# The layout


@pytest.mark.parametrize("orientation", ["auto", *ORIENTATIONS])
@given(tree=trees(), max_depth=st.none() | st.integers(0, 5))
def test_nothing_is_in_the_way_of_anything(orientation, tree, max_depth):
    drawing = draw(tree, max_depth, orientation=orientation)
    shown = Parsed(drawing)
    depths = tree.nodes["depth"]
    limit = len(depths) if max_depth is None else max_depth
    assert len(shown.boxes) == np.count_nonzero(depths <= limit)
    assert len(shown.lines) == len(shown.answers) == len(shown.boxes) - 1
    assert (drawing.width, drawing.height) == (shown.page.right, shown.page.bottom)
    margin = Rect(19, 19, shown.page.right - 19, shown.page.bottom - 19)
    for box, texts in zip(shown.boxes, shown.texts, strict=True):
        assert box.within(margin)
        assert text_width(texts[0], 13) <= box.right - box.left - 20
        assert text_width(texts[1], 11) <= box.right - box.left - 20
    for one, other in itertools.combinations(shown.boxes, 2):
        assert not one.overlaps(other)
    for answer in shown.answer_boxes:
        assert not any(answer.overlaps(box) for box in shown.boxes)
    for one, other in itertools.combinations(shown.answer_boxes, 2):
        assert not one.overlaps(other)


@pytest.mark.parametrize("orientation", ORIENTATIONS)
@given(tree=trees())
def test_parents_are_above_the_middle_of_their_children(orientation, tree):
    shown = Parsed(draw(tree, None, orientation=orientation))
    across = 0 if orientation == "down" else 1
    box_of = {}
    for (node, _), box in zip(tree.walk(), shown.boxes, strict=True):
        box_of[node] = box
    for node in np.flatnonzero(tree.nodes["kind"]):
        left = int(tree.nodes["child"][node])
        ends = [centre(box_of[left])[across], centre(box_of[left + 1])[across]]
        assert ends[0] < ends[1]
        assert centre(box_of[node])[across] == pytest.approx(sum(ends) / 2, abs=0.02)
        levels = [centre(box_of[child])[1 - across] for child in (left, left + 1)]
        assert min(levels) > centre(box_of[node])[1 - across]


def test_a_subtree_moves_under_a_shallow_neighbour():
    """What tells a tidy layout from one that reserves a column for each subtree."""
    deep = split(leaf(), split(leaf(), split(leaf(), leaf())))
    boxes = Parsed(draw(picture(split(deep, leaf())), None, orientation="down")).boxes
    neighbour = boxes[-1]
    assert any(box.left < neighbour.right < box.right for box in boxes[:-1])


@pytest.mark.parametrize("orientation", ORIENTATIONS)
@pytest.mark.parametrize("left", [True, False])
def test_a_deep_chain_is_drawn_without_recursion(orientation, left):
    shown = Parsed(draw(chain(3_000, left), None, orientation=orientation))
    assert len(shown.boxes) == 6_001
    assert all(box.within(shown.page) for box in shown.boxes)
    for one, other in itertools.pairwise(shown.boxes):
        assert not one.overlaps(other)


def test_it_grows_the_way_that_fits_a_page():
    bushy = leaf()
    for _ in range(5):
        bushy = split(bushy, bushy)
    for tree in (picture(bushy), SMALL, chain(50)):
        sides = {way: max_side(draw(tree, None, orientation=way)) for way in ORIENTATIONS}
        assert max_side(draw(tree, None)) == min(sides.values())


def max_side(drawing):
    return max(drawing.width, drawing.height)


def test_texts_are_cut_by_their_width():
    assert fitted("iiiiiiiiii", 10, 40) == "iiiiiiiiii"
    assert fitted("WWWWWWWWWW", 10, 40) == "WW…"
    assert text_width("温度", 10) > text_width("mm", 10) > text_width("ii", 10)
    assert text_width("e\u0301", 10) == text_width("e", 10)


# The file


@given(tree=trees())
def test_it_needs_nothing_beside_it(tree):
    tags = {element.tag.removeprefix(SVG) for element in Parsed(draw(tree)).root.iter()}
    assert tags <= {"svg", "g", "path", "rect", "text", "title"}
    attributes = {name for element in Parsed(draw(tree)).root.iter() for name in element.attrib}
    assert not attributes & {"id", "href", "style", "onclick", "onload"}


def test_hostile_names_are_escaped():
    names = ["</text><script>alert(1)</script>", "a&b\x00\ud800\ufffe"]
    tree = picture(
        split(split(leaf(), leaf(), feature=1), leaf(), subset=0b11),
        names,
        [["]]>", '"><g onload="x"'], []],
    )
    drawing = draw(tree, target=names[0])
    shown = Parsed(drawing)
    assert "<script" not in drawing.svg
    assert shown.texts[1][0] == r"a&b\x00\ud800\ufffe < 0"


def test_it_is_shown_and_saved(tmp_path):
    drawing = draw(SMALL)
    assert drawing._repr_svg_() == str(drawing) == drawing.svg
    assert repr(drawing) == f"Drawing({drawing.width} x {drawing.height} pixels)"
    drawing.save(tmp_path / "tree.SVG")
    saved = (tmp_path / "tree.SVG").read_bytes()
    assert saved.decode() == f'<?xml version="1.0" encoding="UTF-8"?>\n{drawing.svg}\n'
    assert ET.fromstring(saved).tag == f"{SVG}svg"


def test_other_formats_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"tree\.png': a name that ends with \.svg is expected"):
        draw(SMALL).save(tmp_path / "tree.png")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"max_depth": -1}, "max_depth = -1: a number from 0 to"),
        ({"digits": 99}, "digits = 99: a number from 1 to"),
        ({"orientation": "up"}, 'orientation = \'up\': "auto", "down" or "right"'),
    ],
)
def test_bad_options_are_refused(options, complaint):
    with pytest.raises(ValueError, match=complaint):
        draw(SMALL, **options)
