"""Compile the kernels; everything else about the package is in pyproject.toml.

``SAPWOOD_DEBUG=1`` builds with bounds and initialisation checks on and little optimisation;
``SAPWOOD_ANNOTATE=1`` writes pages that show which lines of a kernel call Python.
"""

import os
from pathlib import Path

from Cython.Build import cythonize
from Cython.Compiler import Options
from setuptools import Extension, setup

debug = os.environ.get("SAPWOOD_DEBUG", "") not in ("", "0")
annotate = os.environ.get("SAPWOOD_ANNOTATE", "") not in ("", "0")

# No table has more than two dimensions (the limit is exclusive); the default is eight.
Options.buffer_max_dims = 3

# Contracted multiply-adds would make results differ between machines.
compile_args = ["-ffp-contract=off", *(["-O1", "-g", "-UNDEBUG"] if debug else ["-O3"])]

directives = {
    "language_level": 3,
    "boundscheck": debug,
    "initializedcheck": debug,
    "wraparound": False,
    "cdivision": True,
    "embedsignature": True,
    "embedsignature.format": "python",
}

# The tree's kernels spell out what is to be computed side by side; left to itself, gcc turns
# their short loops into slower ones.
tree_args = ["-fno-tree-loop-vectorize"]

sources = sorted(Path("src").rglob("*.pyx"))
extensions = [
    Extension(
        ".".join(source.relative_to("src").with_suffix("").parts),
        [str(source)],
        extra_compile_args=compile_args + (tree_args if source.parent.name == "tree" else []),
    )
    for source in sources
]

setup(
    ext_modules=cythonize(
        extensions,
        compiler_directives=directives,
        build_dir="build/debug" if debug else "build/release",
        annotate=annotate,
        force=annotate,
    ),
    options={"build_ext": {"parallel": os.cpu_count() or 1}},
)
