// The fingerprint of a compiled compressor. Every payload's header carries it, so that a payload of
// another compressor, or of the same one with other constants, is rejected. The ProgramInfo must be
// complete.
#pragma once
#include <array>
#include <cstdint>

#include "runtime/core/program_info.h"

namespace cinch::rt {

/// 128 bits over the compressor's name, its constants, whether it takes a matrix, the wire (counts
/// with their bounds, fields with types, shapes, reductions and index rules), and the text of each
/// C++ function that it calls. Formulas enter as text with the parameters' names, so that the
/// numbering of the expression pool does not matter. The same on every machine and target.
std::array<std::uint64_t, 2> fingerprint(const ProgramInfo& info);

}  // namespace cinch::rt
