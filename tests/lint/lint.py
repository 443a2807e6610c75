"""Structure of the tree: who includes whom, fenced foreign headers, the budget of each room, generated pages.

    lint.py BUILD            fails on any violation
    lint.py BUILD --test     tries the checks on made-up trees
    lint.py BUILD --rooms    writes rooms.json again: what the tree has

BUILD is a build folder with the targets list_includes and print_tables, which read C++. Layers and budgets are those of
docs/notes/folders.md.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

from includes import list_includes

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
SOURCE_FOLDERS = ["runtime", "dsl", "compiler", "codegen"]
CODE_FOLDERS = SOURCE_FOLDERS + ["tests", "examples"]
BUDGET = os.path.join("tests", "lint", "rooms.json")
SHORT_FILE_LINES = 80
ALONE = "Alone:"  # at the top of a short file, with the reason why it joins no other

RUNTIME = ["runtime"]
# The rooms of the runtime in layer order, with those below that each sees beside runtime/core. CMake's include folders say the same
# (cinch_room).
ROOMS = {
    "core": "",
    "fabric": "",
    "payload": "",
    "image": "",
    "tuning": "image",
    "cache": "image",
    "module": "image",
    "collective": "image",
    "plan": "collective",
    "call": "image payload collective",
    "planner": "image payload collective plan call",
    "exec": "image tuning collective",
    "gpu": "image payload tuning collective call",
    "session": "image payload tuning module collective call exec",
    "device": "image payload collective call exec gpu session",
    "transports/lent": "collective c_api/cinch_transport.h",
    "transports/mpi": "module collective gpu",
    "transports/nccl": "module collective gpu",
    "transports/ucx": "module collective",
    "sync": "image payload collective plan call planner exec gpu session device",
    "autoplan": "collective plan planner call exec gpu session device sync",
    "simulator": "image payload collective plan call planner fabric",
    "c_api": "image payload tuning module collective plan call planner exec gpu session transports sync autoplan",
}


def runtime_rooms():
    rules = {}
    for room, below in ROOMS.items():
        seen = ["runtime/" + name for name in ("core " + below).split()] if room != "core" else []
        rules["runtime/" + room] = seen
    return rules


DSL = ["dsl", "runtime/core"]
# By folder: what its files may include besides their own folder. A longer path takes precedence.
LAYERS = {
    **runtime_rooms(),
    "dsl/source": ["runtime/core"],
    "dsl/diag": ["dsl/source", "runtime/core"],
    "dsl/syntax": ["dsl/source", "dsl/diag", "runtime/core"],
    "dsl/sema": ["dsl/source", "dsl/diag", "dsl/syntax", "runtime/core"],
    "compiler/ir": DSL + ["codegen/text"],
    "compiler/lower": DSL + ["compiler/ir"],
    "compiler/analysis": DSL + ["compiler/ir", "compiler/lower"],
    "compiler/passes": DSL + ["compiler/ir", "compiler/lower", "compiler/analysis"],
    "compiler/pipeline": DSL + ["compiler/ir", "compiler/lower", "compiler/analysis", "compiler/passes"],
    "compiler/interp": DSL + ["compiler/ir", "compiler/lower", "compiler/analysis", "compiler/passes", "compiler/pipeline"],
    "compiler/kernelize": ["compiler/ir", "compiler/analysis", "codegen/kir", "codegen/passes", "codegen/tuning", "runtime"],
    "compiler/service": ["runtime", "dsl", "compiler", "codegen"],
    "compiler/lsp": DSL + ["compiler/ir", "compiler/lower", "compiler/analysis", "compiler/service", "runtime"],
    "compiler/bench": ["compiler/ir", "compiler/analysis", "runtime"],
    "compiler/verify": DSL + ["compiler/ir", "compiler/interp", "runtime"],
    "compiler/driver": ["runtime", "dsl", "compiler", "codegen"],
    "codegen/text": RUNTIME,
    "codegen/kir": RUNTIME + ["codegen/text"],
    "codegen/tuning": RUNTIME,
    "codegen/passes": ["codegen/kir", "runtime"],
    "codegen/prelude": [],
    "codegen/emit": ["codegen/kir", "codegen/tuning", "codegen/prelude", "runtime"],
    "codegen/aot": ["codegen/kir", "codegen/emit", "codegen/jit", "runtime"],
    "codegen/emulator": ["runtime"],
    "codegen/jit": ["codegen/emit", "codegen/emulator/module.h", "codegen/emulator/hooks.def", "runtime"],
}
PUBLIC_HEADERS = "runtime/c_api/cinch"
# (file, included): why.
EXCEPTIONS = {
    ("codegen/jit/compile_program.h", "codegen/kir/kir.h"): "joins emitter, compiler and image",
}
# Foreign headers by the begin of their path: the places that may include them (a file, or a folder with /).
FENCES = {
    "boost/spirit": ["dsl/syntax/grammar", "dsl/syntax/parser", "dsl/syntax/"],
    "boost/context": ["codegen/emulator/"],
    "clang/": ["codegen/jit/clang/", "tests/lint/"],
    "clang-c/": ["codegen/jit/clang/"],
    "clang-tidy/": ["tests/lint/"],
    "llvm/": ["codegen/jit/clang/", "tests/lint/"],
    "lld/": ["codegen/jit/clang/"],
    "CLI/": ["compiler/driver/"],
}
# Headers that one file alone may name.
SINGLE = ["nvrtc.h", "cuda.h", "nccl.h", "mpi.h"]


def code_files(root, endings=(".h", ".cpp", ".def")):
    for top in CODE_FOLDERS:
        for folder, names, files in os.walk(os.path.join(root, top)):
            names[:] = sorted(n for n in names if not n.startswith(".") and n not in ("build", "__pycache__"))
            for name in sorted(files):
                if name.endswith(endings):
                    yield os.path.relpath(os.path.join(folder, name), root)


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read()


def is_below(path, place):
    return path == place or path.startswith(place if place.endswith("/") else place + "/")


def layer_of(path):
    """The most exact rule for a file, as (folder, allowed), or None."""
    found = [folder for folder in LAYERS if is_below(path, folder)]
    if not found:
        return None
    folder = max(found, key=len)
    return folder, LAYERS[folder]


def check_include(path, included):
    """A complaint about one include of ours, or None."""
    if path.split("/")[0] in ("tests", "examples"):
        return None
    if is_below(included, "compiler/driver") and not is_below(path, "compiler/driver"):
        return "nothing may see the driver"
    rule = layer_of(path)
    if rule is None:
        return "its folder has no rule in tests/lint/lint.py"
    own, allowed = rule
    own_folder = "/".join(path.split("/")[:2])
    if is_below(included, own) or (own.count("/") == 1 and is_below(included, own_folder)):
        return None
    if (path, included) in EXCEPTIONS or any(is_below(included, place) for place in allowed):
        return None
    return own + " may see only " + (", ".join(allowed) or "itself")


def check_foreign(path, included, singles):
    for start, places in FENCES.items():
        if included.startswith(start):
            fine = any(path.startswith(place) if place.endswith("/") else path.startswith(place + ".")
                       for place in places)
            if not fine:
                return "only " + ", ".join(places) + " may include it"
    if included in SINGLE:
        first = singles.setdefault(included, path)
        if first != path:
            return first + " includes it already, and one file may"
    return None


def complaint_about(root, path, include, singles):
    """A complaint about one directive, or None."""
    if include.directive != "include" or include.is_computed:
        return "headers are included by #include and their names"
    included, top = include.name, path.split("/")[0]
    is_public = path.startswith(PUBLIC_HEADERS)  # installed side by side
    if top in SOURCE_FOLDERS and include.is_quoted and "/" not in included and not is_public:
        return "includes are written from the root"
    if not include.is_quoted or included.split("/")[0] not in SOURCE_FOLDERS:
        return check_foreign(path, included, singles)
    complaint = check_include(path, included)
    if complaint is None and not os.path.exists(os.path.join(root, included)):
        return "there is no such file"
    return complaint


def check_includes(root, build):
    complaints, singles = [], {}
    for path, includes in list_includes(build, list(code_files(root)), root).items():
        for include in includes:
            complaint = complaint_about(root, path, include, singles)
            if complaint:
                complaints.append(f"{path}:{include.line}: includes {include.name}: {complaint}")
    return complaints


def room_of(path):
    """The room whose budget a file counts in: a folder with a rule, or two levels of other folders."""
    rule = layer_of(path)
    return rule[0] if rule else "/".join(os.path.dirname(path).split("/")[:2])


def measure_rooms(root):
    """{room: {lines, files, short}}. `short`: files of C++ of fewer than 80 lines that do not say why they stand alone."""
    rooms = {}
    for path in code_files(root, (".h", ".cpp", ".def", ".py")):
        text = read(root, path)
        room = rooms.setdefault(room_of(path), {"lines": 0, "files": 0, "short": 0})
        lines = text.count("\n")
        room["lines"] += lines
        room["files"] += 1
        room["short"] += not path.endswith(".py") and lines < SHORT_FILE_LINES and ALONE not in text[:600]
    return dict(sorted(rooms.items()))


def check_budgets(rooms, budgets):
    """Rooms that have more than their row."""
    complaints = []
    for room in sorted(rooms.keys() | budgets.keys()):
        for what, has in rooms.get(room, dict.fromkeys(("lines", "files", "short"), 0)).items():
            may = budgets.get(room, {}).get(what, 0)
            if has > may:
                complaints.append(f"{room}: {has} {what}, {has - may} more than its row in {BUDGET} allows: join what exists, or raise the row in "
                                  "this commit and say why")
    return complaints


def check_rooms_of(root):
    return check_budgets(measure_rooms(root), json.loads(read(root, BUDGET)))


def write_budgets(root):
    rows = [f"  {json.dumps(room)}: {json.dumps(row)}" for room, row in measure_rooms(root).items()]
    with open(os.path.join(root, BUDGET), "w", encoding="utf-8") as file:
        file.write("{\n" + ",\n".join(rows) + "\n}\n")


def check_generated(root, build):
    script = os.path.join(root, "tests", "lint", "generate_docs.py")
    run = subprocess.run([sys.executable, script, build, "--check"], capture_output=True, text=True)
    return [] if run.returncode == 0 else [(run.stdout + run.stderr).strip() or "generated pages are out of date"]


def make_tree(root, files):
    for path, text in files.items():
        os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
        with open(os.path.join(root, path), "w", encoding="utf-8") as file:
            file.write(text)


def complaints_of(build, files):
    with tempfile.TemporaryDirectory() as root:
        make_tree(root, files)
        return check_includes(root, build)


def test_reading(build):
    """Directives are found wherever they are, and only they."""
    text = '#if 0\n# include "a.h" // why\n#else\n#import <b>\n#endif\n#include NAME\n'
    no_directives = '/*\n#include "c.h"\n*/\nconst char* const kText = R"(\n#include "d.h"\n)";\n'
    with tempfile.TemporaryDirectory() as root:
        make_tree(root, {"runtime/a.cpp": text + no_directives + "#include \\\n<e>"})
        found = list_includes(build, ["runtime/a.cpp"], root)["runtime/a.cpp"]
    expected = [(2, "include", '"a.h"'), (4, "import", "<b>"), (6, "include", "NAME"), (13, "include", "<e>")]
    if [tuple(each) for each in found] != expected:
        raise AssertionError(f"expected {expected}, found {found}")


def check_rooms():
    """A room that sees one at its own height or above, or a folder of the runtime without a rule."""
    names = list(ROOMS)
    above = [f"{room} sees {name}, which stands above it" for room, below in ROOMS.items() for name in below.split()
             if name in ROOMS and names.index(name) >= names.index(room)]
    with open(os.path.join(ROOT, "runtime", "CMakeLists.txt"), encoding="utf-8") as file:
        built = re.search(r"foreach\(folder (.*)\)", file.read()).group(1).split()
    return above + [f"runtime/{room} has no rule in tests/lint/lint.py" for room in built if room not in ROOMS]


def self_test(build):
    def expect(files, *words):
        found = complaints_of(build, files)
        if len(found) != len(words) or not all(word in line for word, line in zip(words, found)):
            raise AssertionError(f"expected {words}, found {found}")

    test_reading(build)
    core, kir, ir = "runtime/core/a.h", "codegen/kir/kir.h", "compiler/ir/ir.h"
    empty = {core: "", kir: "", ir: ""}
    expect({**empty, "codegen/kir/b.cpp": '#include "runtime/core/a.h"\n#include "codegen/kir/kir.h"\n'})
    expect({**empty, "runtime/core/b.cpp": '#include "codegen/kir/kir.h"\n'}, "runtime/core may see only itself")
    expect({**empty, "codegen/emit/b.cpp": '\n#include "compiler/ir/ir.h"\n'}, "codegen/emit/b.cpp:2")
    expect({**empty, "dsl/sema/b.cpp": '#include "compiler/ir/ir.h"\n'}, "dsl/sema may see only")
    expect({**empty, "compiler/driver/d.h": "", "compiler/ir/b.cpp": '#include "compiler/driver/d.h"\n'}, "the driver")
    expect({"codegen/odd/b.cpp": '#include "codegen/odd/c.h"\n', "codegen/odd/c.h": ""}, "no rule")
    expect({"runtime/core/b.cpp": '#include "runtime/core/none.h"\n'}, "no such file")
    expect({"runtime/core/b.cpp": '#include "b.h"\n'}, "from the root")
    expect({"codegen/jit/b.cpp": "#include <llvm/IR/Module.h>\n"}, "only codegen/jit/clang/")
    expect({"codegen/jit/clang/b.cpp": "#include <llvm/IR/Module.h>\n"})
    expect({"runtime/a/b.cpp": "#include <cuda.h>\n", "runtime/a/c.cpp": "#include <cuda.h>\n"}, "one file may")
    expect({"runtime/core/b.cpp": "#include NAME\n"}, "their names")
    expect({"runtime/core/b.cpp": "#include_next <vector>\n"}, "by #include")
    test_budgets()


def test_budgets():
    with tempfile.TemporaryDirectory() as root:
        make_tree(root, {"dsl/sema/a.h": "\n" * 80, "dsl/sema/sizes/b.cpp": "// Alone: a table\n", "tests/unit/x/c.cpp": "\n", "tests/d.py": "\n"})
        rooms = measure_rooms(root)
        wanted = {"dsl/sema": {"lines": 81, "files": 2, "short": 0}, "tests": {"lines": 1, "files": 1, "short": 0},
                  "tests/unit": {"lines": 1, "files": 1, "short": 1}}
        if rooms != wanted:
            raise AssertionError(f"expected {wanted}, found {rooms}")
        make_tree(root, {BUDGET: ""})
        write_budgets(root)
        if check_rooms_of(root):
            raise AssertionError(f"the tree has more than itself: {check_rooms_of(root)}")
        make_tree(root, {"dsl/sema/more.cpp": "\n" * 3, "codegen/kir/new.cpp": "\n" * 100})
        found = check_rooms_of(root)
    wanted = ["codegen/kir: 100 lines, 100 more", "codegen/kir: 1 files, 1 more", "dsl/sema: 84 lines, 3 more", "dsl/sema: 3 files, 1 more",
              "dsl/sema: 1 short, 1 more"]
    if len(found) != len(wanted) or not all(line.startswith(words) for line, words in zip(found, wanted)):
        raise AssertionError(f"expected {wanted}, found {found}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--test", action="store_true")
    parser.add_argument("--rooms", action="store_true")
    options = parser.parse_args()
    build = os.path.abspath(options.build)
    if options.test:
        self_test(build)
        print("lint: the checks find what they should")
        return 0
    if options.rooms:
        write_budgets(ROOT)
        return 0
    complaints = check_includes(ROOT, build) + check_rooms_of(ROOT) + check_rooms() + check_generated(ROOT, build)
    for line in complaints:
        print(line, file=sys.stderr)
    print(f"lint: {len(complaints)} complaints")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
