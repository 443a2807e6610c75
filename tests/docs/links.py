"""links.py: every link of our Markdown files leads to a file that exists, and to a heading that it has (anchors as on the usual hosts of code)."""
import os
import re
import sys

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
SKIPPED = {"build", "dist", "shared", "node_modules"}
LINK = re.compile(r"\]\(([^()\s]*(?:\([^()\s]*\)[^()\s]*)*)\)")


def markdown_files(root):
    for folder, names, files in os.walk(root):
        names[:] = sorted(name for name in names if name not in SKIPPED and not name.startswith("."))
        yield from (os.path.join(folder, name) for name in sorted(files) if name.endswith(".md"))


def prose(text):
    """The text without code: blocks become empty lines."""
    text = re.sub(r"^```.*?^```", lambda block: "\n" * block.group(0).count("\n"), text, flags=re.M | re.S)
    return re.sub(r"`[^`\n]*`", "", text)


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


def complaints_of(root):
    out, known = [], {}
    for path in markdown_files(root):
        for number, line in enumerate(prose(read(path)).split("\n"), 1):
            for target in LINK.findall(line):
                if re.match(r"[a-z]+:", target):
                    continue
                name, _, anchor = target.partition("#")
                other = os.path.normpath(os.path.join(os.path.dirname(path), name)) if name else path
                where = f"{os.path.relpath(path, root)}:{number}: {target}: "
                if not os.path.exists(other):
                    out.append(where + "there is no such file")
                elif anchor and other.endswith(".md"):
                    if other not in known:
                        known[other] = anchors(read(other))
                    if anchor not in known[other]:
                        out.append(where + "there is no such heading")
    return out


def self_test():
    import tempfile

    with tempfile.TemporaryDirectory() as root:
        with open(os.path.join(root, "a.md"), "w", encoding="utf-8") as file:
            file.write("# A `b_c`, d\n\n[1](#a-b_c-d) [2](b.md) [3](#a) [4](a.md#nope)\n```\n[5](c.md)\n```\n[6](https://x.y) `[7](d.md)`\n")
        found = [line.split(": ", 1)[1] for line in complaints_of(root)]
    if found != ["b.md: there is no such file", "#a: there is no such heading", "a.md#nope: there is no such heading"]:
        sys.exit(f"the check of links does not find what it should: {found}")


def main():
    self_test()
    complaints = complaints_of(ROOT)
    for line in complaints:
        print(line)
    print(f"{len(complaints)} broken links in {len(list(markdown_files(ROOT)))} files")
    sys.exit(1 if complaints else 0)


if __name__ == "__main__":
    main()
