// Names of operators: the table builtins.def as data, and element-wise functions.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "runtime/core/numbers/scalar_op.h"

namespace cinch::sema {

enum class BuiltinId : std::uint8_t {
#define BUILTIN(name, group, signature, meaning) name,
#include "dsl/sema/builtins.def"
};

enum class BuiltinGroup : std::uint8_t {
  Map,
  Reduce,
  Scan,
  Filter,
  Sort,
  Pack,
  Move,
  Random,
  Matrix,
  Collective
};

struct BuiltinInfo {
  std::string_view name;
  BuiltinGroup group;
  std::string_view signature;
  std::string_view meaning;
};

// Facts of one operator; total over the enum.
const BuiltinInfo& builtin_info(BuiltinId id);
// The operator of that name, if there is one.
std::optional<BuiltinId> find_builtin(std::string_view name);
// Rows of the table; ids are 0 … num_builtins() - 1.
std::size_t num_builtins();

std::span<const std::string_view> scalar_functions();
/// The operation of that name, where programs may call it: `+` alone has the name `add`.
std::optional<ScalarOp> find_scalar_function(std::string_view name);
/// Does a call of this name mean an operator of the language, unless the file has such a fn?
bool is_operator_name(std::string_view name);

}  // namespace cinch::sema
