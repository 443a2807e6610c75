// What elaboration passes along beside values: visible names, the arguments of a call, and measures
// of growth.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "dsl/sema/value.h"

namespace cinch::sema {

/// The visible names in one method, or in one inlined fn.
struct Environment {
  const FileUnit* unit = nullptr;
  Instance* instance = nullptr;  // nullptr in a fn
  std::vector<Scope> scopes;
  std::uint32_t shared_draws = 0;  // so far in the inlined method
  std::uint32_t method = 0;        // the number of the inlined method
  Instance* draw_instance =
      nullptr;  // the instance whose draws these are (in a fn: of the method that calls it)
};

/// The sorted arguments of a call of a named operator.
struct CallArgs {
  std::string name;
  Span span;
  std::vector<ast::ExprId> positional;
  std::map<std::string, const ast::Arg*, std::less<>> named;
  bool is_bad = false;  // a mistake was reported
};

struct Scatter {
  BuiltinId id;
  Keep keep = Keep::Only;

  bool needs_unique() const { return id == BuiltinId::scatter && keep == Keep::Only; }
};

/// Is this scatter, scatter_add or one of their variants?
inline bool is_scatter(BuiltinId id) {
  return id >= BuiltinId::scatter && id <= BuiltinId::scatter_max;
}

/// How many operations were made, and how many expressions were visited for them.
struct Growth {
  std::size_t operations = 0, steps = 0;
};

}  // namespace cinch::sema
