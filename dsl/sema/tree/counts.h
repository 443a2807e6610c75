// Counts are the numbers of elements that filters keep. Filters with the same mask share a count. A
// filter in decode keeps as many elements as encode sent, if encode used the same mask and decode
// can compute that mask from the payload.
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

  /// Forgets the counts of other bodies.
  void begin_body() { counts_by_mask_.clear(); }
  /// The wire literal that fills encode's payload; invalid before encode.
  ExprId sent_literal() const { return sent_literal_; }
  /// The entry of ProgramInfo::counts for a filter with this mask and limit. Reports a count
  /// without a bound.
  std::optional<std::uint32_t> count_of_mask(const Value& mask, HostExprId limit, HostExprId len,
                                             Span span);
  /// The count of an array from other ranks; one for each key.
  std::uint32_t received(const std::string& key, HostExprId most);
  /// Names the counts of a type after the first named array of that length.
  void name_counts(const Type& type, const ast::Name& name);
  /// Equal keys mean equal masks and equal limits.
  std::string count_key(const Value& mask, HostExprId limit);
  /// Remembers what encode sent: its counts by their filters' masks, and the values of its fields.
  void note_sent_counts(const Instance& instance, const Value& wire);
  /// Adds checks that counts of the wire are equal if the same mask filled them.
  void check_twin_counts(Span span);
  /// If the same mask filled two counts of the wire, fields with the second get the first.
  Value with_first_count(const Value& field, Span span);
  /// Adds a note why a filter in decode may keep another number of elements than encode sent.
  void note_masks(dsl::Diagnostic& diag, std::initializer_list<const Value*> values);
  /// The wire's count that equals the count of this filter, if the payload is valid.
  std::optional<std::uint32_t> sent_count(const std::string& key) const;
  /// Checks that the filter kept as many elements as the wire says, and gives the result the wire's
  /// count.
  Value as_sent(const Value& result, std::uint32_t count, const CallArgs& args);

 private:
  std::map<std::string, std::uint32_t> counts_by_mask_;
  std::set<HostExprId> unnamed_counts_;  // named only by the compiler so far
  // The wire's counts by key, as encode filled them.
  std::map<std::string, std::uint32_t> sent_counts_;
  // By the second of two counts of the wire with the same mask: the first.
  std::map<std::uint32_t, std::uint32_t> twin_counts_;
  ExprId sent_literal_;
};

}  // namespace cinch::sema
