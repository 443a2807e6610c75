// The table of named operators as data.
#include "dsl/sema/builtins.h"

#include <array>
#include <cstddef>

namespace cinch::sema {

namespace {

constexpr std::array kTable{
#define BUILTIN(name, group, signature, meaning) \
  BuiltinInfo{#name, BuiltinGroup::group, signature, meaning},
#include "dsl/sema/builtins.def"
};

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

}  // namespace cinch::sema
