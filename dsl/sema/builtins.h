// The enum of named operators, generated from builtins.def.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

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

}  // namespace cinch::sema
