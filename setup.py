"""Compile the kernels; everything else about the package is in pyproject.toml.

``SAPWOOD_DEBUG=1`` builds with bounds and initialisation checks on and little optimisation;
``SAPWOOD_ANNOTATE=1`` writes pages that show which lines of a kernel call Python.
"""

import multiprocessing
import os
import sys
import tempfile
from pathlib import Path

from Cython.Build import cythonize
from Cython.Compiler import Options
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError

debug = os.environ.get("SAPWOOD_DEBUG", "") not in ("", "0")
annotate = os.environ.get("SAPWOOD_ANNOTATE", "") not in ("", "0")

# No table has more than two dimensions (the limit is exclusive); the default is eight. All modules
# have to be translated with the same limit, as they hand each other views. Processes that are not
# forked do not know this one: then there is one process. From Python 3.14 on, Linux forks on request.
Options.buffer_max_dims = 3
if sys.platform == "linux":
    multiprocessing.set_start_method("fork", force=True)
forks = multiprocessing.get_start_method() == "fork"

directives = {
    "language_level": 3,
    "boundscheck": debug,
    "initializedcheck": debug,
    "wraparound": False,
    "cdivision": True,
    "embedsignature": True,
    "embedsignature.format": "python",
}


class BuildKernels(build_ext):
    """Compile with the flags that the compiler at hand knows, several modules at a time."""

    def finalize_options(self):
        """Use all cores: editable builds forget options that are given to `setup`."""
        super().finalize_options()
        self.parallel = self.parallel or cores

    def build_extensions(self):
        """Choose flags, then compile as ever."""
        of_msvc = self.compiler.compiler_type == "msvc"
        common, of_tree, of_linker = self.flags_of_msvc() if of_msvc else self.flags_of_others()
        for extension in self.extensions:
            in_tree = extension.name.startswith(("sapwood.rows.", "sapwood.tree."))
            extension.extra_compile_args = common + (of_tree if in_tree else [])
            extension.extra_link_args = of_linker
        super().build_extensions()

    def flags_of_msvc(self):
        """Return flags to compile, to compile the tree, and to link."""
        return ["/fp:precise", *(["/Od", "/UNDEBUG"] if debug else ["/O2"])], [], []

    def flags_of_others(self):
        """Return flags to compile, to compile the tree, and to link."""
        # Contracted multiply-adds would make results differ between machines.
        common = ["-ffp-contract=off", *(["-O1", "-g", "-UNDEBUG"] if debug else ["-O3", "-g0"])]
        # The tree's kernels spell out what is to be computed side by side; left to itself, gcc
        # turns their short loops into slower ones.
        of_tree = [flag for flag in ["-fno-tree-loop-vectorize"] if self.accepts(flag)]
        without_symbols = {"linux": ["-Wl,-s"], "darwin": ["-Wl,-x"]}
        return common, of_tree, [] if debug else without_symbols.get(sys.platform, [])

    def accepts(self, flag):
        """Whether the compiler takes a flag without a word."""
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder, "empty.c")
            source.write_text("int nothing;\n", encoding="utf-8")
            try:
                self.compiler.compile([str(source)], folder, extra_postargs=["-Werror", flag])
            except CompileError:
                return False
        return True


# Cython's memoryview runtime, compiled once instead of into every kernel.
shared_runtime = "sapwood._cyutility"

# The longest first, so that no core waits for the others in the end.
sources = sorted(Path("src").rglob("*.pyx"), key=lambda source: (-source.stat().st_size, source))
extensions = [
    Extension(".".join(source.relative_to("src").with_suffix("").parts), [str(source)])
    for source in sources
]
extensions.append(Extension(shared_runtime, ["src/sapwood/_cyutility.c"]))
cores = os.cpu_count() or 1

setup(
    ext_modules=cythonize(
        extensions,
        compiler_directives=directives,
        build_dir="build/debug" if debug else "build/release",
        annotate=annotate,
        force=annotate,
        nthreads=cores if forks else 0,
        shared_utility_qualified_name=shared_runtime,
    ),
    cmdclass={"build_ext": BuildKernels},
)
