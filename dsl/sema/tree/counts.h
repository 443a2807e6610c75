// Counts: how many elements filters keep. Filters by one mask share a count; and a filter in decode
// finds as many elements as encode sent where encode filtered by the same mask, made of what decode
// reads from the payload.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "dsl/sema/elaboration/part.h"

namespace cinch::sema {

class Counts : Part {
 public:
  using Part::Part;

  /// Counts of other bodies are not seen.
  void begin_body() { counts_by_mask_.clear(); }
  /// What the fields of encode's payload hold; invalid before encode.
  ExprId sent_literal() const { return sent_literal_; }
  /// The entry of ProgramInfo::counts for what this mask and limit keep; reports where it has no
  /// bound.
  std::optional<std::uint32_t> count_of_mask(const Value& mask, HostExprId limit, HostExprId len,
                                             Span span);
  /// The count of an array that arrives from other ranks; one for each key.
  std::uint32_t received(const std::string& key, HostExprId most);
  /// Names the counts of a type after the first array of that length that has a name.
  void name_counts(const Type& type, const ast::Name& name);
  /// Equal keys mean masks of one value, and one limit.
  std::string count_key(const Value& mask, HostExprId limit);
  /// Remembers what encode sent: its counts by their filters' masks, and the values of its fields.
  void note_sent_counts(const Instance& instance, const Value& wire);
  /// Checks that counts of the wire are equal which one mask filled.
  void check_twin_counts(Span span);
  /// If one mask filled two counts of the wire, fields of the second get the first count.
  Value with_first_count(const Value& field, Span span);
  /// Notes why a filter in decode may find another number of elements than encode sent.
  void note_masks(dsl::Diagnostic& diag, std::initializer_list<const Value*> values);
  /// The wire's count that equals what this filter keeps, if encode was honest.
  std::optional<std::uint32_t> sent_count(const std::string& key) const;
  /// Checks that the filter found as many as the wire says, and gives the result the wire's count.
  Value as_sent(const Value& result, std::uint32_t count, const CallArgs& args);

 private:
  std::map<std::string, std::uint32_t> counts_by_mask_;
  std::set<HostExprId> unnamed_counts_;               // whose name is still the compiler's
  std::map<std::string, std::uint32_t> sent_counts_;  // of encode: the wire's count by the same key
  std::map<std::uint32_t, std::uint32_t> twin_counts_;  // of the wire: the first of one filter
  ExprId sent_literal_;
};

}  // namespace cinch::sema
