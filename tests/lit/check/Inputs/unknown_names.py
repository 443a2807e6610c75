"""unknown_names.py COUNT [--long]: prints a program with so many names that mean nothing, on lines of their own."""
import sys

length = 100 if "--long" in sys.argv else 1
print("compressor names {\n  wire { value: [f32; n] }\n  encode(g: [f32; n]) {")
for i in range(int(sys.argv[1])):
    print(f"    let x{i} = {'u' * length}{i}")
print("    wire { value: g }\n  }\n  decode(w) { w.value }\n}")
