"""The site: `make docs` builds it in build/docs, offline; warnings are errors."""

import sys
from pathlib import Path

from matplotlib.figure import Figure
from sphinx_gallery.scrapers import figure_rst

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS))

import make_reference  # noqa: E402

from mcrise import __version__  # noqa: E402

project, author, release = "mcrise", "The mcrise authors", __version__
copyright = "the mcrise authors"
extensions = ["myst_parser", "sphinx_gallery.gen_gallery"]
html_theme = "furo"
html_title = f"mcrise {__version__}"
html_theme_options = {"light_css_variables": {"font-stack": "system-ui, sans-serif"}}
html_static_path = ["static"]
html_css_files = ["site.css"]
exclude_patterns = ["README.md"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
suppress_warnings = ["config.cache"]
highlight_language = "none"


def shown_figures(block, block_vars, gallery_conf):
    """Save the figures that a block of an example has made: mcrise draws without pyplot."""
    seen = shown_figures.seen
    names = []
    for value in list(block_vars["example_globals"].values()):
        if isinstance(value, Figure) and not any(value is one for one in seen):
            seen.append(value)
            names.append(next(block_vars["image_path_iterator"]))
            value.savefig(names[-1], dpi=100)
    return figure_rst(names, gallery_conf["src_dir"])


shown_figures.seen = []

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": "/plot_",
    "image_scrapers": [shown_figures],
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_memory": False,
    "write_computation_times": False,
    "show_signature": False,
    "remove_config_comments": True,
    "abort_on_example_error": True,
    "nested_sections": False,
}


def setup(app):
    make_reference.write(DOCS / "reference")
