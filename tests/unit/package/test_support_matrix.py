"""The page of what is supported states what models do: every pair is tried."""

import pytest

from places import ROOT

PAGE = ROOT / "docs" / "reference" / "support.md"
REMEDY = "write it by `python tests/support/support_matrix.py > docs/reference/support.md`"


def test_the_page_states_what_models_do():
    for name in ("onnx", "treelite", "sklearn"):
        pytest.importorskip(name)
    import support_matrix

    stated = PAGE.read_text(encoding="utf-8").splitlines()
    found = support_matrix.page().splitlines()
    assert [line for line in found if line not in stated] == [], REMEDY
    assert stated == found, REMEDY


def test_what_has_no_effect_is_not_stated_as_supported():
    pytest.importorskip("sklearn")
    import support_matrix

    support_matrix.FEATURES["never"] = lambda case: False
    support_matrix.FEATURES["fails"] = lambda case: case.nothing()
    try:
        for feature, expected in (
            ("never", support_matrix.NO_EFFECT),
            ("fails", support_matrix.NO),
        ):
            assert support_matrix.tried(feature, "tree", "one target")[0] == expected
    finally:
        del support_matrix.FEATURES["never"], support_matrix.FEATURES["fails"]
