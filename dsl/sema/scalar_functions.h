// Element-wise functions that programs call by name, and what else is an operator's name.
#pragma once
#include <optional>
#include <span>
#include <string_view>

#include "runtime/core/numbers/scalar_op.h"

namespace cinch::sema {

std::span<const std::string_view> scalar_functions();
/// The operation of that name, where programs may call it: `+` alone has the name `add`.
std::optional<ScalarOp> find_scalar_function(std::string_view name);
/// Does a call of this name mean an operator of the language, unless the file has such a fn?
bool is_operator_name(std::string_view name);

}  // namespace cinch::sema
