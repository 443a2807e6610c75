// Elaborates encode, decode, finish and sync of the outermost compressor. Inlines those of wrapped
// compressors where `inner.encode(x)` and the like are called.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "dsl/sema/checked.h"
#include "dsl/sema/elaboration/part.h"

namespace cinch::sema {

/// A collective on which ranks may disagree, a `sendrecv` to the same rank from all ranks, or an
/// update that differs.
struct Disagreement {
  enum class Kind : std::uint8_t {
    Way,       // ranks may not all reach it: `cause` is the condition
    Size,      // arrays may differ in size: `cause` is the array
    Receiver,  // all ranks send to one rank, which `cause` names
    Root,      // ranks may name different roots: `cause` is the root
    Update,    // the update, `collective`, depends on what only this rank has: `cause`
  };
  Span collective;
  BuiltinId operation{};
  Span cause;
  Kind kind = Kind::Way;
};

/// Returns disagreements in source order, one for each collective. Sound but incomplete: a value
/// may differ if it depends on the gradient, on `worker`, on draws that are not shared, on shared
/// draws behind a loop whose bounds may differ, or on a state that was assigned such a value, until
/// an `allreduce`, `allgather` or `broadcast` gives it to all. Of an update that was made of what
/// one rank sent to another, nobody knows before it runs.
std::vector<Disagreement> find_disagreements(const CheckedProgram& program, const Body& sync);

/// The same of the update that `finish` makes of the sum, which all ranks have, and of the states,
/// which `encode` makes of this rank's gradient.
std::vector<Disagreement> find_disagreements(const CheckedProgram& program, const Body& encode,
                                             const Body& finish);

/// Methods and the payloads that they exchange.
class Bodies : Part {
 public:
  using Part::Part;

  /// The parameter of a method; nullptr if it has none or several.
  const ast::Param* method_param(Instance& instance, ast::MethodKind kind);
  /// Inlines the compressor's encode of `g`. Returns a wire literal.
  Value encode_value(Instance& instance, const Value& g, Span span);
  Value decode_value(Instance& instance, const Value& payload, Span span);
  /// Inlines the compressor's finish. A compressor without one computes the mean.
  Value finish_value(Instance& instance, const Value& sum, Span span);
  void elaborate_bodies(Instance& instance);
  /// Reshapes a value to a wrapped compressor's gradient. Reports a different number of elements.
  Value inner_argument(const Value& value, Instance& inner, Span span);
  /// Inlines a wrapped compressor's encode in finish. All ranks draw the same numbers there.
  /// Reports states that differ between ranks.
  Value encode_in_finish(Instance& inner, const Value& g, Span span);
  /// Reshapes a wrapped compressor's result to the wrapper's gradient.
  Value outer_result(Value value, const Instance& inner, Span span);

  // Checks wire literals against the wire's fields, takes counts from the arrays, and makes payload
  // variables and their fields.
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
  Type gradient_type(const Instance& instance);
  Value gradient_value(Instance& instance, Span span);
  Value gradient_result(const Value& value, Instance& instance, std::string_view what);
  Value program_result(const Value& value);
  Value method_block(Instance& instance, ast::MethodKind kind, const Value& arg, Span span,
                     const std::function<Value(Value)>& finish);
  bool has_finish(const Instance& instance) const;
  Body body_of(BodyKind kind, Instance& instance, const std::function<Value()>& make);
  void elaborate_encode(Instance& instance);
  void elaborate_decode(Instance& instance);
  void check_agreement(const Instance& instance,
                       const std::function<std::vector<Disagreement>()>& find);
  const Instance* rank_states(const Instance& instance) const;
  bool fill_wire_part(const WirePart& part, Value given, Span span, std::vector<Value>& values,
                      std::vector<bool>& is_given);
  bool bind_counts(Instance& owner, const std::vector<Value>& values,
                   std::map<HostExprId, HostExprId>& bound);
  bool check_packed(const WireField& field, const Value& value);
  Value make_wire(Instance& owner, const std::vector<Value>& given, Span span);
  Value payload_field_at(const Value& payload, std::uint32_t index, Span span);

  int depth_ = 0;                        // number of nested inlined methods
  std::vector<IndexFacts> field_facts_;  // of the program's payload, as encode fills it
  std::map<std::uint32_t, std::vector<IndexFacts>> wire_facts_;     // by wire literal
  std::map<std::uint32_t, std::vector<IndexFacts>> payload_facts_;  // by payload variable
};

}  // namespace cinch::sema
