"""The grammars of dsl/editors against every program of the tree: tree-sitter's and TextMate's, and the extension of VS Code."""
import ctypes
import functools
import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

from tree_sitter import Language, Parser, Query, QueryCursor

from textmate import Grammar
from tree import CINCH, ROOT, programs, read

FOLDER = os.path.join(ROOT, "dsl", "editors")
TREE_SITTER = os.path.join(FOLDER, "tree-sitter-cinch")
TEXTMATE = os.path.join(FOLDER, "vscode", "syntaxes", "cinch.tmLanguage.json")

# Compiles the parser as editors do, and takes the language out of the library.
folder = tempfile.TemporaryDirectory()
library_path = os.path.join(folder.name, "cinch.so")
compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("clang-19")
if compiler is None:
    raise ImportError("a C compiler")
subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-I", os.path.join(TREE_SITTER, "src"),
                os.path.join(TREE_SITTER, "src", "parser.c"), "-o", library_path], check=True)
library = ctypes.CDLL(library_path)
library.tree_sitter_cinch.restype = ctypes.c_void_p
ctypes.pythonapi.PyCapsule_New.restype = ctypes.py_object
ctypes.pythonapi.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
LANGUAGE = Language(ctypes.pythonapi.PyCapsule_New(library.tree_sitter_cinch(), b"tree_sitter.Language", None))


def parsed(text):
    return Parser(LANGUAGE).parse(text if isinstance(text, bytes) else text.encode()).root_node


def body(text):
    """The statements of a fn, as text of the tree."""
    root = parsed("fn f(x: f32) -> f32 {\n" + text + "\n}\n")
    assert not root.has_error, root
    return re.sub(r"\b[a-z_]+: ", "", str(root.children[0].child_by_field_name("body")))


@functools.cache
def is_readable(text):
    return subprocess.run([CINCH, "fmt", "-"], input=text.encode(), capture_output=True).returncode == 0


def texts():
    for path in programs():
        try:
            yield path, read(path)
        except UnicodeDecodeError:
            continue


class TreeSitter(unittest.TestCase):
    def test_parser_was_made_of_this_grammar(self):
        with open(os.path.join(TREE_SITTER, "grammar.js"), "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()
        self.assertEqual(read(os.path.join(TREE_SITTER, "src", "grammar.sha256")).strip(), digest,
                         "grammar.js has changed: README.md beside it says how the parser is made anew")

    def test_reads_every_program_that_cinch_reads(self):
        num_read = 0
        for path, text in texts():
            if is_readable(text):
                self.assertFalse(parsed(text).has_error, path)
                num_read += 1
        self.assertGreater(num_read, 250)

    def test_finds_what_is_no_program(self):
        for text in ["compressor", "compressor a {", "fn f() { }", "compressor a { wire { v } }", "let x = 1", "import std.",
                     "compressor a { encode(g) { let = 1 } }", "const A = 1 const B = 2", "const A = (1, 2", "const A = [1 2]"]:
            self.assertTrue(parsed(text + "\n").has_error, text)

    def test_ends_statements_at_line_ends(self):
        self.assertEqual(body("let a = x\n-a"), "(block (let (identifier) (identifier)) (unary (identifier)))")
        self.assertEqual(body("let a = x -\na"), "(block (let (identifier) (binary (identifier) (identifier))))")
        self.assertEqual(body("let a = (x\n- a)"),
                         "(block (let (identifier) (parenthesized_expression (binary (identifier) (identifier)))))")
        self.assertEqual(body("let a = x\n(a, a)"), "(block (let (identifier) (identifier)) (tuple (identifier) (identifier)))")
        self.assertEqual(body("x;\n\n;x"), "(block (identifier) (identifier))")

    def test_takes_else_behind_a_line_end(self):
        self.assertEqual(body("if x { 1 }\n\nelse { 2 }"),
                         "(block (if_expression (identifier) (block (integer)) (block (integer))))")

    def test_knows_precedences(self):
        self.assertEqual(body("-x as i32 * 2 < 1 && true"),
                         "(block (binary (binary (binary (cast (unary (identifier)) (scalar_type (identifier))) (integer)) (integer)) "
                         "(constant_word)))")
        self.assertEqual(body("map(x, |a| a | 1, 2)"),
                         "(block (call (identifier) (arguments (argument (identifier)) (argument (lambda (identifier) "
                         "(binary (identifier) (integer)))) (argument (integer)))))")

    def test_knows_intervals_from_tuples(self):
        root = parsed("compressor a(x: f32 = 1 in (0, 1], y: f32 in [0, inf), z: u32 in (1 + 1)..=4) = b\n")
        self.assertFalse(root.has_error)
        ranges = [each.child_by_field_name("range").type for each in root.children[0].child_by_field_name("parameters").named_children]
        self.assertEqual(ranges, ["interval", "interval", "range"])

    def test_colours(self):
        text = ('import std.wrap\n/// Doc.\ncompressor a(const bits: u32 = 4 in 1..=8) {\n  wire { count: [f32; n] by sum }\n'
                "  encode(g: [f32; n]) { wire { count: abs(g) } }\n  claims unbiased\n}\n")
        query = Query(LANGUAGE, read(os.path.join(TREE_SITTER, "queries", "highlights.scm")))
        captures = QueryCursor(query).captures(parsed(text))
        coloured = {name: {node.text.decode() for node in nodes} for name, nodes in captures.items()}
        for name, words in {"comment.documentation": {"/// Doc."}, "type.definition": {"a"}, "number": {"4", "1", "8"},
                            "type.builtin": {"u32", "f32"}, "property": {"count"}, "function.call": {"abs"},
                            "constant.builtin": {"n"}, "attribute": {"unbiased"}, "module": {"std", "wrap"}}.items():
            self.assertEqual(coloured.get(name), words, name)
        self.assertLessEqual({"compressor", "wire", "claims", "by", "sum", "const"}, coloured["keyword"])


class TextMate(unittest.TestCase):
    def test_finds_comments_strings_and_numbers_where_tree_sitter_does(self):
        grammar = Grammar(TEXTMATE)
        kinds = {"doc_comment": "comment.line.documentation.cinch", "line_comment": "comment.line.double-slash.cinch",
                 "block_comment": "comment.block.cinch", "string": "string.quoted.double.cinch",
                 "integer": "constant.numeric", "float": "constant.numeric"}
        query = Query(LANGUAGE, "".join(f"({kind}) @{kind}\n" for kind in kinds))
        for path, text in texts():
            if "\r" in text or not is_readable(text):
                continue
            captures = QueryCursor(query).captures(parsed(text))
            expected = {(node.start_byte, kinds[kind]) for kind, nodes in captures.items() for node in nodes}
            found = set()
            for begin, _, scope in grammar.scopes(text):
                kind = "constant.numeric" if scope.startswith("constant.numeric") else scope
                if kind in kinds.values():
                    found.add((len(text[:begin].encode()), kind))
            self.assertEqual(found, expected, path)

    def test_knows_all_reserved_words(self):
        words = re.findall(r'CINCH_KEYWORD\(Kw\w+, "(\w+)"\)', read(os.path.join(ROOT, "dsl", "syntax", "token.def")))
        self.assertGreater(len(words), 15)
        for word in words:
            (_, _, scope), = Grammar(TEXTMATE).scopes(word)
            self.assertTrue(scope.startswith(("keyword.", "constant.language.")), word)


STUB = """
const load = require('module')._load;
require('module')._load = (name, ...rest) => name === 'vscode' ? vscode : name === 'vscode-languageclient/node' ? { LanguageClient } : load(name, ...rest);
const settings = { path: 'a/cinch', arguments: ['-I', 'include'] };
const vscode = {
  commands: { registerCommand: (name, run) => { vscode.restart = run; } },
  window: { showErrorMessage: (text) => console.log('message', text) },
  workspace: { createFileSystemWatcher: (of) => of, getConfiguration: () => ({ get: (name) => settings[name] }),
               onDidChangeConfiguration: () => {} },
};
class LanguageClient {
  constructor(id, name, server, options) { console.log('new', JSON.stringify(server), options.documentSelector[0].language); }
  async start() { console.log('start'); if (settings.path === 'none') throw new Error('ENOENT'); }
  async stop() { console.log('stop'); }
}
const extension = require(process.argv[1]);
(async () => {
  await extension.activate({ subscriptions: [] });
  settings.path = 'none';
  await vscode.restart();
  await extension.deactivate();
})();
"""


class Extension(unittest.TestCase):
    def test_files_are_json_and_names_agree(self):
        vscode = os.path.join(FOLDER, "vscode")
        package = json.loads(read(os.path.join(vscode, "package.json")))
        json.loads(read(os.path.join(vscode, "language-configuration.json")))
        for each in package["contributes"]["grammars"] + package["contributes"]["languages"]:
            self.assertTrue(os.path.exists(os.path.join(vscode, each.get("path") or each["configuration"])))
        self.assertEqual(json.loads(read(TEXTMATE))["scopeName"], package["contributes"]["grammars"][0]["scopeName"])

    @unittest.skipUnless(shutil.which("node"), "node is not installed")
    def test_starts_and_restarts_the_server(self):
        done = subprocess.run(["node", "-e", STUB, os.path.join(FOLDER, "vscode", "extension.js")], capture_output=True, text=True)
        self.assertEqual(done.stderr, "")
        self.assertEqual(done.stdout.splitlines(), [
            'new {"command":"a/cinch","args":["lsp","-I","include"]} cinch', "start", "stop",
            'new {"command":"none","args":["lsp","-I","include"]} cinch', "start",
            "message Cinch: cannot start 'none lsp': ENOENT. The setting cinch.path names the command.", "stop"])
