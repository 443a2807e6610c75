"""every_command.py CINCH OPTION…: fails unless the help of every command that has no sub-commands shows these options."""
import re
import subprocess
import sys

cinch, options = sys.argv[1], sys.argv[2:]


def count(path):
    text = subprocess.run([cinch, *path, "--help"], check=True, stdout=subprocess.PIPE, text=True).stdout
    if "Subcommands:" in text:
        return sum(count([*path, command]) for command in re.findall(r"^  ([\w-]+) ", text.split("Subcommands:")[1], re.M))
    missing = [option for option in options if not re.search(rf"^  (?:-\w,)?{option}\b", text, re.M)]
    assert not missing, (path, missing)
    return 1


print(count([]), "commands have", *options)
