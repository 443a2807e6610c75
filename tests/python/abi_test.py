"""Compares `cinch/_abi.py` with the headers: sizes, offsets and numbers as a C compiler sees them."""
import ctypes
import os
import re
import shutil
import subprocess
import tempfile
import unittest

from cinch import _abi, _sync_abi, errors

HEADERS = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", "runtime", "c_api"))
STRUCTS = {
    "cinch_error": _abi.Error,
    "cinch_compile_options": _abi.CompileOptions,
    "cinch_program_info": _abi.ProgramInfo,
    "cinch_parameter_info": _abi.ParameterInfo,
    "cinch_state_info": _abi.StateInfo,
    "cinch_tensor": _abi.Tensor,
    "cinch_payload": _abi.Payload,
    "cinch_session_options": _abi.SessionOptions,
    "cinch_cpu_code": _abi.CpuCode,
    "cinch_compressor": _abi.Compressor,
    "cinch_library": _abi.Library,
    "cinch_open_options": _abi.OpenOptions,
    "cinch_store_calls": _sync_abi.StoreCalls,
    "cinch_ucx_options": _sync_abi.UcxOptions,
    "cinch_nccl_options": _sync_abi.NcclOptions,
    "cinch_policy_tensor": _sync_abi.PolicyTensor,
    "cinch_policy_choice": _sync_abi.PolicyChoice,
    "cinch_policy_program": _sync_abi.PolicyProgram,
    "cinch_sync_tensor": _sync_abi.SyncTensor,
    "cinch_sync_options": _sync_abi.SyncOptions,
    "cinch_step_options": _sync_abi.StepOptions,
    "cinch_step_outcome": _sync_abi.StepOutcome,
    "cinch_sync_restored": _sync_abi.SyncRestored,
}
NUMBERS = {
    "CINCH_ABI_VERSION": _abi.ABI_VERSION,
    "CINCH_NO_TENSOR": _abi.NO_TENSOR,
    "CINCH_F32": _abi.F32,
    "CINCH_F16": _abi.F16,
    "CINCH_BF16": _abi.BF16,
    "CINCH_STATES_SECOND_BUFFER": _abi.STATES["second_buffer"],
    "CINCH_STATES_IN_PLACE": _abi.STATES["in_place"],
    "CINCH_GATHER": _abi.AGGREGATIONS.index("gather"),
    "CINCH_SUM_TO_TEST": _abi.AGGREGATIONS.index("sum_to_test"),
    "CINCH_SUM_PROVED": _abi.AGGREGATIONS.index("sum_proved"),
    "CINCH_EXACT": _sync_abi.EXACT,
    "CINCH_OFF": _sync_abi.OFF,
    "CINCH_NCCL_ID_BYTES": _sync_abi.NCCL_ID_BYTES,
    "CINCH_STORE_NOTHING": _sync_abi.STORE_NOTHING,
}


def expected_lines():
    lines = []
    for name, struct in STRUCTS.items():
        lines.append(f"{name} {ctypes.sizeof(struct)}")
        lines += [f"{name}.{field[0]} {getattr(struct, field[0]).offset} {getattr(struct, field[0]).size}" for field in struct._fields_]
    return lines + [f"{name} {ctypes.c_int64(value).value}" for name, value in NUMBERS.items()]


def c_program():
    prints = []
    for name, struct in STRUCTS.items():
        prints.append(f'printf("{name} %zu\\n", sizeof({name}));')
        for field in struct._fields_:
            place = f"offsetof({name}, {field[0]}), sizeof((({name}*)0)->{field[0]})"
            prints.append(f'printf("{name}.{field[0]} %zu %zu\\n", {place});')
    prints += [f'printf("{name} %lld\\n", (long long){name});' for name in NUMBERS]
    return '#include "cinch_library.h"\n#include "cinch_sync.h"\n#include <stddef.h>\n#include <stdio.h>\nint main(void) {\n' + "\n".join(prints) + "\nreturn 0; }\n"


def fields_of(body):
    """Names in the declarations of a struct: `a;`, `a[3];`, `a, b;`, and of pointers to functions."""
    body = re.sub(r"\(\*(\w+)\)\([^)]*\)", r"\1", body)
    return re.findall(r"(\w+)(?:\[\d+\])?\s*[;,]", body)


def header(name):
    with open(os.path.join(HEADERS, name), encoding="utf-8") as file:
        return file.read()


class Abi(unittest.TestCase):
    def test_structs_are_those_of_the_headers(self):
        compiler = next(filter(None, map(shutil.which, ("cc", "clang-19", "clang", "gcc"))))
        with tempfile.TemporaryDirectory() as folder:
            source, program = os.path.join(folder, "abi.c"), os.path.join(folder, "abi")
            with open(source, "w", encoding="utf-8") as file:
                file.write(c_program())
            subprocess.run([compiler, "-I", HEADERS, source, "-o", program], check=True)
            printed = subprocess.run([program], check=True, capture_output=True, text=True).stdout
        self.assertEqual(printed.splitlines(), expected_lines())

    def test_no_field_of_the_headers_is_missing(self):
        text = "".join(map(header, ("cinch.h", "cinch_library.h", "cinch_sync.h", "cinch_transport.h")))
        for name, struct in STRUCTS.items():
            body = re.search(r"typedef struct %s \{(.*?)\} %s;" % (name, name), text, re.S).group(1)
            body = re.sub(r"/\*.*?\*/", "", body, flags=re.S)
            declared = fields_of(body)
            self.assertEqual(declared, [field[0] for field in struct._fields_], name)

    def test_every_status_has_a_class(self):
        statuses = {name: int(value) for name, value in re.findall(r"(CINCH_\w+) = (\d+)", re.search(r"typedef enum cinch_status.*?\}", header("cinch.h"), re.S).group(0))}
        statuses.pop("CINCH_OK")
        classes = [type(errors.error_of(value, "")) for value in statuses.values()]
        self.assertEqual(len(set(classes)), len(statuses))
        self.assertNotIn(errors.Error, classes)

    def test_every_call_has_as_many_arguments_as_in_the_headers(self):
        text = "".join(map(header, ("cinch.h", "cinch_library.h", "cinch_sync.h", "cinch_transport.h")))
        for name, arguments in {**_abi.STATUS_FUNCTIONS, **_sync_abi.STATUS_FUNCTIONS}.items():
            declared = re.search(r"CINCH_API cinch_status %s\((.*?)\);" % name, text, re.S).group(1)
            self.assertEqual(declared.count(",") + 1, len(arguments) + 1, name)


if __name__ == "__main__":
    unittest.main()
