// Bodies of scalar_functions.h.
#include "dsl/sema/scalar_functions.h"

#include <algorithm>
#include <iterator>

#include "dsl/sema/builtins.h"

namespace cinch::sema {

namespace {

constexpr std::string_view kScalarFunctions[] = {
    "abs",      "sign",     "sqrt",  "rsqrt",  "exp",
    "exp2",     "log",      "log2",  "pow",    "sin",
    "cos",      "floor",    "ceil",  "round",  "trunc",
    "min",      "max",      "clamp", "fma",    "isnan",
    "isfinite", "popcount", "clz",   "select", "divide_or_zero",
    "ceil_div"};

}  // namespace

std::span<const std::string_view> scalar_functions() {
  return kScalarFunctions;
}

std::optional<ScalarOp> find_scalar_function(std::string_view name) {
  const auto at = std::find(std::begin(kScalarFunctions), std::end(kScalarFunctions), name);
  return at == std::end(kScalarFunctions) ? std::nullopt : find_scalar_op(name);
}

bool is_operator_name(std::string_view name) {
  return find_builtin(name).has_value() || find_scalar_function(name).has_value();
}

}  // namespace cinch::sema
