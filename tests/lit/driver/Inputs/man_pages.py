"""man_pages.py CINCH FOLDER: fails unless the folder has cinch.1 and a page for each command, with the options that --help shows."""
import os
import re
import subprocess
import sys

cinch, folder = sys.argv[1], sys.argv[2]


def help_of(*path):
    return subprocess.run([cinch, *path, "--help"], check=True, stdout=subprocess.PIPE, text=True).stdout


def commands_in(text):
    return re.findall(r"^  ([\w-]+) ", text.split("Subcommands:")[1], re.M) if "Subcommands:" in text else []


def check_options(page, *path):
    text = help_of(*path)
    for group in re.findall(r"^  ((?:-\w,)?--[\w-]+(?:,--[\w-]+)*)", text, re.M):
        for name in group.split(","):
            assert "\\fB" + name.replace("-", "\\-") + "\\fR" in page, (path, name)
    for command in commands_in(text):
        check_options(page, *path, command)


def page_of(name):
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        return file.read()


commands = commands_in(help_of())
assert set(os.listdir(folder)) == {"cinch.1", *(f"cinch-{command}.1" for command in commands)}
for command in commands:
    assert f"cinch\\-{command}" in page_of("cinch.1"), command
    check_options(page_of(f"cinch-{command}.1"), command)
for word in ("EXIT STATUS", "ENVIRONMENT", "NO_COLOR"):
    assert word in page_of("cinch.1"), word
print(len(commands), "pages have the options that --help shows")
