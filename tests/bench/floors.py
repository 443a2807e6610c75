"""What the parts of the page share: floors from `cinch bench`, names and shares as text."""
import json
import platform
import subprocess
from pathlib import Path


def processor():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def settings_of(measured):
    return [f"{name}={value}" for name, value in measured.settings.items()]


def bench(cinch, measured, elements, seconds):
    command = [cinch, "bench", measured.name, "--elements", str(elements), "--seconds", str(seconds), "--json"]
    for setting in settings_of(measured):
        command += ["--set", setting]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)[0]


def share(figure, goal):
    return f"{figure:.2f}" + (f" (goal {goal})" if figure < goal else "")


def label(measured):
    return " ".join([f"`{measured.name}`", *settings_of(measured)])
