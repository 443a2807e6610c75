"""unwind_table.py LIBRARY…: exceptions find the frame of every function. A function without code begins where the next one does; the search
in .eh_frame_hdr (a sorted table of where functions begin, and their entries in .eh_frame) ends at the last entry of an address, which must be
that of the code. Linux Standard Base, Exception Frames."""
import struct
import sys
from itertools import groupby

HEADER = bytes([1, 0x1B, 0x03, 0x3B])  # version; entries and table as 4 bytes, relative to where they stand and to the table
RANGE = 12  # of a function: where its length stands in an entry


def sections(data):
    """By name: (address, offset)."""
    first, = struct.unpack_from("<Q", data, 0x28)
    count, names_at = struct.unpack_from("<HH", data, 0x3C)
    headers = [struct.unpack_from("<IIQQQ", data, first + 64 * i) for i in range(count)]
    names = headers[names_at][4]
    return {data[names + name:data.index(b"\0", names + name)].decode(): (address, offset) for name, _, _, address, offset in headers}


def hidden_functions(data):
    """(functions in the table, addresses at which the search ends at an entry that is not the longest)."""
    places = sections(data)
    (table, at), (frames, frames_at) = places[".eh_frame_hdr"], places[".eh_frame"]
    if data[at:at + 4] != HEADER:
        sys.exit("a table of frames of another form")
    count, = struct.unpack_from("<I", data, at + 8)
    entries = [struct.unpack_from("<ii", data, at + 12 + 8 * i) for i in range(count)]

    def length(entry):
        return struct.unpack_from("<I", data, frames_at + table + entry - frames + RANGE)[0]

    hidden = []
    for begin, group in groupby(entries, key=lambda entry: entry[0]):
        lengths = [length(entry) for _, entry in group]
        if lengths[-1] < max(lengths):
            hidden.append(table + begin)
    return count, hidden


for path in sys.argv[1:]:
    with open(path, "rb") as file:
        count, hidden = hidden_functions(file.read())
    print(f"{path}: {count} functions, {len(hidden)} hidden")
    if hidden or count < 1000:
        sys.exit(f"exceptions do not pass the functions at {', '.join(map(hex, hidden[:5]))}" if hidden else "too few functions")
