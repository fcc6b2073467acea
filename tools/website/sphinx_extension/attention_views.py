"""Sphinx extension: pages with BertViz views get `views.js` and `views.css`, other pages do not.

The two add what BertViz leaves out: a legend, names and keys, room on a phone, and the colors of a dark page.
"""


def prepare_page(app, pagename, templatename, context, doctree):
    """Add the two files to a page that shows a view."""
    if "bertviz-" in context.get("body", ""):
        app.add_css_file("views.css")
        app.add_js_file("views.js", priority=400)  # before print.js, which finds views as BertViz draws them


def setup(app):
    """Register the extension with Sphinx."""
    app.connect("html-page-context", prepare_page, priority=500)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
