// Which of many diagnostics are shown. For the renderers.
#pragma once
#include <string>
#include <vector>

#include "dsl/diag/diag.h"

namespace cinch::dsl {

/// At most kMostShown of them, in their order: errors before all else, and the first ones.
struct Shown {
  std::vector<const Diagnostic*> diags;
  std::size_t num_errors = 0;  // of all
  std::size_t errors_left_out = 0, others_left_out = 0;

  std::size_t num_left_out() const { return errors_left_out + others_left_out; }
  /// "4950 more errors and 2 more warnings are not shown"; empty where all are.
  std::string left_out_text() const;
};
Shown choose_shown(const std::vector<Diagnostic>& diags);

}  // namespace cinch::dsl
