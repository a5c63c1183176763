"""The site: the pages of this repository as they stand, and the commands' help. scripts/make-docs.sh runs it."""

import json
import pathlib
import posixpath
import re

from docutils.nodes import SkipNode
from latex2mathml.converter import convert

project = "widelimit"
author = "The widelimit authors"
html_title = "widelimit"
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
root_doc = "index"
exclude_patterns = ["docs/site"]
html_theme = "furo"
html_math_renderer = "mathml"
html_copy_source = False
html_static_path = ["static"]
html_css_files = ["site.css"]
highlight_language = "none"
# Quotes of JSON in tables and text are to be pasted.
smartquotes = False
myst_heading_anchors = 4
myst_enable_extensions = ["dollarmath"]
myst_fence_as_directive = ["math"]
# Pages of the documentation repeat no level, but begin with what their reader looks for.
suppress_warnings = ["myst.header"]

# Files of the repository that are no pages: the site names them and does not link them.
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#:\s]+)(#[^)]*)?\)")
SPAN = re.compile(r"(?<!\[)`(docs/[\w/-]+\.md|data/README\.md|examples/README\.md)`(?!\])")


def target_of(page, path):
    """Where a link of a page leads, from the root."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), path))


def without_folders(page, found, pages):
    """A link to data/ or docs/experiments/ leads to its page if it has one, else it is only named."""
    image, text, path, anchor = found.group(1), found.group(2), found.group(3), found.group(4) or ""
    target = target_of(page, path)
    if image or target + "" in pages or posixpath.splitext(target)[0] in pages:
        return found.group(0)
    if target + "/README" in pages:
        return f"[{text}]({path.rstrip('/')}/README.md{anchor})"
    return text


def page_links(app, page, source):
    """Links of pages that are written for the repository's browser; `docs/NAME.md` in text becomes a link."""
    pages = app.env.found_docs
    folder = posixpath.dirname(page)

    def span(found):
        target = found.group(1)
        if posixpath.splitext(target)[0] not in pages:
            return found.group(0)
        return f"[`{target}`]({posixpath.relpath(target, folder or '.')})"

    parts = re.split(r"(^```.*?^```$)", source[0], flags=re.M | re.S)
    for i in range(0, len(parts), 2):
        lines = [line if line.startswith("    ") else SPAN.sub(span, LINK.sub(
            lambda found: without_folders(page, found, pages), line)) for line in parts[i].split("\n")]
        parts[i] = "\n".join(lines)
    source[0] = "".join(parts)


def mathml(display):
    """Equations as MathML, which browsers draw without scripts and without a network."""
    def visit(translator, node):
        translator.body.append(convert(node.astext(), display=display))
        raise SkipNode
    return visit, None


def page_texts(app, error):
    """The texts of all pages, for excerpts of the search where pages are read from files: these cannot fetch each other."""
    if error is None:
        texts = {page: re.sub(r"\s+", " ", app.env.get_doctree(page).astext()) for page in sorted(app.env.found_docs)}
        path = pathlib.Path(app.outdir) / "_static" / "page_texts.js"
        path.write_text(f"window.PAGE_TEXTS = {json.dumps(texts)};\n", encoding="utf-8")


def search_scripts(app, page, template, context, doctree):
    """The search alone reads them."""
    if page == "search":
        app.add_js_file("page_texts.js", priority=100)
        app.add_js_file("excerpts.js", priority=101)


def setup(app):
    app.add_html_math_renderer("mathml", mathml("inline"), mathml("block"))
    app.connect("source-read", page_links)
    app.connect("html-page-context", search_scripts)
    app.connect("build-finished", page_texts)
    return {"parallel_read_safe": True}
