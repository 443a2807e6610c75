// Prints the head of the text form: ProgramInfo and the constant tables.
#pragma once

#include <string>

#include "compiler/ir/ir.h"

namespace cinch::ir {

/// The lines up to the first function.
std::string print_info(const Program& program);
/// A constant of a type from Attrs::bits (f64 bits of floats, i64 of integers), as text.
std::string print_value(DType dtype, std::uint64_t bits);

}  // namespace cinch::ir
