// What elaboration hands around beside values: names in sight, the arguments of a call, what grew.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "dsl/sema/value.h"

namespace cinch::sema {

/// Names in sight: of one method, or of one inlined fn.
struct Environment {
  const FileUnit* unit = nullptr;
  Instance* instance = nullptr;  // nullptr in a fn
  std::vector<Scope> scopes;
  std::uint32_t shared_draws = 0;  // so far in the method that is inlined
  Instance* draw_instance =
      nullptr;  // whose draws these are (in a fn: of the method that calls it)
};

/// Arguments of a call to a named operator, sorted out.
struct CallArgs {
  std::string name;
  Span span;
  std::vector<ast::ExprId> positional;
  std::map<std::string, const ast::Arg*, std::less<>> named;
  bool is_bad = false;  // a mistake was reported
};

/// Which scatter.
struct Scatter {
  BuiltinId id;
  Keep keep = Keep::Only;

  bool needs_unique() const { return id == BuiltinId::scatter && keep == Keep::Only; }
};

/// scatter, scatter_add and their like.
inline bool is_scatter(BuiltinId id) {
  return id >= BuiltinId::scatter && id <= BuiltinId::scatter_max;
}

/// How much has been made, and how much was looked at for it.
struct Growth {
  std::size_t operations = 0, steps = 0;
};

}  // namespace cinch::sema
