# SPDX-License-Identifier: Apache-2.0
"""conf.py - Sphinx's settings, and links of names in `backquotes` to the reference."""
import json
import os

from docutils import nodes

project = "Tenrec"
release = os.environ["TENREC_VERSION"]
author = "the authors of Tenrec"
copyright = "the authors of Tenrec, Apache-2.0"  # pylint: disable=redefined-builtin
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
root_doc = "index"
smartquotes = False
myst_heading_anchors = 4
nitpicky = True
html_theme = "theme"
html_theme_path = [os.environ["TENREC_SITE"]]
html_title = "Tenrec"
html_show_sourcelink = False
html_copy_source = False
html_use_index = False


def made(name):
    """What docs/site/build.py has left beside this file."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), name), encoding="utf-8") as f:
        return json.load(f)


SYMBOLS = made("symbols.json")
# Sphinx's own toctree() copies the contents of all pages for each page.
html_context = made("navigation.json")


def anchor(words):
    """The anchor of a name that a page has in backquotes, or None."""
    kinds = ("function", "value", "macro", "type", "variable", "opaque")
    name = words
    for prefix in "struct ", "enum ", "union ":
        if words.startswith(prefix):
            kinds, name = ("type", "opaque"), words.removeprefix(prefix)
    name = name.split("(")[0].rstrip(" *")
    return next((SYMBOLS[kind][name] for kind in kinds if name in SYMBOLS.get(kind, {})), None)


def link_names(app, doctree, docname):
    """Functions, types and statuses in backquotes lead to their place in the reference."""
    labels = app.env.get_domain("std").anonlabels
    for literal in list(doctree.findall(nodes.literal)):
        words = literal.astext()
        if isinstance(literal.parent, (nodes.title, nodes.reference)):
            continue
        status = words.removeprefix("TENREC_")
        if status in SYMBOLS["status"] and docname != "errors":
            target = app.builder.get_relative_uri(docname, "errors") + "#" + status.lower()
        elif words in SYMBOLS["pages"]:
            target = app.builder.get_relative_uri(docname, SYMBOLS["pages"][words])
        elif anchor(words) in labels:
            page, place = labels[anchor(words)]
            target = ("" if page == docname else app.builder.get_relative_uri(docname, page)) + "#" + place
        else:
            continue
        reference = nodes.reference("", "", refuri=target, internal=True)
        literal.replace_self(reference)
        reference += literal


def setup(app):
    app.connect("doctree-resolved", link_names)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
