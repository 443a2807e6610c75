// The compressors of a composition, and their items in order.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "dsl/sema/elaboration/part.h"

namespace cinch::sema {

class Instances : Part {
 public:
  using Part::Part;

  /// Starts the numbering of draws and of inlined methods again, once per body.
  void restart_draws();
  /// How many methods were inlined in this body.
  std::uint32_t num_methods() const { return num_methods_; }
  /// Adds the outermost compressor and all that it wraps.
  Instance* add_root(Spec& spec);
  Instance* add_instance(Spec& spec, const std::string& prefix);
  /// Declares a name that is visible in the whole compressor. Reports a name that is taken.
  void declare_item(Instance& instance, const ast::Name& name, Symbol symbol);
  /// The names that are visible in an item or a method, which gets the next number.
  Environment environment_of(Instance& instance);
  /// Elaborates all items of the compressor and of those that it wraps.
  void elaborate_items(Instance& instance);

 private:
  void add_method(Instance& instance, const ast::Method& method);
  void add_again(Instance& instance, Span span);
  void collect_items(Instance& instance);
  void find_shape(Instance& instance);
  void check_items(Instance& instance);
  Value constant_of(const ast::Const& node);
  void elaborate_const(Instance& instance, const ast::Const& node);
  void elaborate_size(Instance& instance, const ast::SizeItem& node);
  void check_state_size(const ast::StateItem& node, const Type& type);
  Value first_value(const ast::StateItem& node, const Type& type);
  void elaborate_state(Instance& instance, const ast::StateItem& node);

  std::vector<std::unique_ptr<Instance>> instances_;
  std::uint32_t num_methods_ = 0;
};

}  // namespace cinch::sema
