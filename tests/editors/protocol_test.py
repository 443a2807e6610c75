"""Messages that no editor should send, and the ways in which a session ends. The server answers as the protocol says, and goes on."""
import json
import subprocess
import unittest

from tree import CINCH

TIMEOUT_S = 30


def message(**members):
    return framed(json.dumps({"jsonrpc": "2.0", **members}).encode())


def framed(body):
    return b"Content-Length: %d\r\n\r\n" % len(body) + body


INITIALIZE = message(id=0, method="initialize", params={"capabilities": {}})
INITIALIZED = message(method="initialized", params={})
SHUTDOWN = message(id="end", method="shutdown")
EXIT = message(method="exit")


def opening(text, uri="file:///nowhere/a.cinch"):
    return message(method="textDocument/didOpen",
                   params={"textDocument": {"uri": uri, "languageId": "cinch", "version": 1, "text": text}})


def hovering(number, uri="file:///nowhere/a.cinch", line=0):
    return message(id=number, method="textDocument/hover",
                   params={"textDocument": {"uri": uri}, "position": {"line": line, "character": 0}})


def said(*messages):
    """The server's exit status and what it answers to messages that arrive all at once."""
    done = subprocess.run([CINCH, "lsp", "--stdio"], input=b"".join(messages), capture_output=True, timeout=TIMEOUT_S)
    answers, left = [], done.stdout
    while left:
        header, left = left.split(b"\r\n\r\n", 1)
        length = int(header.split(b":")[1])
        answers.append(json.loads(left[:length]))
        left = left[length:]
    return done.returncode, answers


def errors(answers):
    return [(each["id"], each["error"]["code"]) for each in answers if "error" in each]


class Lifecycle(unittest.TestCase):
    def test_ends_with_0_behind_shutdown_and_with_1_without(self):
        self.assertEqual(said(INITIALIZE, SHUTDOWN, EXIT)[0], 0)
        self.assertEqual(said(INITIALIZE, EXIT)[0], 1)
        self.assertEqual(said(EXIT)[0], 1)
        self.assertEqual(said(INITIALIZE)[0], 1)
        self.assertEqual(said()[0], 1)

    def test_says_what_it_can(self):
        _, (answer,) = said(INITIALIZE, EXIT)
        self.assertEqual(answer["id"], 0)
        self.assertEqual(answer["result"]["serverInfo"]["name"], "cinch")
        self.assertEqual(answer["result"]["capabilities"]["positionEncoding"], "utf-16")

    def test_watches_files_of_editors_that_can(self):
        def requests(capabilities):
            _, answers = said(message(id=0, method="initialize", params={"capabilities": capabilities}), INITIALIZED, SHUTDOWN, EXIT)
            return [each for each in answers if "method" in each and "id" in each]

        for without in ({}, {"workspace": None}, {"workspace": {"didChangeWatchedFiles": {"dynamicRegistration": False}}}):
            self.assertEqual(requests(without), [])
        (request,) = requests({"workspace": {"didChangeWatchedFiles": {"dynamicRegistration": True}}})
        self.assertEqual(request["method"], "client/registerCapability")
        (registration,) = request["params"]["registrations"]
        self.assertEqual(registration["method"], "workspace/didChangeWatchedFiles")
        self.assertIn({"globPattern": "**/*.cinch"}, registration["registerOptions"]["watchers"])

    def test_answers_nothing_else_before_initialize(self):
        _, answers = said(hovering(7), opening("compressor a = b\n"), INITIALIZE, INITIALIZE, SHUTDOWN, EXIT)
        self.assertEqual(errors(answers), [(7, -32002), (0, -32600)])
        self.assertFalse([each for each in answers if each.get("method") == "textDocument/publishDiagnostics"])

    def test_answers_nothing_behind_shutdown(self):
        status, answers = said(INITIALIZE, SHUTDOWN, hovering(7), EXIT)
        self.assertEqual((status, errors(answers)), (0, [(7, -32600)]))


class Messages(unittest.TestCase):
    def served(self, *messages):
        status, answers = said(INITIALIZE, INITIALIZED, *messages, SHUTDOWN, EXIT)
        self.assertEqual(status, 0, answers)
        return answers

    def test_that_are_no_requests_are_errors(self):
        for body, code in [(b"{", -32700), (b"\xff\xfe", -32700), (b"[]", -32600), (b"7", -32600), (b"{}", -32600),
                           (b'{"id": 1, "method": 3}', -32600), (b'{"id": [1], "method": "shutdown"}', -32600)]:
            self.assertEqual(errors(self.served(framed(body))), [(None, code)], body)

    def test_of_unknown_methods_are_errors_and_unknown_notifications_are_not(self):
        answers = self.served(message(id=3, method="textDocument/nothing"), message(method="$/nothing"), message(method="nothing"))
        self.assertEqual(errors(answers), [(3, -32601)])

    def test_with_wrong_parameters_are_errors(self):
        for method, params in [("textDocument/hover", {}), ("textDocument/hover", None), ("textDocument/hover", [1]),
                               ("textDocument/hover", {"textDocument": {"uri": 7}}),
                               ("textDocument/hover", {"textDocument": {"uri": "file:///not/open.cinch"}, "position": {}}),
                               ("textDocument/rename", {"textDocument": {"uri": "file:///nowhere/a.cinch"}})]:
            answers = self.served(opening("compressor a = b\n"), message(id=3, method=method, params=params))
            self.assertEqual(errors(answers), [(3, -32602)], params)
            found, = [each["error"]["message"] for each in answers if "error" in each]
            self.assertNotIn("[json", found)
        self.served(message(method="textDocument/didOpen", params={}), message(method="textDocument/didChange", params=[]))

    def test_at_places_that_are_none_count_as_the_nearest(self):
        answers = self.served(opening("compressor a = b\n"), hovering(3, line=4000000000))
        self.assertEqual(errors(answers), [])
        change = {"range": {"start": {"line": 5, "character": 9}, "end": {"line": 1, "character": 0}}, "text": "x"}
        self.served(opening("a\nb\n"), message(method="textDocument/didChange", params={
            "textDocument": {"uri": "file:///nowhere/a.cinch", "version": 2}, "contentChanges": [change]}))

    def test_with_halves_of_surrogate_pairs_keep_documents_in_step(self):
        line = "/* \ud83d */ compressor a = b /* \ude00 */"
        begin = line.index("b /*")
        change = {"range": {"start": {"line": 0, "character": begin}, "end": {"line": 0, "character": begin + 1}}, "text": "what /* \ud83d */"}
        answers = self.served(opening(line + "\n"), message(method="textDocument/didChange", params={
            "textDocument": {"uri": "file:///nowhere/a.cinch", "version": 2}, "contentChanges": [change]}), hovering(3))
        self.assertEqual(errors(answers), [])
        found, = [each["params"]["diagnostics"] for each in answers if each.get("method") == "textDocument/publishDiagnostics"]
        self.assertIn("`what`", found[0]["message"])
        self.assertEqual(found[0]["range"]["start"], {"line": 0, "character": begin})

    def test_can_be_cancelled(self):
        answers = self.served(opening("compressor a = b\n"), hovering(3), hovering("four"),
                              message(method="$/cancelRequest", params={"id": 3}), message(method="$/cancelRequest", params={"id": 99}),
                              message(method="$/cancelRequest"), message(method="$/cancelRequest", params=[3]))
        self.assertEqual(errors(answers), [(3, -32800)])
        self.assertIn("four", [each.get("id") for each in answers])

    def test_with_strange_headers_are_read(self):
        hover = json.dumps({"jsonrpc": "2.0", "id": 3, "method": "textDocument/nothing"}).encode()
        length = str(len(hover)).encode()
        for header in [b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nContent-Length: " + length + b"\r\n\r\n",
                       b"content-length:" + length + b"\n\n", b"nonsense\r\n\r\nContent-Length: " + length + b"\r\n\r\n",
                       b"Content-Length: -1\r\n\r\nContent-Length: " + length + b"\r\n\r\n"]:
            self.assertEqual(errors(self.served(header + hover)), [(3, -32601)], header)

    def test_that_are_too_deep_are_errors(self):
        deep = b"[" * 200000 + b"]" * 200000
        self.assertEqual(errors(self.served(framed(b'{"id": 1, "method": "nothing", "params": ' + deep + b"}"))), [(None, -32700)])

    def test_that_are_cut_short_end_the_session(self):
        self.assertEqual(said(INITIALIZE, b"Content-Length: 100\r\n\r\n{")[0], 1)
        self.assertEqual(said(INITIALIZE, b"Content-Le")[0], 1)


class Texts(unittest.TestCase):
    def checked(self, text):
        status, answers = said(INITIALIZE, INITIALIZED, opening(text), hovering(1), SHUTDOWN, EXIT)
        self.assertEqual(status, 0)
        return [each["params"]["diagnostics"] for each in answers if each.get("method") == "textDocument/publishDiagnostics"][0]

    def test_of_any_kind_are_checked(self):
        chain = "const A = " + " + ".join(["1"] * 100000) + "\n"
        for text in ["", "\n", "\r\n\r", "\x00", "\ufeff", "{" * 100000, "(" * 100000, chain, "/*", '"', "import std.",
                     "compressor a { encode(g: [f32; n]) { let x = ", "x" * (1 << 20) + "y", "\U0001f600" * 1000]:
            self.checked(text)

    def test_are_checked_once_for_changes_that_arrive_together(self):
        uri = "file:///nowhere/a.cinch"
        changes = [message(method="textDocument/didChange", params={
            "textDocument": {"uri": uri, "version": i}, "contentChanges": [{"text": f"compressor a = b{i}\n"}]}) for i in range(2, 40)]
        _, answers = said(INITIALIZE, opening("compressor a = b\n"), *changes, hovering(1), SHUTDOWN, EXIT)
        published = [each["params"] for each in answers if each.get("method") == "textDocument/publishDiagnostics"]
        self.assertEqual([each["version"] for each in published], [39])
