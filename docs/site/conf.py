"""How Sphinx makes a site of docs/ (./dev site). The pages are those that one reads in the repository; this file adds what a site needs beside
them: navigation, from the lists of links in some pages, and colours for Cinch programs."""
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
DOCS = os.path.dirname(HERE)
ROOT = os.path.dirname(DOCS)
sys.path.insert(0, HERE)

from cinch_lexer import CinchLexer  # noqa: E402
from sphinx.util import logging  # noqa: E402

project = html_title = "Cinch"
extensions = ["myst_parser"]
root_doc = "index"
exclude_patterns = ["site"]
nitpicky = True
myst_heading_anchors = 4
highlight_language = "none"

html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sourcelink = html_show_sphinx = html_show_copyright = False
pygments_style, pygments_dark_style = "friendly", "github-dark"

# Pages whose links into a folder are the order of the pages below them.
PAGES_BELOW = {"language": "language/", "architecture": "notes/"}
# Where files of the repository can be read that are no pages; without it, links to them are plain text.
SOURCES = os.environ.get("CINCH_SOURCES_URL", "").rstrip("/")

log = logging.getLogger(__name__)
LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s#]+)(#[^()\s]*)?\)")


def toctree(entries, caption=""):
    return ["", "```{toctree}", ":hidden:", *([f":caption: {caption}"] if caption else []), "", *entries, "```", ""]


def parts(text):
    """Navigation of the first page: a part for each heading, an entry for each link."""
    out = []
    for section in re.split(r"^## ", text, flags=re.M)[1:]:
        caption, _, body = section.partition("\n")
        out += toctree([f"{name} <{page[:-3]}>" for name, page in re.findall(r"^- \[(.*?)\]\((\S+\.md)\)", body, re.M)], caption)
    return out


def below(text, folder):
    """Navigation below a page: the pages of a folder, in the order of the lists, tables and paragraphs that begin with a link to them."""
    pages = re.findall(rf"^(?:- |\| )?\[[^\]]*\]\(({folder}\w+)\.md", text, re.M)
    return toctree(list(dict.fromkeys(pages)))


def without_sources(text, docname):
    """Links to files that are no pages become text, or links to SOURCES."""
    folder = os.path.dirname(os.path.join(DOCS, docname))

    def other(link):
        words, target = link.group(1), link.group(2)
        path = os.path.normpath(os.path.join(folder, target))
        if ":" in target or path.startswith(DOCS + os.sep):
            return link.group(0)
        if not os.path.exists(path):
            log.warning("%s: there is no %s", docname, target)
        return f"[{words}]({SOURCES}/{os.path.relpath(path, ROOT)})" if SOURCES else words

    outside = re.split(r"(^```.*?^```$)", text, flags=re.M | re.S)
    return "".join(part if part.startswith("```") else LINK.sub(other, part) for part in outside)


def read_page(_app, docname, source):
    text = without_sources(source[0], docname)
    if docname == root_doc:
        text += "\n".join(parts(source[0]))
    elif docname in PAGES_BELOW:
        text += "\n".join(below(source[0], PAGES_BELOW[docname]))
    source[0] = text


def setup(app):
    app.add_lexer("cinch", CinchLexer)
    app.connect("source-read", read_page)
