"""Compiles a program for a GPU through the C API, saves it, and waits until better code is in the cache; prints what is there, and
whether the saved image is the one that `cinch build` makes.

    improves.py CINCH PROGRAM [TEXT_FILE]

CINCH_CACHE_DIR names the cache. With TEXT_FILE its text is what is compiled, under the name PROGRAM. Nothing is waited for where
CINCH_BACKGROUND turns that off.
"""
import ctypes
import os
import subprocess
import sys
import time

cinch, program, *texts = sys.argv[1:]
os.environ["CINCH_LIBRARY"] = os.path.join(os.path.dirname(cinch), "..", "lib", "libcinch.so")
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "..", "..", "runtime", "python"))
from cinch import _abi, _library  # noqa: E402

options = _abi.sized(_abi.CompileOptions, program=program.encode(), device=1, arch=b"sm_90")
if texts:
    with open(texts[0], "rb") as file:
        options.text = file.read()
    options.text_size = len(options.text)
handle = ctypes.c_void_p()
_library.call("cinch_program_compile", ctypes.byref(options), ctypes.byref(handle))
image = os.environ["CINCH_CACHE_DIR"] + ".image"
_library.call("cinch_program_save", handle, image.encode())
waits = os.environ.get("CINCH_BACKGROUND") != "off"
until = time.monotonic() + (300 if waits else 1)
while True:
    shown = subprocess.run([cinch, "cache", "show"], stdout=subprocess.PIPE, text=True, check=True).stdout
    if "2 entries" in shown or time.monotonic() > until:
        break
    time.sleep(0.2)
print(shown)
source = f"{texts[0]}:halved" if texts else program
subprocess.run([cinch, "build", source, "--emit=image", "--target", "cuda:sm_90", "--output", image + ".full"], check=True)
# NVRTC names things anew each time, and saving may have compiled the program beside the process in the background.
print("saved as built" if os.path.getsize(image) == os.path.getsize(image + ".full") else "saved otherwise")
