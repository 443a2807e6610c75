"""help_agrees.py CINCH: fails unless `cinch help COMMAND` is `cinch COMMAND --help` for every command, in lines of at most 80 characters
where words allow it."""
import re
import subprocess
import sys

cinch = sys.argv[1]


def output_of(*words):
    return subprocess.run([cinch, *words], check=True, stdout=subprocess.PIPE, text=True).stdout


def check(path):
    text = output_of(*path, "--help")
    assert output_of("help", *path) == text, path
    for line in text.splitlines():
        # Options with all their words, examples and the line of the usage are not broken.
        assert len(line) <= 80 or re.match(r"  -|Example|Usage", line), line
    commands = re.findall(r"^  ([\w-]+) ", text.split("Subcommands:")[1], re.M) if "Subcommands:" in text else []
    return 1 + sum(check([*path, command]) for command in commands)


print(f"help agrees for {check([])} commands, no line is longer than 80 characters")
