// Wires: counts, fields and parts as declared, and as the program publishes them.
#pragma once

#include <cstdint>
#include <map>

#include "dsl/sema/elaboration/part.h"

namespace cinch::sema {

class WireItems : Part {
 public:
  using Part::Part;

  /// The compressor's wire, declared or inherited.
  void elaborate_wire(Instance& instance);
  /// A type with the sizes of these arrays in the place of counts.
  Type with_counts(Type type, const std::map<HostExprId, HostExprId>& bound);
  /// Requires before launch that sizes and bounds of the wire are possible.
  void check_wire_sizes(Instance& instance);
  /// The wire as the program's payload has it.
  void publish_wire(Instance& instance);

 private:
  Instance* inner_named(const ast::Name& name);
  bool has_wire_room(const Instance& instance, std::size_t more, const ast::Name& part);
  void begin_wire_part(Instance& instance, const ast::WireField& node);
  void add_part_fields(Instance& instance, const ast::WireField& node);
  void elaborate_wire_count(Instance& instance, const ast::WireCount& node);
  void elaborate_wire_field(Instance& instance, const ast::WireField& node);
  bool elaborate_packing(WireField& field, const ast::WireField& node);
  HostExprId log2_of(HostExprId x);
  HostExprId most_unary_bits(const WireField& field, HostExprId len);
  HostExprId most_words(const WireField& field, HostExprId most);
  void publish_packed(const WireField& field, rt::FieldInfo& info);

  std::uint32_t next_placeholder_ = 1u << 20;
};

}  // namespace cinch::sema
