"""How the documentation is built."""

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

from confrere import __version__

project = "confrere"
author = "the confrere developers"
release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.doctest", "sphinx.ext.napoleon"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = f"confrere {__version__}"
html_math_renderer = "mathml"
exclude_patterns = ["_build"]
autodoc_member_order = "bysource"
autodoc_typehints = "none"
default_role = "code"


def plain_bars(app, what, name, obj, options, lines):
    """Keep |S_i| from being read as a substitution."""
    lines[:] = [line.replace("|", r"\|") if ">>>" not in line else line for line in lines]


def mathml(node, as_block):
    """A formula as MathML, which browsers show by themselves: no script, nothing from the network."""
    return tex2mathml(node.astext().replace(r"\dots", r"\ldots"), as_block)


def inline_formula(writer, node):
    """In a line of text."""
    writer.body.append(mathml(node, as_block=False))
    raise nodes.SkipNode


def formula_block(writer, node):
    """On lines of its own."""
    writer.body.append(f'<div class="math">{mathml(node, as_block=True)}</div>')
    raise nodes.SkipNode


def setup(app):
    """Connect what reads docstrings and what shows formulas."""
    app.connect("autodoc-process-docstring", plain_bars)
    app.add_html_math_renderer("mathml", (inline_formula, None), (formula_block, None))
