// Parses the text form of the IR (printer.h). The text may be untrusted: a fault is an error with
// line and column, never a crash.
#pragma once

#include <string>
#include <string_view>

#include "compiler/ir/ir.h"
#include "runtime/core/error.h"

namespace cinch::ir {

/// Returns the program, not yet verified. Errors (InvalidArgument): "line 3, column 7: expected
/// ':'".
rt::Result<Program> parse(std::string_view text);

}  // namespace cinch::ir
