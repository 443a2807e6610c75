"""format_pages.py FOLDER COMMAND…: the command, with each manual page of the folder behind it, says nothing. A missing date is fine."""
import os
import subprocess
import sys

folder, command = sys.argv[1], sys.argv[2:]
pages = sorted(os.listdir(folder))
for page in pages:
    done = subprocess.run([*command, os.path.join(folder, page)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    warnings = [line for line in done.stdout.splitlines() if line and "missing date" not in line]
    assert not warnings, "\n".join(warnings)
print(len(pages), "pages without a warning")
