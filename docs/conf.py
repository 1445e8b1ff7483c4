"""The documentation site: `make docs` builds it into docs/_build/html."""

import sys
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

project = "Sapwood"
author = "The Sapwood developers"
copyright = "the Sapwood developers"
version = release = version_of("sapwood")
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "sphinx-mathjax-offline",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build", "gallery"]
templates_path = ["_templates"]
suppress_warnings = ["ref.python"]  # a type of a parameter that several classes have
language = "en"
smartquotes = False  # options keep their hyphens, and commands their quotes
toc_object_entries_show_parents = "hide"

# -- Markdown -------------------------------------------------------------------------------------

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
myst_links_external_new_tab = False
copybutton_prompt_text = r">>> |\.\.\. |\$ |# (?=\w)"
copybutton_prompt_is_regexp = True

# -- API ------------------------------------------------------------------------------------------

autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "inherited-members": "object"}
autoclass_content = "class"
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True

# -- gallery ---------------------------------------------------------------------------------------

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "examples",  # written by the build
    "filename_pattern": "plot_",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "capture_repr": (),
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": 10**6,
}

# -- HTML -----------------------------------------------------------------------------------------

html_theme = "pydata_sphinx_theme"
html_context = {"default_mode": "auto"}
html_title = "Sapwood"
html_static_path = ["_static"]
html_css_files = ["sapwood.css"]
html_show_sourcelink = False
html_search_scorer = str(HERE / "search_scorer.js")
html_theme_options = {
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "header_links_before_dropdown": 8,
    "navbar_align": "left",
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}


def skip_foreign(*event: Any) -> bool | None:
    """Leave out members that river, scikit-learn or Python define."""
    obj = event[3]  # after the application, the kind and the name of the member
    defined_in = getattr(obj, "__module__", None) or getattr(
        getattr(obj, "fget", None), "__module__", None
    )
    return True if defined_in and not str(defined_in).startswith("sapwood") else None


def close_examples(app: Any, name: str, source: list[str]) -> None:
    """Leave out the empty line that doctest needs after the last output of an example."""
    source[0] = source[0].replace("\n\n```\n", "\n```\n")


def set_dashes(app: Any, doctree: Any) -> None:
    """Put dashes between parameters and their descriptions."""
    for node in list(doctree.findall(lambda node: node.astext() == " -- ")):
        if not node.children:
            node.parent.replace(node, type(node)(" \N{EN DASH} "))


def setup(app: Any) -> None:
    """Write the generated pages before Sphinx looks for documents."""
    from site_pages import write_pages

    write_pages(HERE / "reference")
    app.connect("source-read", close_examples)
    app.connect("autodoc-skip-member", skip_foreign)
    app.connect("doctree-read", set_dashes)
