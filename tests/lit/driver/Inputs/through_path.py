"""through_path.py FOLDER CINCH WORDS…: the command by its bare name, found along PATH, in FOLDER, without what names its library or compiler."""
import os
import subprocess
import sys

folder, cinch, words = sys.argv[1], sys.argv[2], sys.argv[3:]
environment = {name: value for name, value in os.environ.items() if name not in ("CINCH_STDLIB", "CINCH_CLANG_LIBRARY")}
environment["PATH"] = os.path.dirname(os.path.abspath(cinch)) + ":" + environment["PATH"]
os.environ["PATH"] = environment["PATH"]  # where the command is looked for
sys.exit(subprocess.run([os.path.basename(cinch), *words], cwd=folder, env=environment).returncode)
