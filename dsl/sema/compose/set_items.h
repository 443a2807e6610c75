// `set inner.ratio = e`: a wrapper's value for a run-time parameter of what it wraps, computed on
// the host before each call. In `e`, `inner.ratio` is the value that the parameter has without it.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dsl/sema/compose/parameters.h"
#include "dsl/sema/elaboration/part.h"

namespace cinch::sema {

/// A parameter of a wrapped compressor.
struct InnerParam {
  Instance* owner;
  const ast::Param* param;
};

class SetItems : Part {
 public:
  using Part::Part;

  /// `inner.ratio` within a `set`.
  Value inner_param_value(const ast::FieldRef& node);
  /// One `set` item.
  void elaborate_set(Instance& instance, const ast::SetItem& node);
  /// Checks that sizes which were set are possible, and that a part is at most the whole.
  void check_set_elements(const Instance& instance);
  /// Checks before launch all that was set.
  void check_set_values();

 private:
  std::optional<InnerParam> search_param(Instance& inner, std::string_view name);
  Instance* find_inner(Instance& from, std::span<const ast::Name> path);
  std::optional<InnerParam> find_inner_param(Instance& from, std::span<const ast::Name> path);
  bool has_param(Instance& from, std::span<const ast::Name> path);
  Value given_value(const ast::SetItem& node);
  HostExprId set_value(const Value& value, DType dtype);
  void set_elements(Instance& instance, const ast::SetItem& node, const Value& value);
  void set_rows(Instance& inner, const Instance& outer, HostExprId rows, Span span);
  void require_set_value(const ast::SetItem& node, const ParamType& target, HostExprId value);

  // What the values of `set` must fulfil, checked before launch.
  struct SetCheck {
    HostExprId holds;
    std::string text;
    Span span;
  };
  std::vector<SetCheck> set_checks_;
  std::map<std::pair<const Instance*, const Symbol*>, Span> set_spans_;
};

}  // namespace cinch::sema
