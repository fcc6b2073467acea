"""Sphinx extension: what a search engine, a shared link and a wrong address find.

Every page gets a description of its own, and there is a page for addresses that lead nowhere. Once the book
has an address (`html_baseurl`), pages also say where they are to be found, sphinxext-opengraph writes what a
link to them shows when it is shared, and sphinx-sitemap lists them.

Two others do not fit. The page of sphinx-notfound-page has its links from the root of one host, so neither a
folder nor a copy of the site elsewhere can show it. sphinx-last-updated-by-git asks git for the files that
Sphinx reads, and ours are written by the build.
"""

import html
import re
from pathlib import Path
from urllib.parse import urlsplit

from docutils import nodes

LONGEST = 200  # characters of a description; search engines show about 160
SENTENCE = re.compile(r"[.?!][\"'”’)]*(?=\s|$)")
PICTURE = "_static/social.png"
PICTURE_SHOWS = "lines join boxes, as attention joins tokens"
PICTURE_TAGS = (
    '<meta property="og:image:width" content="1200" />',
    '<meta property="og:image:height" content="630" />',
    '<meta name="twitter:card" content="summary_large_image" />',
)
NOT_PAGES = ("404", "genindex", "search")
OTHERS = {
    "404": "This address leads to no page of the book {name}.",
    "genindex": "The index of the book {name}.",
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
# Whoever opens the site itself is sent to the start page; whoever shares its address shares that page.
ABOUT = re.compile(
    r'<meta (?:name="(?:description|twitter:card)"|property="og:[\w:]+") .*/>|<link rel="canonical" .*/>'
)
INDEX = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
{tags}
<meta http-equiv="refresh" content="0; url={start}"></head>
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


def describe(app, pagename, templatename, context, doctree):
    """Put a description into the head of a page, and where sphinxext-opengraph takes it from."""
    name = context["book_name"] = app.config.html_title
    title = re.sub(r"<[^>]*>", "", html.unescape(context.get("title", "")))
    if title == name:
        context["docstitle"] = None  # or the start page would have the name twice in its title
    about = description(app, pagename, doctree, title)
    context["meta"] = {**(context.get("meta") or {}), "og:description": about}
    tag = f'<meta name="description" content="{html.escape(about)}" />'
    context["metatags"] = f"{tag}\n{context.get('metatags', '')}"


def place(app, pagename, templatename, context, doctree):
    """Say where a page is to be found, if it is one; the page for wrong addresses gets its text."""
    if pagename in NOT_PAGES:
        context["pageurl"] = None
    if pagename == "404":
        context["body"] = NOT_FOUND.format(
            search=context["pathto"]("search"), start=context["pathto"](app.config.root_doc)
        )
        if site := app.config.html_baseurl:
            context["metatags"] = BASE.format(root=f'"{urlsplit(site).path}"') + "\n" + context["metatags"]
        return "404.html"
    return None


def not_found(app):
    """The page for addresses that lead nowhere, which code hosts look for under this name."""
    yield "404", {"title": "Page not found", "body": ""}, "page.html"


def finish(app, exception):
    """Write what belongs to no page: where the site itself leads, and the picture of shared links."""
    if exception is not None or app.builder.format != "html" or app.builder.name == "epub":
        return
    folder, name, start = Path(app.outdir), app.config.html_title, f"{app.config.root_doc}.html"
    tags = "\n".join(ABOUT.findall((folder / start).read_text(encoding="utf-8")))
    (folder / "index.html").write_text(INDEX.format(title=name, tags=tags, start=start), encoding="utf-8")
    if app.config.html_baseurl:
        from social_picture import draw

        draw(folder / PICTURE, name)


def configure(app, config):
    """Let the theme find our templates, and tell the other extensions about the book."""
    config.templates_path.append(str(Path(__file__).parent / "templates"))
    if config.html_baseurl:
        config.sitemap_url_scheme = "{link}"
        config.sitemap_excludes = [f"{name}.html" for name in NOT_PAGES]
        config.ogp_site_url, config.ogp_site_name = config.html_baseurl, config.html_title
        config.ogp_image, config.ogp_image_alt = PICTURE, f"{config.html_title}: {PICTURE_SHOWS}"
        config.ogp_custom_meta_tags = PICTURE_TAGS


def setup(app):
    """Register the extension with Sphinx."""
    if app.config.html_baseurl:  # without an address, one of the two would warn and the other make one up
        app.setup_extension("sphinx_sitemap")
        app.setup_extension("sphinxext.opengraph")
    app.connect("config-inited", configure)
    app.connect("html-collect-pages", not_found)
    app.connect("html-page-context", describe, priority=400)  # before sphinxext-opengraph
    app.connect("html-page-context", place, priority=600)  # after the theme
    app.connect("build-finished", finish, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
