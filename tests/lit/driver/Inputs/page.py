"""What tests ask of a page: every tag is closed, and nothing is fetched from elsewhere."""
import re
from html.parser import HTMLParser

VOID = {"meta"}


class Page(HTMLParser):
    """`shapes`: attributes of all elements by tag, in order; `text`: all text outside of styles."""

    def __init__(self, source):
        super().__init__()
        self.open, self.shapes, self.text = [], {}, ""
        assert source.startswith("<!doctype html>"), source[:40]
        for word in ("http:", "https:", "@import", "url(", "<script"):
            assert word not in source, word
        self.feed(source)
        self.close()
        assert self.open == [], self.open

    def handle_starttag(self, tag, attributes):
        self.handle_startendtag(tag, attributes)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        names = [name for name, _ in attributes]
        assert len(set(names)) == len(names), (tag, names)
        assert not {"src", "href", "xlink:href", "srcset", "onclick", "onload"} & set(names), (tag, names)
        self.shapes.setdefault(tag, []).append(dict(attributes))

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, (tag, self.open, self.getpos())
        self.open.pop()

    def handle_data(self, data):
        if "style" not in self.open:
            self.text += data

    def with_attribute(self, name):
        return [attributes for shapes in self.shapes.values() for attributes in shapes if name in attributes]


def read_page(path):
    with open(path, encoding="utf-8") as file:
        source = file.read()
    page = Page(source)
    assert "prefers-color-scheme:dark" in source
    numbers = re.findall(r' (?:x|y|width|height|cx|cy)="([^"]*)"', source)
    assert all(float(number) >= -20 for number in numbers if number), "a number of a shape"
    assert "nan" not in " ".join(numbers), "a shape at no place"
    return page
