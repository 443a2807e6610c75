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

/// The result of one step on one rank.
struct RankResult {
  std::string error;                              // kind and, for sessions on the CPU, message
  std::vector<float> update;                      // empty after an error
  std::vector<std::vector<std::uint8_t>> states;  // stored bytes
};
/// By step, then by rank.
using RankResults = std::vector<std::vector<RankResult>>;

/// Gradients by step, then by rank; options are the same for every rank except `worker`.
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

/// Returns "" if both are the same bit for bit; else the first difference. Of errors only their
/// presence is compared.
std::string compare(const RankResults& expected, const RankResults& found);

/// Returns "" if in each step all ranks have the same update, or all an error.
std::string find_disagreement(const RankResults& results);

}  // namespace cinch::testing
