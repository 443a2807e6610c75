"""Every program of the tree, opened in an editor: the same diagnostics as `cinch check` gives."""
import json
import subprocess
import unittest

from editor import Editor
from tree import CINCH, programs, read


def checked(path):
    """What `cinch check` finds: code, severity, and place by file, line and column; None where it cannot tell."""
    done = subprocess.run([CINCH, "check", path, "--json"], capture_output=True, text=True)
    if done.returncode not in (0, 1) or not done.stdout:
        return None
    found = []
    for each in json.loads(done.stdout)["diagnostics"]:
        column = 0
        if each.get("file"):
            lines = read(each["file"]).replace("\r\n", "\n").split("\n")
            column = len(lines[each["line"] - 1][:each["column"] - 1].encode("utf-16-le", "surrogatepass")) // 2
        found.append((each["code"], each["severity"], each.get("file"), each.get("line", 1) - 1, column))
    return sorted(found, key=repr)


def told(path, diagnostics):
    """The same of what the server publishes. A mistake in an imported file is told at the import."""
    found = []
    for each in diagnostics:
        place, file = each.range.start, path
        related = each.related_information or []
        if related and related[0].message == "the mistake is here":
            place = related[0].location.range.start
            file = related[0].location.uri.removeprefix("file://")
        severity = {1: "error", 2: "warning", 3: "note"}[each.severity.value]
        found.append((each.code, severity, file, place.line, place.character))
    return sorted(found, key=repr)


class Programs(unittest.IsolatedAsyncioTestCase):
    async def test_have_the_diagnostics_of_cinch_check(self):
        editor = Editor()
        await editor.start()
        compared = 0
        for path in programs():
            try:
                text = read(path)
            except UnicodeDecodeError:
                continue
            expected = checked(path)
            if expected is None:
                continue
            uri = "file://" + path
            found = told(path, await editor.open(uri, text))
            self.assertEqual(found, expected, path)
            compared += 1
            editor.close(uri)
        self.assertEqual(await editor.stop(), 0)
        self.assertEqual(editor.messages, [])
        self.assertGreater(compared, 250)
