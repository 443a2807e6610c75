// The order of passes and the manager that runs them: verifies after every pass, prints, times,
// counts rewrites and stops at a limit. A pass that leaves a broken program is an InternalError
// that names it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/ir.h"
#include "compiler/passes/pass_context.h"

namespace cinch::pipeline {

/// A pass by name: the name of its file, its option and its test folder.
struct Pass {
  std::string_view name;
  void (*run)(ir::Program&, passes::PassContext&);
  std::string_view doc;
};

/// Every pass, once.
std::span<const Pass> all_passes();
/// The pass of that name, or nullptr.
const Pass* find_pass(std::string_view name);
/// The order in which a program is compiled; a pass may stand in it more than once.
std::span<const std::string_view> standard_order();

struct Options {
  /// Passes to run; empty: the standard order. A name that is none is an InternalError: check with
  /// find_pass first.
  std::vector<std::string> passes;
  /// After passes of these names ("all": after every pass) `print` gets a title and the program.
  std::vector<std::string> print_after;
  std::function<void(std::string_view title, const std::string& program)> print;
  /// Rewrites over all passes together; none: no limit.
  std::optional<std::int64_t> pass_limit;
  /// How constant functions are evaluated (the interpreter); without it constant arrays stay.
  passes::PassContext::Evaluate evaluate;
};

struct PassTime {
  std::string name;
  double seconds = 0;
  std::int64_t num_rewrites = 0;
};

struct Report {
  std::vector<PassTime> times;
  std::vector<passes::Remark> remarks;
  std::int64_t num_rewrites = 0;
};

/// Runs the passes on the program in place.
Report run(ir::Program& program, const Options& options);

}  // namespace cinch::pipeline
