// The prelude's files (codegen/prelude), and those that the host includes too, as text for emitters
// to put in front of kernels.
#pragma once
#include <span>
#include <string_view>

namespace cinch::codegen {

struct PreludePart {
  std::string_view name;  // "cpu/reduce.h", "runtime/image/kernel_abi.h"
  std::string_view text;
};

/// All files; a part needs those that its opening comment names.
std::span<const PreludePart> prelude_parts();
/// Throws InternalError{Bug} for a name that is not there.
std::string_view prelude_text(std::string_view name);

}  // namespace cinch::codegen
