"""An editor without a screen: the client of pygls, which checks every answer against the protocol's types, and a few short cuts."""
import asyncio
import os

from lsprotocol import types
from pygls.lsp.client import LanguageClient

from tree import CINCH, ROOT

TIMEOUT_S = 30


class Editor:
    def __init__(self):
        self.client = LanguageClient("cinch-tests", "1")
        self.published = asyncio.Queue()
        self.messages = []
        self.versions = {}

        @self.client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def note_diagnostics(params: types.PublishDiagnosticsParams):
            self.published.put_nowait(params)

        @self.client.feature(types.WINDOW_LOG_MESSAGE)
        def note_log(params: types.LogMessageParams):
            self.messages.append(params.message)

        @self.client.feature(types.WINDOW_SHOW_MESSAGE)
        def note_message(params: types.ShowMessageParams):
            self.messages.append(params.message)

    async def start(self, folder=ROOT):
        await self.client.start_io(CINCH, "lsp")
        root = "file://" + folder
        result = await self.client.initialize_async(types.InitializeParams(
            capabilities=types.ClientCapabilities(), process_id=os.getpid(), root_uri=root,
            workspace_folders=[types.WorkspaceFolder(uri=root, name="test")]))
        self.client.initialized(types.InitializedParams())
        return result

    async def stop(self):
        await asyncio.wait_for(self.client.shutdown_async(None), TIMEOUT_S)
        self.client.exit(None)
        return await asyncio.wait_for(self.client._server.wait(), TIMEOUT_S)

    async def diagnostics(self, uri, version=None):
        """What is published next for the document, or for that version of it."""
        while True:
            params = await asyncio.wait_for(self.published.get(), TIMEOUT_S)
            if params.uri == uri and (version is None or params.version == version):
                return list(params.diagnostics)

    async def open(self, uri, text):
        self.versions[uri] = 1
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(
            types.TextDocumentItem(uri=uri, language_id="cinch", version=1, text=text)))
        return await self.diagnostics(uri, 1)

    def close(self, uri):
        self.client.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uri)))

    def send_changes(self, uri, *changes):
        self.versions[uri] += 1
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(
            types.VersionedTextDocumentIdentifier(uri=uri, version=self.versions[uri]), list(changes)))
        return self.versions[uri]

    async def change(self, uri, text):
        return await self.diagnostics(uri, self.send_changes(uri, types.TextDocumentContentChangeWholeDocument(text)))


def position(text, offset):
    """Of an index into the text; characters are UTF-16 code units."""
    line_begin = text.rfind("\n", 0, offset) + 1
    return types.Position(text.count("\n", 0, offset), len(text[line_begin:offset].encode("utf-16-le")) // 2)


def at(uri, text, marked):
    """Document and position of the place that `|` marks in a piece of the text."""
    piece = marked.replace("|", "", 1)
    offset = text.index(piece) + marked.index("|")
    return {"text_document": types.TextDocumentIdentifier(uri), "position": position(text, offset)}


def whole(uri, text):
    return {"text_document": types.TextDocumentIdentifier(uri),
            "range": types.Range(types.Position(0, 0), position(text, len(text)))}


def applied(text, edits):
    """The text after the edits of one document."""
    lines = text.split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)

    def offset(place):
        units = lines[place.line].encode("utf-16-le")[:2 * place.character]
        return starts[place.line] + len(units.decode("utf-16-le"))

    for edit in sorted(edits, key=lambda edit: offset(edit.range.start), reverse=True):
        text = text[:offset(edit.range.start)] + edit.new_text + text[offset(edit.range.end):]
    return text
