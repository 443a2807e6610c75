"""build_site.py FOLDER: builds the site of docs/ in FOLDER, strictly, and follows every link of its pages. Ends with 77 where Sphinx is not installed."""
import importlib.util
import os
import subprocess
import sys
import tempfile
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
DOCS = os.path.join(ROOT, "docs")
NEEDED = ("sphinx", "myst_parser", "furo")


def build(docs, out):
    """What Sphinx says; nothing where all is well."""
    with tempfile.TemporaryDirectory() as trees:
        done = subprocess.run([sys.executable, "-m", "sphinx", "-q", "-E", "-W", "--keep-going", "-c", os.path.join(DOCS, "site"), "-d", trees, docs, out],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.stdout + (f"Sphinx ended with {done.returncode}\n" if done.returncode and not done.stdout else "")


class Page(HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.links, self.ids = [], set()
        with open(path, encoding="utf-8") as file:
            self.feed(file.read())

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name == "id":
                self.ids.add(value)
            elif name in ("href", "src") and value:
                self.links.append(value)


def pages_of(site):
    paths = [os.path.join(folder, name) for folder, _, names in os.walk(site) for name in names if name.endswith(".html")]
    return {path: Page(path) for path in paths}


def broken_links(site):
    pages = pages_of(site)
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or not (parts.path or parts.fragment):
                continue
            other = os.path.normpath(os.path.join(os.path.dirname(path), unquote(parts.path))) if parts.path else path
            if not os.path.exists(other):
                yield f"{os.path.relpath(path, site)}: {link}: there is no such file"
            elif parts.fragment and other in pages and unquote(parts.fragment) not in pages[other].ids:
                yield f"{os.path.relpath(path, site)}: {link}: there is nothing with this id"


def is_broken_found():
    """Whether a link to nothing, and a page that no list leads to, are found."""
    with tempfile.TemporaryDirectory() as docs:
        for name, text in (("index", "# A\n\n## B\n\n- [C](c.md): [d](d.md), [e](#nope), [f](../nothing)\n"), ("c", "# C\n"), ("lost", "# Lost\n")):
            with open(os.path.join(docs, name + ".md"), "w", encoding="utf-8") as file:
                file.write(text)
        said = build(docs, os.path.join(docs, "out"))
    return all(words in said for words in ("'d.md'", "'nope'", "lost.md"))


def complaints_of(site):
    found = [line for line in build(DOCS, site).split("\n") if line] + list(broken_links(site))
    text = {name: open(os.path.join(site, name), encoding="utf-8").read() for name in ("index.html", "language.html", "searchindex.js")}
    for name, words, what in (("index.html", 'href="language/arrays.html"', "no navigation to the pages of the language"),
                              ("index.html", "theme-toggle", "no switch between light and dark"),
                              ("language.html", '<span class="k">compressor</span>', "no colours in programs"),
                              ("searchindex.js", "orthonormalize", "operators are not found by a search")):
        if words not in text[name]:
            found.append(f"{name}: {what}")
    return found


def main():
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        print(f"skipped: not installed: {' '.join(missing)}")
        sys.exit(77)
    if not is_broken_found():
        sys.exit("broken links in a site were not found")
    complaints = complaints_of(sys.argv[1])
    for line in complaints:
        print(line)
    print(f"site: {len(pages_of(sys.argv[1]))} pages, {len(complaints)} complaints")
    sys.exit(1 if complaints else 0)


if __name__ == "__main__":
    main()
