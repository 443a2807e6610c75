// Text about values: in diagnostics and their notes, and in the record of types that editors show.
#pragma once

#include <initializer_list>
#include <string>

#include "dsl/sema/elaboration/part.h"

namespace cinch::sema {

class Descriptions : Part {
 public:
  using Part::Part;

  std::string number_text(const Value& value);
  /// A value in words, for "expected …, found …".
  std::string describe(const Value& value);
  /// Records for editors what is known of an expression or a declared name.
  void record_type(Span span, const Value& value);
  void record_type(Span span, const Symbol& symbol);
  /// Adds notes about the places where the sizes of these values come from.
  dsl::Diagnostic& note_sizes(dsl::Diagnostic& diag, std::initializer_list<const Value*> values);

 private:
  bool records_types(Span span) const;
  void record_text(Span span, std::string text) const;
};

}  // namespace cinch::sema
