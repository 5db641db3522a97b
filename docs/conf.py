"""How the documentation is built."""

from confrere import __version__

project = "confrere"
author = "the confrere developers"
release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.doctest", "sphinx.ext.mathjax", "sphinx.ext.napoleon"]
myst_enable_extensions = ["dollarmath"]
html_theme = "furo"
html_title = f"confrere {__version__}"
exclude_patterns = ["_build"]
autodoc_member_order = "bysource"
autodoc_typehints = "none"
default_role = "code"


def plain_bars(app, what, name, obj, options, lines):
    """Keep |S_i| from being read as a substitution."""
    lines[:] = [line.replace("|", r"\|") if ">>>" not in line else line for line in lines]


def setup(app):
    """Connect what reads docstrings."""
    app.connect("autodoc-process-docstring", plain_bars)
