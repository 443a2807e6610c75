#include "dsl/sema/builtins.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>

namespace cinch::sema {

namespace {

constexpr std::array kTable{
#define BUILTIN(name, group, signature, meaning) \
  BuiltinInfo{#name, BuiltinGroup::group, signature, meaning},
#include "dsl/sema/builtins.def"
};

constexpr std::string_view kScalarFunctions[] = {
    "abs",      "sign",     "sqrt",  "rsqrt",  "exp",
    "exp2",     "log",      "log2",  "pow",    "sin",
    "cos",      "floor",    "ceil",  "round",  "trunc",
    "min",      "max",      "clamp", "fma",    "isnan",
    "isfinite", "popcount", "clz",   "select", "divide_or_zero",
    "ceil_div"};

}  // namespace

const BuiltinInfo& builtin_info(BuiltinId id) {
  return kTable[static_cast<std::size_t>(id)];
}

std::optional<BuiltinId> find_builtin(std::string_view name) {
  for (std::size_t i = 0; i < kTable.size(); ++i) {
    if (kTable[i].name == name) return static_cast<BuiltinId>(i);
  }
  return std::nullopt;
}

std::size_t num_builtins() {
  return kTable.size();
}

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
