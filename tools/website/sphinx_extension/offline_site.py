"""Sphinx extension: every page of the site works without any other host.

Two things would ask other hosts for JavaScript. require.js, which BertViz and myst-nb want, is replaced by a
few lines of our own (`bertviz_offline.js`), and d3 and jQuery come from the site itself, on pages with such a
view. A table of a notebook with the class `sortable` gets DataTables, from the site too, which lets readers
sort and filter it. Formulas are typeset after the rendering, by tools/website/formulas.py.
"""

import re
from pathlib import Path

BERTVIZ = re.compile(r"id=['\"]?bertviz-")
FOREIGN_SCRIPT = re.compile(r"<script[^>]*\ssrc=['\"]https?://[^>]*></script>")
# When a neuron view opens, it looks for its own picture without saying in which view; on a page with several
# it would find that of the first, and stay empty itself until the mouse moves.
ANY_VIEW, OWN_VIEW = 'd3.select("#vis")', "d3.select(`#${config.rootDivId} #vis`)"
EMPTY_OUTPUT = re.compile(r'<div class="output text_html">\s*</div>')
SORTABLE = re.compile(r'<table[^>]*class="[^"]*\bsortable\b')
# All rows on one page; the order is that of the notebook until somebody sorts. DataTables writes into the
# event of a click what the copy buttons of the code then take for theirs: so it ends at the table's head.
SORT = """document.addEventListener("DOMContentLoaded", () => {
  new DataTable("table.sortable", {
    paging: false, info: false, order: [], autoWidth: false, layout: { topStart: "search", topEnd: null },
    language: { search: "Filter the rows:" } });
  document.querySelectorAll("table.sortable thead").forEach((head) =>
    head.addEventListener("click", (event) => event.stopPropagation()));
});"""
STATIC = ("d3.min.js", "jquery.min.js")


def prepare_page(app, pagename, templatename, context, doctree):
    """Take scripts of other hosts out of a page, and give a page with BertViz views what they need."""
    body = context.get("body", "")
    context["script_files"] = [s for s in context.get("script_files", []) if "://" not in str(_source(s))]
    pathto = context["pathto"]
    if SORTABLE.search(body):
        source = pathto("_static/vendor/dataTables.min.js", 1)
        body = f'{body}<script src="{source}"></script><script>{SORT}</script>'
        context["body"] = body
    if not BERTVIZ.search(body):
        return
    body = EMPTY_OUTPUT.sub("", FOREIGN_SCRIPT.sub("", body)).replace(ANY_VIEW, OWN_VIEW)
    scripts = [pathto(f"_static/vendor/{name}", 1) for name in STATIC]
    shim = (Path(__file__).parent / "bertviz_offline.js").read_text(encoding="utf-8")
    tags = "".join(f'<script src="{source}"></script>' for source in scripts)
    context["body"] = f"{tags}<script>{shim}</script>{body}"


def _source(script) -> str:
    return getattr(script, "filename", script) or ""


def setup(app):
    """Register the extension with Sphinx."""
    app.connect("html-page-context", prepare_page, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
