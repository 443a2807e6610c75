// Operators that programs call by name: those of builtins.def, and element-wise functions.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "runtime/core/numbers/scalar_eval.h"

namespace cinch::sema {

enum class BuiltinId : std::uint8_t {
#define BUILTIN(name, group, call, signature, meaning) name,
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

const BuiltinInfo& builtin_info(BuiltinId id);
std::optional<BuiltinId> find_builtin(std::string_view name);
// The number of rows of the table. Ids are 0 … num_builtins() - 1.
std::size_t num_builtins();

std::span<const std::string_view> scalar_functions();
/// The operation that a program calls by this name. Programs cannot call some operations by name:
/// `add` is only written `+`.
std::optional<ScalarOp> find_scalar_function(std::string_view name);
/// Does a call of this name mean an operator of the language? (A fn of the file with this name
/// takes precedence.)
bool is_operator_name(std::string_view name);

}  // namespace cinch::sema
