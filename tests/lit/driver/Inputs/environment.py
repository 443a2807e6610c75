"""environment.py CINCH ROOT: the pages of `cinch help environment` and `cinch help exit-codes` beside the sources and docs/command_line.md."""
import os
import re
import subprocess
import sys

cinch, root = sys.argv[1], os.path.abspath(sys.argv[2])
# Words in capitals in files that read the environment, and not read by them: what is set for mpirun, and the name of a library.
NOT_READ = {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "UCX"}
# std::filesystem reads it.
BY_THE_LIBRARY = {"TMPDIR"}


def page(topic):
    """(name, text) of each entry."""
    text = subprocess.run([cinch, "help", topic], check=True, stdout=subprocess.PIPE, text=True).stdout
    entries = re.split(r"\n(?=\S)", text.split("\n\n", 1)[1])
    return [tuple(re.split(r"\s{2,}", " ".join(entry.split("\n")), maxsplit=1)) for entry in entries]


def plain(text):
    return re.sub(r"\s+", " ", text.replace("`", "").replace("\\", "")).strip()


def sources():
    for folder in ("runtime", "compiler", "codegen", "dsl"):
        for place, _, files in os.walk(os.path.join(root, folder)):
            for name in files:
                if name.endswith((".cpp", ".h", ".py")):
                    with open(os.path.join(place, name), encoding="utf-8") as file:
                        yield os.path.join(place, name), file.read()


def variables_in_sources():
    found = set()
    for path, text in sources():
        if "compiler/driver/arguments/environment" in path:
            continue
        names = set(re.findall(r'library_paths\([^)]*"([A-Z_]+)"', text)) | set(re.findall(r'LibraryQuery [^;]*"(CINCH_[A-Z_]+)"', text))
        names |= set(re.findall(r'= "(CINCH_LAUNCHED)"', text))
        if re.search(r"getenv|\benvironment_variable\(|user_folder\(|os\.environ", text):
            names |= set(re.findall(r'"([A-Z][A-Z0-9_]{2,})"', text))
        if path.endswith("ucx_module.cpp"):  # settings of UCX by parts of their names
            names = {"UCX_*"}
        names = {"UCX_*" if name.startswith("UCX_") else name for name in names}
        found |= names
    return found - NOT_READ | BY_THE_LIBRARY


def rows_of_docs():
    with open(os.path.join(root, "docs", "command_line.md"), encoding="utf-8") as file:
        return {plain(row) for row in file if row.startswith("|")}


entries = page("environment")
names = [name for name, _ in entries]
assert len(set(names)) == len(names), names
assert set(names) == variables_in_sources(), set(names) ^ variables_in_sources()
rows = rows_of_docs()
codes = page("exit-codes")
for name, text in entries:
    assert plain(f"| {name} | {text} |") in rows, (name, text)
for name, text in codes:
    assert plain(f"| {name.replace(' ', ' | ')} | {text} |") in rows, (name, text)
print(len(entries), "variables and", len(codes), "exit codes agree")
