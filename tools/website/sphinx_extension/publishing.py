"""Sphinx extension: what a search engine, a shared link and a wrong address find.

Every page gets a description of its own, and there is a page for addresses that lead nowhere. Once the book
has an address (`html_baseurl`), pages also say where they are to be found and what a link to them shows when
it is shared, and a sitemap lists them.
"""

import html
import re
from pathlib import Path
from urllib.parse import urlsplit

from docutils import nodes

LONGEST = 200  # characters of a description; search engines show about 160
SENTENCE = re.compile(r"[.?!][\"'”’)]*(?=\s|$)")
PICTURE = "_static/social.png"
NOT_PAGES = ("404", "genindex", "search")
OTHERS = {
    "404": "This address leads to no page of the book {name}.",
    "search": "Find a term in all chapters of the book {name}.",
}
NOT_FOUND = """<section id="page-not-found"><h1>There is no such page</h1>
<p>The address may have a typing error, or the page has moved. All pages are in the menu, and
<a href="{search}">search</a> finds terms in them. The book begins on its
<a href="{start}">start page</a>.</p></section>"""
# The page for wrong addresses is shown at any depth, so its links have to know where the site begins. A copy
# of the site elsewhere, or in a folder, begins somewhere else, and there the page is found in its own place.
BASE = """<script>{{ const root = {root};
if (location.protocol.startsWith("http") && location.pathname.startsWith(root)) {{
  document.write(`<base href="${{root}}">`); }} }}</script>"""
# Whoever opens the site itself, or shares its address, is sent to the start page.
INDEX = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
{tags}<meta http-equiv="refresh" content="0; url={start}"></head>
<body><p>The book begins on its <a href="{start}">start page</a>.</p></body></html>
"""


def first_paragraph(doctree: nodes.document) -> str:
    """The first paragraph of a page that says something: not one that is a link and nothing else."""
    for paragraph in doctree.findall(nodes.paragraph):
        inside = [child for child in paragraph.children if child.astext().strip()]
        if inside and not (len(inside) == 1 and isinstance(inside[0], nodes.reference)):
            return " ".join(paragraph.astext().split())
    return ""


def shortened(text: str) -> str:
    """As many whole sentences as a description has room for; of a longer first one, its first words."""
    if len(text) <= LONGEST:
        return text
    ends = [sentence.end() for sentence in SENTENCE.finditer(text) if sentence.end() <= LONGEST]
    return text[: ends[-1]] if ends else text[: LONGEST - 1].rsplit(" ", 1)[0].rstrip(",;:") + "…"


def description(app, pagename: str, doctree: nodes.document | None, title: str) -> str:
    """What a page is about: the field `description` of its metadata, else the start of its text."""
    name = app.config.html_title
    if doctree is not None:
        about = app.env.metadata[pagename].get("description") or shortened(first_paragraph(doctree))
        if about:
            return about
    return OTHERS.get(pagename, "{title}, a page of the book {name}.").format(name=name, title=title)


def tags(title: str, about: str, name: str, site: str, url: str | None) -> str:
    """The tags of a page's head: its description and, if it has an address, what a shared link shows.

    Args:
        title: of the page.
        about: its description.
        name: of the book.
        site: the address at which the site begins, with a slash at its end, or nothing.
        url: the page's own address, or None.
    """
    found = [("name", "description", about)]
    if site and url:
        found += [
            ("property", "og:type", "website"),
            ("property", "og:site_name", name),
            ("property", "og:title", title),
            ("property", "og:description", about),
            ("property", "og:url", url),
            ("property", "og:image", site + PICTURE),
            ("property", "og:image:width", "1200"),
            ("property", "og:image:height", "630"),
            ("property", "og:image:alt", f"{name}: lines join boxes, as attention joins tokens"),
            ("name", "twitter:card", "summary_large_image"),
        ]
    lines = [f'<meta {kind}="{key}" content="{html.escape(value)}" />' for kind, key, value in found]
    return "\n".join(lines) + "\n"


def prepare_page(app, pagename, templatename, context, doctree):
    """Put a description, and what a shared link shows, into the head of a page."""
    name, site = app.config.html_title, app.config.html_baseurl
    title = re.sub(r"<[^>]*>", "", html.unescape(context.get("title", "")))
    if title == name:
        context["docstitle"] = None  # or the start page would have the name twice in its title
    about = description(app, pagename, doctree, title)
    url = None if pagename in NOT_PAGES else context.get("pageurl")
    context["pageurl"], context["book_name"] = url, name
    context["metatags"] = context.get("metatags", "") + tags(title, about, name, site, url)
    if pagename == "404":
        context["body"] = NOT_FOUND.format(
            search=context["pathto"]("search"), start=context["pathto"](app.config.root_doc)
        )
        if site:
            root = urlsplit(site).path
            context["metatags"] = BASE.format(root=f'"{root}"') + "\n" + context["metatags"]
        return "404.html"
    return None


def not_found(app):
    """The page for addresses that lead nowhere, which code hosts look for under this name."""
    yield "404", {"title": "Page not found", "body": ""}, "page.html"


def finish(app, exception):
    """Write what belongs to no page: where the site itself leads, a sitemap, and the social picture."""
    if exception is not None or app.builder.format != "html" or app.builder.name == "epub":
        return
    folder, name, site = Path(app.outdir), app.config.html_title, app.config.html_baseurl
    start = f"{app.config.root_doc}.html"
    about = description(app, app.config.root_doc, app.env.get_doctree(app.config.root_doc), name)
    head = tags(name, about, name, site, site)
    if site:
        head += f'<link rel="canonical" href="{site}{start}" />\n'
    (folder / "index.html").write_text(INDEX.format(title=name, tags=head, start=start), encoding="utf-8")
    if site:
        from social_picture import draw

        draw(folder / PICTURE, name)
        pages = sorted(app.env.found_docs)
        (folder / "sitemap.xml").write_text(sitemap(site, pages), encoding="utf-8")


def sitemap(site: str, pages: list[str]) -> str:
    """A list of all pages, as https://www.sitemaps.org/protocol.html wants it."""
    rows = "".join(f"<url><loc>{html.escape(f'{site}{page}.html')}</loc></url>\n" for page in pages)
    head = '<?xml version="1.0" encoding="utf-8"?>\n'
    return f'{head}<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{rows}</urlset>\n'


def find_templates(app, config):
    """Let the theme find our templates: the book's name in the header, and the page for wrong addresses."""
    config.templates_path.append(str(Path(__file__).parent / "templates"))


def setup(app):
    """Register the extension with Sphinx."""
    app.connect("config-inited", find_templates)
    app.connect("html-collect-pages", not_found)
    app.connect("html-page-context", prepare_page, priority=600)
    app.connect("build-finished", finish, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
