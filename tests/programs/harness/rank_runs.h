// Programs with a `sync` over ranks: the same steps by the interpreter, by sessions on the CPU and
// by sessions on an emulated GPU, each rank a thread.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/ir/ir.h"
#include "runtime/gpu/session/session.h"
#include "runtime/session/session.h"

namespace cinch::testing {

/// What one step gave one rank.
struct RankResult {
  std::string error;                              // kind and, of sessions on the CPU, message
  std::vector<float> update;                      // empty after an error
  std::vector<std::vector<std::uint8_t>> states;  // stored bytes
};
/// By step, then by rank.
using RankResults = std::vector<std::vector<RankResult>>;

/// Gradients by step, then by rank; options are those of every rank but for `worker`.
struct RankCase {
  rt::SessionOptions options;
  std::vector<std::vector<std::vector<float>>> gradients;
};

RankResults interpret_ranks(const ir::Program& program, const RankCase& one_case);
RankResults run_ranks_on_cpu(const std::shared_ptr<const rt::LoadedProgram>& program,
                             const RankCase& one_case);
/// `tuning`: none for the device's own.
RankResults run_ranks_on_gpu(const std::shared_ptr<const rt::GpuProgram>& program,
                             const RankCase& one_case,
                             const std::optional<rt::GpuTuning>& tuning = {});

/// Empty where both are the same bit for bit; else what differs first. Errors are compared by
/// whether there is one.
std::string compare(const RankResults& expected, const RankResults& found);

/// Empty where all ranks of each step have the same update, or an error all.
std::string find_disagreement(const RankResults& results);

}  // namespace cinch::testing
