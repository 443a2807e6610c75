"""What the language server tells an editor, in sessions with the client of pygls."""
import os
import tempfile
import unittest

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from editor import Editor, applied, at, position, whole
from tree import ROOT, read

TOPK = """import std.wrap

/// Keeps the largest.
compressor largest(ratio: f32 = 0.01 in (0, 1], const scaled: bool = true) {
  size k = clamp(ceil(ratio * n), 1, n)
  state residual: [f32; n] = 0

  wire { index: [u32; k], value: [f32; k] }

  encode(g: [f32; n]) {
    let x = g + residual
    let index = top_k(abs(x), k)
    let value = x[index]
    residual = x
    residual[index] = 0
    wire { index, value }
  }

  decode(w) { scatter(w.value, at: w.index, size: n) }

  claims scale_equivariant
}

compressor twice = momentum(largest(ratio: 0.5))
"""
URI = "file:///nowhere/largest.cinch"


class Session(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.editor = Editor()
        self.server = await self.editor.start()

    async def asyncTearDown(self):
        self.assertEqual(await self.editor.stop(), 0)

    async def opened(self, text=TOPK, uri=URI):
        found = await self.editor.open(uri, text)
        self.assertEqual([each.message for each in found], [])
        return self.editor.client

    async def hovered(self, marked, text=TOPK, uri=URI):
        found = await self.editor.client.text_document_hover_async(types.HoverParams(**at(uri, text, marked)))
        return found and found.contents.value

    async def completed(self, marked, text=TOPK, uri=URI):
        found = await self.editor.client.text_document_completion_async(types.CompletionParams(**at(uri, text, marked)))
        return [item.label for item in found.items]


class Diagnostics(Session):
    async def test_of_a_mistake_and_of_the_text_that_mends_it(self):
        await self.opened()
        found = await self.editor.change(URI, TOPK.replace("g + residual", "g + w"))
        self.assertEqual([each.code for each in found], ["S001"])
        self.assertEqual(found[0].range, types.Range(types.Position(10, 16), types.Position(10, 17)))
        self.assertEqual(found[0].severity, types.DiagnosticSeverity.Error)
        self.assertEqual(await self.editor.change(URI, TOPK), [])

    async def test_of_all_compressors_of_a_file(self):
        text = "".join(f"compressor c{i} {{\n  wire {{ v: [f32; n] }}\n  encode(g: [f32; n]) {{ wire {{ v: g + unknown }} }}\n"
                       "  decode(w) { w.v }\n}\n" for i in range(3))
        found = await self.editor.open(URI, text)
        self.assertEqual([each.range.start.line for each in found], [2, 7, 12])

    async def test_tell_where_a_size_comes_from(self):
        found = await self.editor.open(URI, TOPK.replace("let value = x[index]", "let value = x[index] + x"))
        self.assertEqual(found[0].code, "S014")
        places = [(each.message, each.location.range.start.line) for each in found[0].related_information]
        self.assertIn(("`k` comes from here", 4), places)

    async def test_of_several_changes_in_one_message(self):
        await self.opened()
        line = TOPK.split("\n").index("    let x = g + residual")
        changes = [types.TextDocumentContentChangePartial(
            range=types.Range(types.Position(line, begin), types.Position(line, end)), text=new)
            for begin, end, new in [(12, 13, "gradient"), (12, 20, "g"), (16, 24, "residuum")]]
        found = await self.editor.diagnostics(URI, self.editor.send_changes(URI, *changes))
        self.assertIn("unknown name `residuum`", found[0].message)
        self.assertIn("did you mean `residual`?", found[0].message)

    async def test_count_utf16_units(self):
        line = "/* \U0001f600é */ compressor a = unknown"
        found = await self.editor.open(URI, line + "\n")
        begin = len(line[:line.index("unknown")].encode("utf-16-le")) // 2
        self.assertEqual((found[0].range.start.character, found[0].range.end.character), (begin, begin + 7))

    async def test_escape_marks_of_writing_direction(self):
        found = await self.editor.open(URI, "compressor a = \u202e\u009b\n")
        self.assertIn("`\\u202e\\u009b`", found[0].message)

    async def test_read_imports_again_when_a_document_is_saved(self):
        with tempfile.TemporaryDirectory() as folder:
            part = os.path.join(folder, "part.cinch")
            user = f"file://{folder}/user.cinch"
            with open(part, "w") as file:
                file.write("fn half(x: f32) -> f32 { x / 2 }\n")
            text = 'import "part.cinch"\nfn quarter(x: f32) -> f32 { half(half(x)) }\n'
            self.assertEqual(await self.editor.open(user, text), [])
            with open(part, "w") as file:
                file.write("fn halved(x: f32) -> f32 { x / 2 }\n")
            self.editor.client.text_document_did_save(types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(user)))
            self.assertEqual([each.code for each in await self.editor.diagnostics(user)], ["S002"])

    async def test_read_imports_again_when_another_program_changes_them(self):
        with tempfile.TemporaryDirectory() as folder:
            part, user = os.path.join(folder, "part.cinch"), f"file://{folder}/user.cinch"
            with open(part, "w", encoding="utf-8") as file:
                file.write("fn half(x: f32) -> f32 { x / 2 }\n")
            self.assertEqual(await self.editor.open(user, 'import "part.cinch"\nfn quarter(x: f32) -> f32 { half(half(x)) }\n'), [])
            with open(part, "w", encoding="utf-8") as file:
                file.write("fn halved(x: f32) -> f32 { x / 2 }\n")
            change = types.FileEvent(uri=f"file://{part}", type=types.FileChangeType.Changed)
            self.editor.client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams([change]))
            self.assertEqual([each.code for each in await self.editor.diagnostics(user)], ["S002"])

    async def test_read_imports_from_documents_that_are_open(self):
        with tempfile.TemporaryDirectory() as folder:
            part = f"file://{folder}/part.cinch"
            user = f"file://{folder}/user.cinch"
            await self.editor.open(part, "fn half(x: f32) -> f32 { x / 2 }\n")
            text = 'import "part.cinch"\nfn quarter(x: f32) -> f32 { half(half(x)) }\n'
            self.assertEqual(await self.editor.open(user, text), [])
            await self.editor.change(part, "fn halved(x: f32) -> f32 { x / 2 }\n")
            self.assertEqual([each.code for each in await self.editor.diagnostics(user)], ["S002"])
            self.editor.close(part)
            self.assertEqual([each.code for each in await self.editor.diagnostics(user)], ["S006"])

    async def test_read_imports_that_were_missing(self):
        with tempfile.TemporaryDirectory() as folder:
            part, user, third = (f"file://{folder}/{name}.cinch" for name in ["part", "user", "third"])
            text = 'import "part.cinch"\nfn quarter(x: f32) -> f32 { half(half(x)) }\n'
            self.assertEqual([each.code for each in await self.editor.open(user, text)], ["S006"])
            await self.editor.open(part, "fn halved(x: f32) -> f32 { x / 2 }\n")
            self.assertEqual([each.code for each in await self.editor.diagnostics(user)], ["S002"])
            await self.editor.change(part, "fn half(x: f32) -> f32 { x / 2 }\n")
            self.assertEqual(await self.editor.diagnostics(user), [])
            self.editor.close(part)
            self.assertEqual([each.code for each in await self.editor.diagnostics(user)], ["S006"])
            # Now on disk: another document is saved.
            await self.editor.open(third, "const A = 1\n")
            self.assertEqual([each.code for each in await self.editor.diagnostics(user)], ["S006"])
            with open(f"{folder}/part.cinch", "w", encoding="utf-8") as file:
                file.write("fn half(x: f32) -> f32 { x / 2 }\n")
            self.editor.client.text_document_did_save(types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(third)))
            self.assertEqual(await self.editor.diagnostics(user), [])

    async def test_of_an_imported_file_stand_at_the_import(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(folder + "/part.cinch", "w", encoding="utf-8") as file:
                file.write("fn half(x: f32) -> f32 { x / }\n")
            found = await self.editor.open(f"file://{folder}/user.cinch", '\nimport "part.cinch"\n')
        self.assertEqual((found[0].code, found[0].range.start.line), ("P003", 1))
        self.assertEqual(found[0].related_information[0].location.uri, f"file://{folder}/part.cinch")

    async def test_go_when_a_document_is_closed(self):
        await self.editor.open(URI, "compressor a = unknown\n")
        self.editor.close(URI)
        self.assertEqual(await self.editor.diagnostics(URI), [])


class Hover(Session):
    async def test_tells_types_with_symbolic_sizes(self):
        await self.opened()
        self.assertIn("let index: [u32; k]", await self.hovered("x[ind|ex]"))
        self.assertIn("state residual: [f32; n] = 0", await self.hovered("g + resid|ual"))
        self.assertIn("size k = clamp(ceil(ratio * n), 1, n)", await self.hovered("abs(x), k|)"))
        self.assertIn("ratio: f32 = 0.01 in (0, 1]", await self.hovered("ceil(rat|io"))
        self.assertIn("index: [u32; k]", await self.hovered("w.ind|ex"))

    async def test_tells_the_type_of_an_expression(self):
        await self.opened()
        self.assertTrue((await self.hovered("g |+ residual")).startswith("```cinch\n[f32; n]\n```"))

    async def test_tells_what_operators_and_claims_mean(self):
        await self.opened()
        self.assertIn("top_k(x, k, axis:) -> u32", await self.hovered("to|p_k"))
        self.assertIn("C(2^k x) is 2^k C(x)", await self.hovered("claims scale_|equi"))
        self.assertIn("elements of the gradient", await self.hovered("size: n|"))

    async def test_tells_claims_payload_and_cost_of_a_compressor(self):
        await self.opened()
        text = await self.hovered("compressor lar|gest")
        for piece in ["Keeps the largest.", "claims `scale_equivariant`", "payload, in bytes, at most", "4 * k, where k = ",
                      "encode moves at least", "written per element"]:
            self.assertIn(piece, text)
        self.assertIn("momentum(inner: compressor", await self.hovered("mome|ntum"))

    async def test_tells_what_a_line_costs(self):
        await self.opened()
        text = await self.hovered("let ind|ex = top_k")
        self.assertIn("- ends sweep 1 of 3, which reads `gradient` 4 B, `residual` 4 B per element", text)
        self.assertIn("- stores `residual` in sweep 2 of 3: 4 B per element", await self.hovered("let |x = g"))
        text = TOPK.replace("top_k(abs(x), k)", "top_k(a, k)").replace("let index", "let a = abs(x)\n    let index")
        await self.editor.change(URI, text)
        self.assertIn("moves nothing: it is computed where it is used", await self.hovered("let |a =", text))

    async def test_is_silent_between_words(self):
        await self.opened()
        self.assertIsNone(await self.hovered("import std.wrap\n|"))


class Navigation(Session):
    async def definition(self, marked, text=TOPK, uri=URI):
        found = await self.editor.client.text_document_definition_async(types.DefinitionParams(**at(uri, text, marked)))
        return [(each.uri, each.range.start.line, each.range.start.character) for each in found]

    async def test_leads_to_declarations(self):
        await self.opened()
        self.assertEqual(await self.definition("residual[ind|ex]"), [(URI, 11, 8)])
        self.assertEqual(await self.definition("w.val|ue"), [(URI, 7, 26)])
        self.assertEqual(await self.definition("largest(rat|io: 0.5"), [(URI, 3, 19)])
        self.assertEqual(await self.definition("momentum(lar|gest"), [(URI, 3, 11)])
        self.assertEqual(await self.definition("abs(x), |k"), [(URI, 4, 7)])
        # A field of the payload, and what it is filled with.
        self.assertEqual(sorted(await self.definition("wire { ind|ex, value }")), [(URI, 7, 9), (URI, 11, 8)])

    async def test_leads_into_the_library(self):
        await self.opened()
        (uri, line, _), = await self.definition("mome|ntum")
        self.assertTrue(uri.endswith("/stdlib/wrap/momentum.cinch"))
        self.assertIn("compressor momentum", read(uri.removeprefix("file://")).split("\n")[line])
        self.assertGreater(len(await self.definition("std.wr|ap")), 5)

    async def test_knows_names_while_the_text_has_syntax_errors(self):
        await self.opened()
        broken = TOPK.replace("let value = x[index]", "let value = x[index] +* 2")
        await self.editor.change(URI, broken)
        (uri, _, _), = await self.definition("mome|ntum", broken)
        self.assertTrue(uri.endswith("/stdlib/wrap/momentum.cinch"))
        self.assertEqual(await self.definition("residual[ind|ex]", broken), [(URI, 11, 8)])

    async def test_lists_references_and_highlights(self):
        client = await self.opened()
        found = await client.text_document_references_async(types.ReferenceParams(
            context=types.ReferenceContext(include_declaration=True), **at(URI, TOPK, "let x| =")))
        self.assertEqual([each.range.start.line for each in found], [10, 11, 12, 13])
        found = await client.text_document_document_highlight_async(types.DocumentHighlightParams(**at(URI, TOPK, "let x| =")))
        self.assertEqual(len(found), 4)

    async def test_gives_an_outline(self):
        client = await self.opened()
        found = await client.text_document_document_symbol_async(types.DocumentSymbolParams(types.TextDocumentIdentifier(URI)))
        self.assertEqual([each.name for each in found], ["largest", "twice"])
        self.assertEqual([each.name for each in found[0].children], ["k", "residual", "wire", "encode", "decode"])


class Edits(Session):
    async def renamed(self, marked, name, text=TOPK, uri=URI):
        found = await self.editor.client.text_document_rename_async(types.RenameParams(new_name=name, **at(uri, text, marked)))
        return found.changes

    async def test_renames_a_variable_and_keeps_the_field(self):
        await self.opened()
        text = applied(TOPK, (await self.renamed("let ind|ex", "kept"))[URI])
        for piece in ["let kept = top_k", "x[kept]", "residual[kept] = 0", "wire { index: kept, value }", "at: w.index"]:
            self.assertIn(piece, text)
        self.assertEqual(await self.editor.change(URI, text), [])

    async def test_renames_a_field_and_keeps_the_variable(self):
        await self.opened()
        text = applied(TOPK, (await self.renamed("wire { ind|ex: [u32", "place"))[URI])
        for piece in ["wire { place: [u32; k]", "let index = top_k", "wire { place: index, value }", "at: w.place"]:
            self.assertIn(piece, text)
        self.assertEqual(await self.editor.change(URI, text), [])

    async def test_renames_a_parameter_where_it_is_given(self):
        await self.opened()
        text = applied(TOPK, (await self.renamed("ceil(rat|io", "share"))[URI])
        self.assertIn("largest(share: 0.5)", text)
        self.assertEqual(await self.editor.change(URI, text), [])

    async def test_renames_in_other_files(self):
        with tempfile.TemporaryDirectory() as folder:
            editor = Editor()
            await editor.start(folder)
            part, user = f"file://{folder}/part.cinch", folder + "/user.cinch"
            with open(user, "w", encoding="utf-8") as file:
                file.write('import "part.cinch"\nfn quarter(x: f32) -> f32 { half(half(x)) }\n')
            text = "fn half(x: f32) -> f32 { x / 2 }\n"
            with open(folder + "/part.cinch", "w", encoding="utf-8") as file:
                file.write(text)
            await editor.open(part, text)
            changes = (await editor.client.text_document_rename_async(
                types.RenameParams(new_name="halved", **at(part, text, "fn ha|lf")))).changes
            self.assertIn("halved(halved(x))", applied(read(user), changes["file://" + user]))
            self.assertEqual(await editor.stop(), 0)

    async def test_finds_references_in_other_files_from_anywhere(self):
        with tempfile.TemporaryDirectory() as folder:
            editor = Editor()
            await editor.start(folder)
            texts = {"part": "fn half(x: f32) -> f32 { x / 2 }\nfn third(x: f32) -> f32 { half(x) / 1.5 }\n",
                     "user": 'import "part.cinch"\nfn quarter(x: f32) -> f32 { half(half(x)) }\n',
                     "other": "fn half(x: f32) -> f32 { x / 2 }\n"}
            uris = {name: f"file://{folder}/{name}.cinch" for name in texts}
            for name, text in texts.items():
                with open(f"{folder}/{name}.cinch", "w", encoding="utf-8") as file:
                    file.write(text)
            await editor.open(uris["part"], texts["part"])
            await editor.open(uris["user"], texts["user"])
            wanted = {("part", 0, 3): True, ("part", 1, 26): False, ("user", 1, 28): False, ("user", 1, 33): False}
            for name, marked in [("part", "fn ha|lf"), ("user", "half(ha|lf")]:
                for with_declaration in [True, False]:
                    found = await editor.client.text_document_references_async(types.ReferenceParams(
                        context=types.ReferenceContext(with_declaration), **at(uris[name], texts[name], marked)))
                    places = {(next(n for n in uris if uris[n] == each.uri), each.range.start.line, each.range.start.character)
                              for each in found}
                    self.assertEqual(len(places), len(found))
                    self.assertEqual(places, {place for place in wanted if with_declaration or not wanted[place]})
            self.assertEqual(await editor.stop(), 0)

    async def test_refuses_names_that_would_change_the_program(self):
        await self.opened()
        for marked, name in [("let ind|ex", "value"), ("let ind|ex", "n"), ("let ind|ex", "let"), ("let ind|ex", "2x"),
                             ("mome|ntum", "feedback"), ("top|_k(", "best"), ("let ind|ex", "clip")]:
            with self.assertRaises(JsonRpcException, msg=name):
                await self.renamed(marked, name)

    async def test_refuses_operators_as_names_of_functions_alone(self):
        text = "fn half(x: f32) -> f32 {\n  let y = abs(x)\n  y / 2\n}\nfn quarter(x: f32) -> f32 { half(half(x)) }\n"
        await self.opened(text)
        for name in ["abs", "sqrt", "mean", "top_k"]:
            with self.assertRaisesRegex(JsonRpcException, f"`{name}` is an operator", msg=name):
                await self.renamed("fn ha|lf", name, text)
        self.assertIn("let mean = abs(x)", applied(text, (await self.renamed("let |y", "mean", text))[URI]))

    async def test_renames_nothing_in_a_text_that_was_not_read_as_a_whole(self):
        await self.opened()
        broken = TOPK.replace("residual = x\n", "residual = x +\n    ) index\n")
        await self.editor.change(URI, broken)
        with self.assertRaisesRegex(JsonRpcException, "syntax errors"):
            await self.renamed("let ind|ex", "kept", broken)

    async def test_lays_out_like_cinch_fmt(self):
        text = TOPK.replace("let x = g + residual", "let   x=g+residual").replace("at: w.index", "at:w.index")
        client = await self.opened(text)
        options = types.FormattingOptions(tab_size=2, insert_spaces=True)
        params = types.DocumentFormattingParams(types.TextDocumentIdentifier(URI), options)
        edits = await client.text_document_formatting_async(params)
        self.assertEqual(applied(text, edits), TOPK)
        await self.editor.change(URI, TOPK)
        self.assertEqual(list(await client.text_document_formatting_async(params)), [])
        await self.editor.change(URI, "compressor {")
        self.assertFalse(await client.text_document_formatting_async(params))

    async def fixed(self, text, title):
        """The text with the quick fix of that title for its only mistake."""
        found = await self.editor.open(URI, text)
        actions = await self.editor.client.text_document_code_action_async(types.CodeActionParams(
            types.TextDocumentIdentifier(URI), found[0].range, types.CodeActionContext(diagnostics=found)))
        action, = [each for each in actions if each.title == title] or self.fail([each.title for each in actions])
        fixed = applied(text, action.edit.changes[URI])
        self.assertEqual(await self.editor.change(URI, fixed), [])
        return fixed

    async def test_offers_what_diagnostics_suggest(self):
        self.assertEqual(await self.fixed(TOPK.replace("top_k(", "top_kk("), "Change to `top_k`"), TOPK)

    async def test_offers_conversions(self):
        fixed = await self.fixed("fn f(x: f32) -> i32 { x * 2 }\n", "Convert with `as i32`")
        self.assertEqual(fixed, "fn f(x: f32) -> i32 { (x * 2) as i32 }\n")

    async def test_offers_imports(self):
        fixed = await self.fixed("import std.wrap\n\ncompressor a = clip(topk)\n", "Add `import std.sparsify`")
        self.assertEqual(fixed, "import std.wrap\nimport std.sparsify\n\ncompressor a = clip(topk)\n")

    async def test_offers_stores_that_take_indices_that_repeat(self):
        text = "fn f(x: [f32; m], i: [u32; m]) -> [f32; 8] { scatter(x, at: i, size: 8) }\n"
        self.assertIn("scatter_add(x, at: i, size: 8)", await self.fixed(text, "Change to `scatter_add`"))
        self.editor.close(URI)
        self.assertIn("scatter(x, at: i, size: 8, keep: last)", await self.fixed(text, "Add `keep: last`"))

    async def test_offers_a_limit_of_loops(self):
        text = "fn f(x: f32) -> f32 {\n  let mut a = x\n  while a > 1 { a = a / 2 }\n  a\n}\n"
        self.assertIn("while a > 1, at_most: 100 {", await self.fixed(text, "Add `at_most: 100`"))

    async def test_offers_qualifiers_of_names_that_two_files_declare(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ["one", "two"]:
                await self.editor.open(f"file://{folder}/{name}.cinch", "const HALF = 0.5\n")
            text = 'import "one.cinch"\nimport "two.cinch"\nfn f(x: f32) -> f32 { x * HALF }\n'
            uri = f"file://{folder}/user.cinch"
            found = await self.editor.open(uri, text)
            actions = await self.editor.client.text_document_code_action_async(types.CodeActionParams(
                types.TextDocumentIdentifier(uri), found[0].range, types.CodeActionContext(diagnostics=found)))
            self.assertEqual([each.title for each in actions], ["Change to `one.HALF`", "Change to `two.HALF`"])
            self.assertEqual(await self.editor.change(uri, applied(text, actions[1].edit.changes[uri])), [])

    async def test_shows_types_of_variables(self):
        client = await self.opened()
        hints = await client.text_document_inlay_hint_async(types.InlayHintParams(**whole(URI, TOPK)))
        self.assertEqual([each.label for each in hints], [": [f32; n]", ": [u32; k]", ": [f32; k]"])
        self.assertEqual(hints[0].position, position(TOPK, TOPK.index("let x") + 5))


class Completion(Session):
    async def test_knows_what_a_place_allows(self):
        await self.opened()
        self.assertIn("compressor", await self.completed("}\n\n|compressor twice"))
        self.assertIn("state", await self.completed("  |state residual"))
        self.assertEqual(await self.completed("w.|value"), ["index", "value"])
        self.assertIn("f32", await self.completed("state residual: [|f32"))
        self.assertIn("contraction", await self.completed("claims |scale"))
        self.assertIn("ratio:", await self.completed("largest(|ratio: 0.5"))
        self.assertIn("at:", await self.completed("scatter(w.value, |at"))
        self.assertIn("quantize", await self.completed("import std.|wrap"))
        self.assertEqual(await self.completed("/// Keeps| the"), [])
        self.assertEqual(await self.completed("let va|lue"), [])

    async def test_offers_names_in_scope_and_no_others(self):
        await self.opened()
        names = await self.completed("let value = |x[index]")
        for name in ["x", "index", "residual", "k", "ratio", "g", "top_k", "error_feedback", "largest", "world"]:
            self.assertIn(name, names)
        self.assertNotIn("value", names)
        self.assertNotIn("w", names)

    async def test_offers_the_fields_of_a_payload(self):
        await self.opened()
        self.assertEqual(await self.completed("wire { |index, value }"), ["index:", "value:", "value", "index"])
        text = TOPK.replace("wire { index, value }", "wire { index, ")
        await self.editor.change(URI, text)
        self.assertEqual(await self.completed("wire { index, |", text), ["index:", "value:", "value", "index"])

    async def test_knows_imports_of_a_document_that_is_opened_unfinished(self):
        text = "import std.wrap\nimport std.sparsify\ncompressor mine = error_feedback(to"
        await self.editor.open(URI, text)
        names = await self.completed("error_feedback(to|", text)
        for name in ["inner:", "decay:", "topk", "error_feedback"]:
            self.assertIn(name, names)

    async def test_knows_imports_while_a_statement_is_unfinished(self):
        await self.opened()
        text = TOPK.replace("let value = x[index]", "let value = ")
        await self.editor.change(URI, text)
        names = await self.completed("let value = |\n", text)
        for name in ["x", "residual", "error_feedback"]:
            self.assertIn(name, names)


class Library(Session):
    async def test_changes_answer_within_the_time_for_typing(self):
        path = os.path.join(ROOT, "stdlib", "sparsify", "sidco.cinch")
        text = read(path)
        uri = "file://" + path
        await self.opened(text, uri)
        for i in range(1, 20):
            self.assertEqual(await self.editor.change(uri, text + "\n" * i), [])
