"""Copies one of a cache's entries over another: swap_entries.py FOLDER."""
import shutil
import sys
from pathlib import Path

first, second = sorted(Path(sys.argv[1]).glob("*/*.cinchcache"))
shutil.copyfile(first, second)
