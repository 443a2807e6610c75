// Values as people read them: in diagnostics and their notes, and in the record of types that
// editors show.
#pragma once

#include <initializer_list>
#include <string>

#include "dsl/sema/elaboration/part.h"

namespace cinch::sema {

class Descriptions : Part {
 public:
  using Part::Part;

  /// A constant of the host as text.
  std::string number_text(const Value& value);
  /// A value in words, as in "expected …, found …".
  std::string describe(const Value& value);
  /// For editors: what is known of an expression or a name that is declared.
  void record_type(Span span, const Value& value);
  void record_type(Span span, const Symbol& symbol);
  /// Notes that say where the sizes of these values come from.
  dsl::Diagnostic& note_sizes(dsl::Diagnostic& diag, std::initializer_list<const Value*> values);

 private:
  bool records_types(Span span) const;
  void record_text(Span span, std::string text) const;
};

}  // namespace cinch::sema
