"""Include directives of C++ files, as the program list_includes of a build folder reads them."""
import os
import subprocess
from typing import NamedTuple


class Include(NamedTuple):
    line: int
    directive: str  # "include", "include_next", "import" …
    spelled: str    # "<vector>" or "\"runtime/core/error.h\"", with its brackets or quotes

    @property
    def is_quoted(self):
        return self.spelled.startswith('"')

    @property
    def is_computed(self):
        """A macro stands for the name."""
        return not self.spelled.startswith(('"', "<"))

    @property
    def name(self):
        return self.spelled if self.is_computed else self.spelled[1:-1]


def list_includes(build, paths, root=None):
    """{path: [Include]} of these files, which are named from the folder `root`. Raises RuntimeError."""
    tool = os.path.join(build, "tests", "list_includes")
    if not os.access(tool, os.X_OK):
        raise RuntimeError(f"there is no {tool}: build the target list_includes")
    found = {path: [] for path in paths}
    run = subprocess.run([tool, *map(str, paths)], cwd=root, capture_output=True, text=True)
    if run.returncode != 0:
        raise RuntimeError(f"{tool} failed: {run.stderr}")
    by_name = {str(path): path for path in paths}
    for row in run.stdout.splitlines():
        path, line, directive, spelled = row.split("\t")
        found[by_name[path]].append(Include(int(line), directive, spelled))
    return found
