// What `cinch sync` synchronises: the tensors of a rank, and which program compresses which.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compiler/driver/options.h"
#include "runtime/call/tensor_view.h"
#include "runtime/payload/npy.h"
#include "runtime/plan/plan.h"
#include "runtime/session/loaded_program.h"

namespace cinch::driver {

using Program = std::shared_ptr<const rt::LoadedProgram>;

// A file, or all .npy files of a folder in the order of their names.
struct RankTensors {
  std::vector<std::string> names;  // of files without .npy; of a single one "gradient"
  std::vector<rt::NpyArray> arrays;
  bool is_folder = false;
};

// By --profile: the tensors in the order in which they become ready, and when, in seconds from the
// beginning of the backward pass. Throws CommandError where the profile has others, or other sizes.
std::vector<double> order_by_profile(const SyncCommandOptions& options, RankTensors& tensors);

// The name with the rank in place of every "%r".
std::string of_rank(std::string name, std::uint32_t rank);

// The input of one rank: its own, or the one whose name has %r. Throws CommandError.
std::string input_of(const SyncCommandOptions& options, std::uint32_t rank);
// How many ranks the inputs are for: several, or as many as there are files of the name with %r.
std::uint32_t num_input_ranks(const SyncCommandOptions& options);
RankTensors read_tensors(const SyncCommandOptions& options, std::uint32_t rank);
// Throws CommandError where names or shapes differ; `name` is the other's.
void check_same_tensors(const RankTensors& first, const RankTensors& other,
                        const std::string& name);

// By codec and by tensor of a plan.
struct SyncSubject {
  std::vector<Program> programs;
  std::vector<ProgramOptions> sources;  // of the programs
  std::vector<rt::PlanTensor> tensors;
  std::vector<std::uint32_t> sent;  // by tensor of the plan: which of the rank's
  std::vector<std::uint32_t> off;   // of the rank's: those that are not synchronised
};

// By --policy; without one, a folder's tensors as usual, and a single gradient by the program. No
// program ("none") leaves every tensor exact that no rule gives one. Throws CommandError.
SyncSubject assign_programs(const SyncCommandOptions& options, const RankTensors& tensors);

// Updates by tensor of the plan: to a file, or, of tensors from a folder, to files in one. Throws
// CommandError.
void write_updates(const std::string& path, const SyncSubject& subject, const RankTensors& tensors,
                   const std::vector<std::vector<float>>& updates);

// --state-in: what all ranks of an earlier run saved, as many as its first one says; without "%r"
// in its name one. Empty where none is asked for. Throws CommandError, which names the file.
std::vector<std::vector<std::uint8_t>> read_saved_states(const SyncCommandOptions& options);
// --state-out: what one rank saved. Throws CommandError.
void write_saved_states(const SyncCommandOptions& options, std::uint32_t rank,
                        std::span<const std::uint8_t> states);
// Ranks do not share a file. Throws CommandError.
void check_state_names(const SyncCommandOptions& options, std::uint32_t world);

// A rank's tensors in the order of the plan.
std::vector<rt::ConstTensorView> views_of(const SyncSubject& subject, const RankTensors& tensors);

}  // namespace cinch::driver
