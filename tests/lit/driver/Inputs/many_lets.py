"""Prints a compressor with a chain of N definitions: many_lets.py N."""
import sys

count = int(sys.argv[1])
chain = "".join(f"    let x{i} = x{i - 1} * 0.5 + x{max(0, i - 2)}\n" for i in range(1, count))
print("compressor many_lets {\n  wire { a: [f32; n] }\n\n  encode(g: [f32; n]) {\n    let x0 = g\n"
      f"{chain}    wire {{ a: x{count - 1} }}\n  }}\n\n  decode(w) {{ w.a }}\n}}")
