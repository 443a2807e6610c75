// The order of passes, and the manager that runs them. It verifies after every pass, prints,
// measures time, counts rewrites and stops at a limit. If a pass leaves a broken program, an
// InternalError names the pass.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/ir.h"
#include "compiler/passes/passes.h"

namespace cinch::pipeline {

/// A pass by name, which is also the name of its file, its option and its test folder.
struct Pass {
  std::string_view name;
  void (*run)(ir::Program&, passes::PassContext&);
  std::string_view doc;
};

/// Every pass, once.
std::span<const Pass> all_passes();
/// The pass with that name, or nullptr.
const Pass* find_pass(std::string_view name);
/// The order in which passes compile a program; a pass may occur more than once.
std::span<const std::string_view> standard_order();

struct Options {
  /// Passes to run; empty: the standard order. An unknown name is an InternalError: check with
  /// find_pass first.
  std::vector<std::string> passes;
  /// After passes with these names ("all": every pass) `print` gets a title and the program.
  std::vector<std::string> print_after;
  std::function<void(std::string_view title, const std::string& program)> print;
  /// The limit of rewrites over all passes together; none: no limit.
  std::optional<std::int64_t> pass_limit;
  /// Evaluates constant functions (by the interpreter); without it constant arrays stay.
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
