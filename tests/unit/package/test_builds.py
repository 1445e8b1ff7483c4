"""What other compilers and older releases of Python are given."""

import re
import shutil
import subprocess

import pytest

from cases import PATIENCE
from places import ROOT

SOURCES = ROOT / "src" / "sapwood"
HINT = SOURCES / "tree" / "_prefetch.pxd"
LOOPS = {
    SOURCES / "tree" / "_blocks.pxd",
    SOURCES / "tree" / "_vectors.pxd",
    SOURCES / "corrector" / "_weighted_sums.pxd",
}
GUARDED = re.compile(r"#if defined[^\n]*defined\(__GNUC__\)\n.*?#endif", re.DOTALL)


def test_words_of_one_compiler_stand_behind_one_guard() -> None:
    kernels = [*SOURCES.rglob("*.pyx"), *SOURCES.rglob("*.pxd")]
    assert len(kernels) > 20
    own = re.compile(r"\b__(builtin|attribute)")
    found = {path for path in kernels if own.search(path.read_text(encoding="utf-8"))}
    assert found == {HINT, *LOOPS}
    for path in LOOPS:
        assert not own.search(GUARDED.sub("", path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("known", [True, False], ids=["itself", "a stranger"])
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_the_hint_compiles_where_nobody_knows_it(compiler, known, tmp_path) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler}")
    pxd = HINT.read_text(encoding="utf-8")
    [verbatim] = re.findall(r'extern from \*:\n    """\n(.*?)    """', pxd, re.DOTALL)
    (tmp_path / "hint.c").write_text(
        f"{verbatim}\nvoid hint(double* x) {{ sapwood_prefetch_for_write(x); }}\n", encoding="utf-8"
    )
    pretend = [] if known else ["-U__GNUC__", "-U__clang__"]

    def compiled(*options):
        command = [compiler, *options, "-Wall", "-Werror", *pretend, "hint.c", "-o", "-"]
        return subprocess.run(
            command, cwd=tmp_path, capture_output=True, timeout=PATIENCE, check=True
        ).stdout

    assert (b"__builtin_prefetch((x), 1, 3);" in compiled("-E")) is known
    assert b"hint" in compiled("-S")


def test_no_pattern_repeats_a_group_possessively() -> None:
    # Before Python 3.11.5 such a repetition misses matches: (?:ab?c)++ does not match "aca".
    found = re.compile(r"""(?<!\\)\)(?:[*+?]|\{[\d,]+\})\+""")
    assert found.search(r"(?:ab?c)++")
    files = list(SOURCES.rglob("*.py"))
    assert len(files) > 80
    assert not [path for path in files if found.search(path.read_text(encoding="utf-8"))]


def test_modules_are_translated_with_one_limit_of_dimensions() -> None:
    """Views of others are read with wrong strides otherwise, so that each row of a batch is the first."""
    sources = [*(ROOT / "build" / "release").rglob("*.c"), *SOURCES.glob("_cyutility.c")]
    declared = re.compile(r"Py_ssize_t shape\[(\d+)\];")
    if not sources:
        pytest.skip("the kernels were built elsewhere")
    found = {limit for source in sources for limit in declared.findall(source.read_text("utf-8"))}
    assert found == {"3"}
