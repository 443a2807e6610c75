// C++ functions of `extern fn` in emitted text. Each lies in a namespace of its own, so that no
// name of a header meets another.
#pragma once
#include <set>
#include <span>
#include <string>

#include "codegen/kir/kir.h"

namespace cinch::codegen {

/// Entries of ProgramInfo::externs that the kernels call.
std::set<std::uint32_t> called_externs(std::span<const kir::Kernel* const> kernels);

/// Definitions for inside namespace cinch, behind the language's own functions.
std::string extern_definitions(const rt::ProgramInfo& info, const std::set<std::uint32_t>& which);
std::string extern_definition(const rt::ExternInfo& function, std::uint32_t index);

/// A call over scalars in compute types, as an expression of the result's compute type.
std::string extern_call(const rt::ProgramInfo& info, std::uint32_t index,
                        std::span<const std::string> operands);

}  // namespace cinch::codegen
