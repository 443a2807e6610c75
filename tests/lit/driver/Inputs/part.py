"""part.py FROM N TO: the first N elements of a flat f32 .npy file as one of their own."""
import struct
import sys

source, count, target = open(sys.argv[1], "rb").read(), int(sys.argv[2]), sys.argv[3]
begin = 10 + struct.unpack("<H", source[8:10])[0]
header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({count},), }}".ljust(117) + "\n"
with open(target, "wb") as file:
    file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
    file.write(source[begin:begin + 4 * count])
