"""Does every step of the documents as a reader would: run.py BUILD_FOLDER [FILE.md…]; default the tutorial, command_line, the language
reference, adding_a_compressor, adding_a_target, python and jax.

In a document, a block with file=NAME (```cinch file=NAME) is written to NAME; in a block ```console each line `$ COMMAND` is run by bash in the same
folder, and the lines below it must be its output (`...` stands for anything, within a line or for any number of lines). Other blocks of
```cinch must be programs that `cinch check` accepts. In a block ```cinch values each line `EXPRESSION // RESULT` must hold (values.py)."""
import glob
import os
import re
import subprocess
import sys
import tempfile

from values import Wrong, check_values

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))


def blocks(text):
    """(info string, body, line number) of every fenced block."""
    out, lines, i = [], text.split("\n"), 0
    while i < len(lines):
        if lines[i].startswith("```") and len(lines[i]) > 3:
            start = i + 1
            end = next(j for j in range(start, len(lines)) if lines[j].startswith("```"))
            out.append((lines[i][3:].strip(), lines[start:end], start + 1))
            i = end
        i += 1
    return out


def commands(body, line):
    """(command, expected lines, line number) of a console block."""
    out = []
    for offset, text in enumerate(body):
        if text.startswith("$ "):
            out.append((text[2:], [], line + offset))
        elif out:
            out[-1][1].append(text.rstrip())
    return out


def pattern(expected):
    parts = []
    for text in expected:
        if text.strip() == "...":
            parts.append("(?:.*\n)*?")
        else:
            spaced = re.sub(r"\\ (?:\\ )+", r"\\ +", ".*".join(re.escape(p) for p in text.split("...")))
            parts.append(spaced + "[ ]*\n")
    return re.compile("".join(parts))


def environment(build):
    """The command, and a Python that has NumPy and the package as a wheel has it."""
    venv = os.environ.get("VIRTUAL_ENV")
    folders = [os.path.join(build, "bin"), *([os.path.join(venv, "bin")] if venv else []), os.environ["PATH"]]
    return dict(os.environ, PATH=os.pathsep.join(folders), NO_COLOR="1", CINCH_REPO=ROOT, PYTHONPATH=os.path.join(ROOT, "runtime", "python"),
                CINCH_LIBRARY=os.path.join(build, "lib", "libcinch.so"))


def wrong_commands(body, line, where, folder, env):
    """How many commands of a console block print something else than the document says."""
    wrong = 0
    for command, expected, at in commands(body, line):
        done = subprocess.run(["bash", "-c", command], cwd=folder, env=env, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        output = "".join(l.rstrip() + "\n" for l in done.stdout.splitlines())
        if not pattern(expected).fullmatch(output):
            wrong += 1
            print(f"{where}:{at}: `{command}` (exit {done.returncode}) printed\n{output}instead of\n" + "\n".join(expected) + "\n")
    return wrong


def is_program(body, line, where, folder, env):
    """Whether `cinch check` accepts a block without a word."""
    with open(os.path.join(folder, "block.cinch"), "w", encoding="utf-8") as file:
        file.write("\n".join(body) + "\n")
    done = subprocess.run(["cinch", "check", "block.cinch"], cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0 or done.stdout:
        print(f"{where}:{line}: this is no program that `cinch check` accepts\n{done.stdout}")
    return done.returncode == 0 and not done.stdout


def do_values_hold(body, line, where, words, build):
    ranks = next((int(word[6:]) for word in words if word.startswith("ranks=")), 1)
    try:
        return check_values(os.path.join(build, "bin", "cinch"), body, line, ranks) > 0
    except Wrong as error:
        print(f"{where}:{line}: {error}")
        return False


def run_document(path, build):
    failures = count = 0
    with open(path, encoding="utf-8") as file:
        text = file.read()
    env, where = environment(build), os.path.relpath(path, ROOT)
    with tempfile.TemporaryDirectory() as folder:
        for info, body, line in blocks(text):
            words = info.split()
            name = next((w[5:] for w in words if w.startswith("file=")), None)
            if name:
                with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                    file.write("\n".join(body) + "\n")
            elif words[0] == "console":
                count += len(commands(body, line))
                failures += wrong_commands(body, line, where, folder, env)
            elif words[:2] == ["cinch", "values"]:
                count += 1
                failures += not do_values_hold(body, line, where, words, build)
            elif words[0] == "cinch":
                count += 1
                failures += not is_program(body, line, where, folder, env)
    print(f"{where}: {count} steps, {failures} wrong")
    return failures + (count == 0)


def default_documents(build):
    names = ["tutorial", "command_line", "adding_a_compressor", "adding_a_target"]
    for name, module in (("python", "numpy"), ("jax", "jax")):
        if subprocess.run(["python3", "-c", f"import {module}"], env=environment(build), stderr=subprocess.DEVNULL).returncode == 0:
            names.append(name)
        else:
            print(f"{module} is not installed: docs/{name}.md is left out")
    pages = sorted(glob.glob(os.path.join(ROOT, "docs", "language", "*.md")))
    language = [os.path.join(ROOT, "docs", "language.md"), *(page for page in pages if not page.endswith("grammar.md"))]
    return [os.path.join(ROOT, "docs", name + ".md") for name in names] + language


def main():
    build = os.path.abspath(sys.argv[1])
    files = sys.argv[2:] or default_documents(build)
    sys.exit(1 if sum(run_document(f, build) for f in files) else 0)


if __name__ == "__main__":
    main()
