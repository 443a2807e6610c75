# lit configuration: %cinch is the command under test, FileCheck is LLVM 19's.
import glob
import os
import re
import shutil

import lit.formats

config.name = "cinch"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".cinch", ".ir", ".kir", ".test"]
config.excludes = ["Inputs"]
config.test_source_root = os.path.dirname(__file__)
build = os.path.abspath(lit_config.params["build"])
config.test_exec_root = os.path.join(build, "lit")
filecheck = shutil.which("FileCheck-19") or "/usr/lib/llvm-19/bin/FileCheck"
for name, value in [
    ("%cinch", os.path.join(build, "bin", "cinch")),
    ("%data", os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", "examples", "data"))),
    ("%double_gpus", os.path.join(build, "tests", "double_gpus")),
    ("%python", lit_config.params.get("python", "python3")),
    ("FileCheck-19", filecheck),
    ("%FileCheck", filecheck),
    ("%not", "/usr/lib/llvm-19/bin/not"),
]:
    config.substitutions.append((name, value))
config.environment["NO_COLOR"] = "1"
config.environment["CINCH_TUNING"] = "off"  # nor does the user's table serve in tests
config.environment["CINCH_CACHE"] = "off"  # tests of the cache turn it on, in a folder of their own
for name in ("VIRTUAL_ENV", "CINCH_NVRTC", "HOME", "CINCH_CLANG_LIBRARY", "CINCH_LONG"):
    if name in os.environ:
        config.environment[name] = os.environ[name]
if glob.glob(os.path.join(os.environ.get("VIRTUAL_ENV", ""), "lib", "python3*", "site-packages", "nvidia", "c*")):
    config.available_features.add("nvrtc")
with open(os.path.join(build, "CMakeCache.txt"), encoding="utf-8") as cache:
    if re.search("^CINCH_SANITIZE:[A-Z]+=$", cache.read(), re.M):
        config.available_features.add("no-sanitizer")
if shutil.which("mpirun") and glob.glob(os.path.join(build, "lib", "libcinch_mpi.*")):
    config.available_features.add("mpi")
    # More ranks than cores, by root, on one machine whose kernel may refuse reads of another process; leaks of MPI are not ours.
    config.environment.update({"OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                               "OMPI_MCA_btl_tcp_if_include": "lo", "OMPI_MCA_oob_tcp_if_include": "lo",
                               "OMPI_MCA_btl_vader_single_copy_mechanism": "none", "ASAN_OPTIONS": "detect_leaks=0"})
if glob.glob(os.path.join(build, "lib", "libcinch_ucx.*")):
    config.available_features.add("ucx")
    if "UCX_MEM_EVENTS" in os.environ:
        config.environment["UCX_MEM_EVENTS"] = os.environ["UCX_MEM_EVENTS"]
# A fake driver and a fake NCCL (tests/collective/nccl/double).
if os.path.exists(os.path.join(build, "tests", "double_gpus", "libnccl.so.2")):
    config.available_features.add("double-gpus")
for program in ("zsh", "fish", "groff", "mandoc"):
    if shutil.which(program):
        config.available_features.add(program)
try:
    for descriptor in os.openpty():
        os.close(descriptor)
    config.available_features.add("terminal")
except OSError:
    pass  # a root without /dev/pts: tests that need a terminal are listed as unsupported
