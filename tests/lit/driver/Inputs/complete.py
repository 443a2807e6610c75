"""complete.py SHELL CINCH LINE…: what the shell makes of each line and a tab, typed on a terminal; `got:` and the words of the command.

complete.py words CINCH LINE…: what bash offers for each line, without a terminal. complete.py agrees CINCH: fails unless, for every
command, what is offered for `-` is what --help shows."""
import os
import pty
import re
import shlex
import subprocess
import sys

FUNCTION = 'cinch() { printf "got:"; printf " %s" "$@"; echo; }\n'
SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], 'source <("$CINCH" completion bash)\n' + FUNCTION),
    "zsh": (["zsh", "-f", "-i"], 'autoload -Uz compinit; compinit -u -D; source <("$CINCH" completion zsh)\n' + FUNCTION),
}


def typed(shell, cinch, line):
    """The line that the command was given, or what the shell printed where it was never run."""
    command, setup = SHELLS[shell]
    child, terminal = pty.fork()
    if child == 0:
        os.execvpe(command[0], command, dict(os.environ, CINCH=cinch, TERM="dumb", HOME="/nonexistent"))
    os.write(terminal, (setup + line + "\t\nexit\n").encode())
    shown = b""
    while True:
        try:
            part = os.read(terminal, 4096)
        except OSError:  # the shell has ended
            break
        if not part:
            break
        shown += part
    os.waitpid(child, 0)
    found = re.findall(r"^got:.*", shown.decode(errors="replace").replace("\r", "\n"), re.M)
    return found[-1].rstrip() if found else "never run: " + repr(shown)


def offered_by_bash(cinch, lines):
    """What is offered for each line; one shell for all, since reading what completes takes it a while."""
    script = 'source <("$1" completion bash)\n'
    for line in lines:
        words = [word for part in re.split(r"\s+", line) for word in (re.split("(=)", part) if "=" in part else [part])]
        if words[-1] == "" and words[-2:-1] == ["="]:
            words.pop()
        script += "COMP_WORDS=(%s); COMP_CWORD=%d; COMPREPLY=(); _cinch\n" % (" ".join(map(shlex.quote, words)), len(words) - 1)
        script += 'printf "%s\\n" "${COMPREPLY[@]}" --end--\n'
    done = subprocess.run(["bash", "-c", script, "bash", cinch], check=True, stdout=subprocess.PIPE, text=True)
    return [[word for word in part.split("\n") if word] for part in done.stdout.split("--end--\n")[:-1]]


def offered_by_fish(cinch, line):
    script = "source (%s completion fish | psub); complete -C '%s'" % (cinch, line)
    done = subprocess.run(["fish", "--no-config", "-c", script], check=True, stdout=subprocess.PIPE, text=True)
    return [row.split("\t")[0] for row in done.stdout.split("\n")[:-1]]


def shown_by_help(cinch, path):
    done = subprocess.run([cinch] + path + ["--help"], check=True, stdout=subprocess.PIPE, text=True)
    options = re.findall(r"^  ((?:-\w,)?--[\w-]+(?:,--[\w-]+)*)", done.stdout, re.M)
    commands = re.findall(r"^  ([\w-]+) ", done.stdout.split("Subcommands:")[1], re.M) if "Subcommands:" in done.stdout else []
    return sorted(name for group in options for name in group.split(",")), commands


def check_agreement(cinch):
    shown, paths = {}, [[]]
    for path in paths:  # grows by the commands of each
        options, commands = shown_by_help(cinch, path)
        line = " ".join(["cinch"] + path)
        shown[line + " -"] = options
        if commands:
            shown[line + " "] = commands
        paths += [path + [command] for command in commands]
    for (line, wanted), offered in zip(shown.items(), offered_by_bash(cinch, list(shown))):
        found = sorted(offered) if line.endswith("-") else offered
        assert found == wanted, (line, found, wanted)
    return len(paths)


def main():
    what, cinch, lines = sys.argv[1], os.path.abspath(sys.argv[2]), sys.argv[3:]
    if what == "agrees":
        print(check_agreement(cinch), "commands agree")
    if what == "words":
        for offered in offered_by_bash(cinch, lines):
            print(" ".join(offered) or "nothing")
        return
    for line in lines:
        print(typed(what, cinch, line) if what in SHELLS else " ".join(offered_by_fish(cinch, line)) or "nothing")


main()
