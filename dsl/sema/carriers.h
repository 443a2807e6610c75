// What carries sums of a program (docs/language/carriers.md): the compressor that its clause
// `again` names, or one that is derived from its states and claims.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "dsl/sema/composition.h"

namespace cinch::sema {

struct Carrier {
  rt::CarrierKind kind = rt::CarrierKind::Itself;
  std::string reason;          // None: why
  bool shares_draws = false;   // Program
  std::unique_ptr<Spec> spec;  // Program
};

class Carriers {
 public:
  Carriers(ModuleData& module, Reporter& reporter) : module_(module), reporter_(reporter) {}

  /// The carrier of a program, whose parameters keep their names from outside in it. Reports
  /// mistakes in clauses.
  Carrier of_program(Spec& spec);
  /// The same as a fact of the program, with values of open parameters as bound or by default.
  rt::SumCarrier describe(const Carrier& carrier, const std::vector<Binding>& bindings);

 private:
  Carrier of(Spec& spec);
  Carrier of_clause(Spec& spec, const ast::Item& item, const ast::Again& clause);
  bool carries_itself(std::unique_ptr<Spec>& made, const Span& span, bool& shares_draws);
  Carrier derived(Spec& spec);
  std::string text_of(const Spec& spec, const std::vector<Binding>& bindings);
  std::string value_text(const Spec& spec, const ast::Param& param,
                         const std::vector<Binding>& bindings);

  ModuleData& module_;
  Reporter& reporter_;
  std::vector<const ast::Compressor*> open_;  // compressors whose clauses led here
};

/// The bindings that reach a carrier: those of parameters that the program passes on to it.
std::vector<Binding> bindings_of_carrier(Spec& carrier, const std::vector<Binding>& bindings);

}  // namespace cinch::sema
