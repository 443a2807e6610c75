// Reads the text form of the IR (printer.h) back. The text may come from a test or a file of
// someone else: what does not fit is an error with line and column, never a crash.
#pragma once

#include <string>
#include <string_view>

#include "compiler/ir/ir.h"
#include "runtime/core/error.h"

namespace cinch::ir {

/// The program; not yet verified. Errors (InvalidArgument): "line 3, column 7: expected ':'".
rt::Result<Program> parse(std::string_view text);

}  // namespace cinch::ir
