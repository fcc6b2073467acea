"""Sphinx extension: a page with a small machine gets its scripts, and no other page does.

A machine has its place in a Markdown cell: `<div class="machine" data-machine="softmax" data-start='...'>`,
with words in it for readers without JavaScript, in Colab and on paper. `data-start` has the numbers to start
with.
"""

import re

PLACE = re.compile(r'<div class="machine" data-machine="([a-z]+)"')


def prepare_page(app, pagename, templatename, context, doctree):
    """Add the style and the scripts of the machines on a page to its head."""
    names = dict.fromkeys(PLACE.findall(context.get("body", "")))  # each once, in order
    if not names:
        return
    pathto = context["pathto"]
    files = [pathto(f"_static/machines/{name}.js", 1) for name in ("machine", *names)]
    tags = "".join(f'<script src="{file}" defer></script>\n' for file in files)
    style = f'<link rel="stylesheet" href="{pathto("_static/machines/machines.css", 1)}">\n'
    context["metatags"] = context.get("metatags", "") + style + tags


def setup(app):
    """Register the extension with Sphinx."""
    app.connect("html-page-context", prepare_page)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
