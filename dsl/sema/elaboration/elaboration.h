// Elaboration turns one compressor (or one fn) into a CheckedProgram. Its rules need names, types
// and sizes at once and call one another, so each group of rules is a class that sees the whole
// through this struct. A method that finds a mistake reports it and returns an error value. Error
// values cause no further reports.
#pragma once

#include <vector>

#include "dsl/sema/bodies/methods.h"
#include "dsl/sema/compose/items.h"
#include "dsl/sema/elaboration/part.h"
#include "dsl/sema/expressions/expressions.h"
#include "dsl/sema/operators/operators.h"
#include "dsl/sema/sizes/size_prover.h"
#include "dsl/sema/tree/tree.h"
#include "dsl/sema/types/conversions.h"

namespace cinch::sema {

struct Elaboration {
  Elaboration(ModuleData& module, Reporter& reporter) : module(module), reporter(reporter) {}
  Elaboration(const Elaboration&) = delete;
  Elaboration& operator=(const Elaboration&) = delete;

  /// Elaborates a compressor with values for open parameters. With `is_check`, parameters without a
  /// default get a value. The program is in `out`. Returns false if a mistake was reported.
  bool run(Spec& spec, const ast::Name& name, const std::vector<Binding>& bindings, bool is_check);

  ModuleData& module;
  Reporter& reporter;
  CheckedProgram out;
  Mode mode;
  Environment* env = nullptr;  // the visible names

  // Sizes and types of values.
  SizeScope sizes{out.info};
  TypeRules types{*out.info.exprs, sizes.prover(), mode};

  // The tree, and what is known of its values.
  TreeBuilder build{*this};
  GrowthLimits growth{*this};
  Descriptions text{*this};
  ValueNumbering numbering{*this};
  IndexFactTracker facts{*this};
  Counts counts{*this};

  // Numbers and conversions.
  Conversions conversions{*this};
  Numbers numbers{*this};

  Expressions exprs{*this};
  Calls calls{*this};
  Operators operators{*this};

  // Compressors: items of a composition, then bodies.
  Items items{*this};
  Parameters params{*this};
  Bodies bodies{*this};
};

}  // namespace cinch::sema
