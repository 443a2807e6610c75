// Ranks of one synchronisation as threads over loopback, for tests.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/collective/loopback.h"
#include "runtime/planner/planner.h"
#include "runtime/session/loaded_program.h"
#include "runtime/sync/sync_session.h"
#include "tests/programs/harness/program_file.h"

namespace cinch::testing {

using Programs = std::vector<std::shared_ptr<const rt::LoadedProgram>>;
using Tensors = std::vector<std::vector<float>>;

/// A program of any expression over the standard library: "topk(ratio: 0.1)".
ProgramFile library_file(const std::string& expression);
/// Each is compiled once per process.
std::shared_ptr<const rt::LoadedProgram> compiled_library(const std::string& expression);

/// The last compressor of a text.
std::shared_ptr<const rt::LoadedProgram> compiled_text(const std::string& name,
                                                       const std::string& text);

/// Facts of programs of these two functions. Appends what carries their sums to `programs`.
std::vector<rt::CodecFacts> facts_of(Programs& programs, std::uint32_t world);

/// The same sizes and bits?
bool are_same(const Tensors& a, const Tensors& b);

/// Gradients of one rank and step; the same arguments give the same gradients.
Tensors make_gradients(const rt::Plan& plan, std::uint32_t rank, std::uint64_t step);

/// Runs on a thread for each rank, with its session.
struct RankBody {
  rt::Transport& transport;
  std::uint32_t rank;
};
void run_ranks(rt::LoopbackWorld& world, std::uint32_t num_ranks,
               const std::function<void(const RankBody&)>& body);

/// Updates of one step by rank, then by tensor; a failed rank has an error instead.
struct StepResult {
  std::vector<Tensors> updates;
  std::vector<std::string> errors;
};

struct SyncCase {
  std::shared_ptr<const rt::Plan> plan;
  Programs programs;
  rt::LinkShape shape;
  std::uint64_t num_steps = 2;
  std::uint64_t seed = 17;
  std::uint32_t machine_ranks = 0;                     // as of SyncOptions
  std::vector<std::optional<rt::SyncDevice>> devices;  // by rank; empty: all on CPUs
  std::chrono::milliseconds timeout{30000};
  /// Changes the result of make_gradients; may be empty.
  std::function<void(std::uint32_t rank, std::uint64_t step, Tensors&)> change_gradients;
};
Tensors gradients_of(const SyncCase& one_case, std::uint32_t rank, std::uint64_t step);
/// Of one rank.
rt::SyncOptions sync_options(const SyncCase& one_case, std::uint32_t rank);
/// A case for a plan request; tensors of codec 0 have the program; null: none has one.
SyncCase make_sync_case(const std::shared_ptr<const rt::LoadedProgram>& program,
                        rt::PlanRequest request);
/// All steps, by step.
std::vector<StepResult> run_steps(const SyncCase& one_case);

/// All states that a rank keeps, by piece and site.
using States = std::map<std::pair<std::uint32_t, rt::Site>, std::vector<std::uint8_t>>;
States states_of(rt::SyncSession& session);

/// Takes a step with tensors of f32.
rt::Status step_on(rt::SyncSession& session, const Tensors& gradients, Tensors& updates,
                   std::uint64_t step);

}  // namespace cinch::testing
