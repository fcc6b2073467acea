"""Sphinx extension: under each section of a chapter, a link that opens a report about it.

Only once the repository has an address (`feedback_address`, which tools/website/render.py sets). The link
leads to a new issue, with the title of the section and its address filled in.
"""

from html import escape
from urllib.parse import urlencode

from docutils import nodes
from reading import chapter
from sphinx.transforms import SphinxTransform

WORDS = "Something unclear or wrong here? Tell us."


class LinkReports(SphinxTransform):
    """End every section of the second level of a chapter with such a link."""

    default_priority = 890  # after the sections have their names

    def apply(self, **_):
        """Add the links of one page."""
        number = chapter(self.document)
        if number is None or not self.config.feedback_address:
            return
        page = f"{self.config.html_baseurl}{self.env.docname}.html"
        for section in self.document.findall(nodes.section):
            if isinstance(section.parent, nodes.section) and isinstance(
                section.parent.parent, nodes.document
            ):
                section += _link(self.config.feedback_address, number, section, page)


def _link(address: str, number: int, section: nodes.section, page: str) -> nodes.raw:
    title = section.next_node(nodes.title).astext()
    about = {
        "title": f"Chapter {number:02}, {title}: ",
        "body": f"{page}#{section['ids'][0]}\n\nWhat is unclear or wrong, and what did you expect?\n",
    }
    link = f'<a href="{escape(address)}?{escape(urlencode(about))}">{WORDS}</a>'
    return nodes.raw("", f'<p class="feedback">{link}</p>', format="html")


def setup(app):
    """Register the extension with Sphinx."""
    app.add_config_value("feedback_address", "", "env")
    app.add_transform(LinkReports)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
