// Checks wire literals against the wire's fields, takes counts from the arrays, and makes payload
// variables and their fields.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "dsl/sema/elaboration/part.h"

namespace cinch::sema {

class Payloads : Part {
 public:
  using Part::Part;

  /// The compressor that declares the wire of this one, which may be inherited.
  const Instance* wire_owner(const Instance& instance) const;
  /// `wire { … }`.
  Value wire_literal(const ast::WireLiteral& node, Span span);
  /// The WireLiteral inside the blocks of an encode's value.
  ExprId literal_of(const Value& wire) const;
  /// Turns the value of an encode into a payload of `instance`.
  Value as_wire(const Value& value, Instance& instance, Span span);
  /// Makes a variable for the payload of an inlined encode.
  Value payload_of(Instance& owner, const Value& wire, std::string name, Span span);
  /// Remembers what the reader of a payload checks, so that decode can rely on it.
  void note_field_facts(const Value& wire);
  /// A field or a part of a payload.
  Value payload_field(const Value& payload, const ast::Name& field, Span span);
  /// Makes the payload variable of the program's decode.
  Value program_payload(Instance& instance);
  /// Used if encode has mistakes: decode is then checked as if the fields were correct.
  void assume_field_facts(const Instance& instance);

 private:
  bool fill_wire_part(const WirePart& part, Value given, Span span, std::vector<Value>& values,
                      std::vector<bool>& is_given);
  bool bind_counts(Instance& owner, const std::vector<Value>& values,
                   std::map<HostExprId, HostExprId>& bound);
  bool check_packed(const WireField& field, const Value& value);
  Value make_wire(Instance& owner, const std::vector<Value>& given, Span span);
  Value payload_field_at(const Value& payload, std::uint32_t index, Span span);

  std::vector<IndexFacts> field_facts_;  // of the program's payload, as encode fills it
  std::map<std::uint32_t, std::vector<IndexFacts>> wire_facts_;     // by wire literal
  std::map<std::uint32_t, std::vector<IndexFacts>> payload_facts_;  // by payload variable
};

}  // namespace cinch::sema
