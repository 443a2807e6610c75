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
  /// The count of what arrives from other ranks: one for each key.
  std::uint32_t received(const std::string& key, HostExprId most);
  /// A count that a filter made has the name of the first array of that length that has one.
  void name_counts(const Type& type, const ast::Name& name);
  /// The same for masks of one value and one limit.
  std::string count_key(const Value& mask, HostExprId limit);
  /// What encode has sent: its counts by their filters' masks, and what its fields hold.
  void note_sent_counts(const Instance& instance, const Value& wire);
  /// Counts of the wire that one mask filled are one count in decode.
  void check_twin_counts(Span span);
  /// A field of the payload whose count is that of another by one mask has the other's.
  Value with_first_count(const Value& field, Span span);
  /// A note where a filter in decode is not known to find as many elements as encode sent.
  void note_masks(dsl::Diagnostic& diag, std::initializer_list<const Value*> values);
  /// The count of the program's wire that is as large as what this filter keeps, if encode was
  /// honest.
  std::optional<std::uint32_t> sent_count(const std::string& key) const;
  /// The filter's result with the wire's count, once both are checked to be equal.
  Value as_sent(const Value& result, std::uint32_t count, const CallArgs& args);

 private:
  std::map<std::string, std::uint32_t> counts_by_mask_;
  std::set<HostExprId> unnamed_counts_;               // whose name is still the compiler's
  std::map<std::string, std::uint32_t> sent_counts_;  // of encode: the wire's count by the same key
  std::map<std::uint32_t, std::uint32_t> twin_counts_;  // of the wire: the first of one filter
  ExprId sent_literal_;
};

}  // namespace cinch::sema
