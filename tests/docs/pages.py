"""pages.py: every link of our Markdown files leads to a file that exists, and to a heading that it has (anchors as on the usual hosts of code). No
cell of a table has more than 40 words."""
import os
import re
import sys

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
CELL_WORDS = 40
SKIPPED = {"build", "dist", "shared", "node_modules"}
LINK = re.compile(r"\]\(([^()\s]*(?:\([^()\s]*\)[^()\s]*)*)\)")


def markdown_files(root):
    for folder, names, files in os.walk(root):
        names[:] = sorted(name for name in names if name not in SKIPPED and not name.startswith("."))
        yield from (os.path.join(folder, name) for name in sorted(files) if name.endswith(".md"))


def anchors(text):
    seen, out = {}, set()
    text = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    for heading in re.findall(r"^#+ (.*)$", text, re.M):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", words.strip().lower()).replace(" ", "-")
        out.add(f"{slug}-{seen[slug]}" if slug in seen else slug)
        seen[slug] = seen.get(slug, 0) + 1
    return out


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def without_blocks(text):
    """The text with empty lines for blocks of code."""
    return re.sub(r"^```.*?^```", lambda block: "\n" * block.group(0).count("\n"), text, flags=re.M | re.S)


def long_cells(root):
    for path in markdown_files(root):
        for number, line in enumerate(without_blocks(read(path)).split("\n"), 1):
            for cell in re.split(r"(?<!\\)\|", line) if line.startswith("|") else ():
                if len(cell.split()) > CELL_WORDS:
                    yield f"{os.path.relpath(path, root)}:{number}: a cell of {len(cell.split())} words, at most {CELL_WORDS}: {cell.strip()[:60]}…"


def broken_links(root):
    known = {}
    for path in markdown_files(root):
        for number, line in enumerate(re.sub(r"`[^`\n]*`", "", without_blocks(read(path))).split("\n"), 1):
            for target in LINK.findall(line):
                if re.match(r"[a-z]+:", target):
                    continue
                name, _, anchor = target.partition("#")
                other = os.path.normpath(os.path.join(os.path.dirname(path), name)) if name else path
                where = f"{os.path.relpath(path, root)}:{number}: {target}: "
                if not os.path.exists(other):
                    yield where + "there is no such file"
                elif anchor and other.endswith(".md"):
                    if other not in known:
                        known[other] = anchors(read(other))
                    if anchor not in known[other]:
                        yield where + "there is no such heading"


def complaints_of(root):
    return [*broken_links(root), *long_cells(root)]


def self_test():
    import tempfile

    with tempfile.TemporaryDirectory() as root:
        with open(os.path.join(root, "a.md"), "w", encoding="utf-8") as file:
            file.write("# A `b_c`, d\n\n[1](#a-b_c-d) [2](b.md) [3](#a) [4](a.md#nope)\n```\n[5](c.md)\n```\n[6](https://x.y) `[7](d.md)`\n| " + "word " * 40 + "| " + "word " * 41 + "|\n")
        found = [line.split(": ", 1)[1][:24] for line in complaints_of(root)]
    if found != ["b.md: there is no such f", "#a: there is no such hea", "a.md#nope: there is no s", "a cell of 41 words, at m"]:
        sys.exit(f"the checks do not find what they should: {found}")


def main():
    self_test()
    complaints = complaints_of(ROOT)
    for line in complaints:
        print(line)
    print(f"{len(complaints)} broken links and long cells in {len(list(markdown_files(ROOT)))} files")
    sys.exit(1 if complaints else 0)


if __name__ == "__main__":
    main()
