// The tensors of a rank for `cinch sync`, and the program of each.
#pragma once
#include <memory>
#include <span>

#include "compiler/driver/options.h"
#include "runtime/call/list_call.h"
#include "runtime/payload/npy.h"
#include "runtime/plan/plan.h"
#include "runtime/planner/plan_file.h"
#include "runtime/planner/policy.h"
#include "runtime/planner/ready_profile.h"
#include "runtime/session/loaded_program.h"

namespace cinch::driver {

using Program = std::shared_ptr<const rt::LoadedProgram>;

// A file, or all .npy files of a folder, sorted by name.
struct RankTensors {
  std::vector<std::string> names;  // names of files without .npy; for a single file "gradient"
  std::vector<rt::NpyArray> arrays;
  bool is_folder = false;
};

// Sorts the tensors by --profile into the order in which they become ready; returns the times in
// seconds from the begin of the backward pass. Throws CommandError if the profile has other tensors
// or sizes.
std::vector<double> order_by_profile(const SyncCommandOptions& options, RankTensors& tensors);

// Replaces every "%r" in the name by the rank.
std::string of_rank(std::string name, std::uint32_t rank);

// The input of one rank: its own, or the one whose name has %r. Throws CommandError.
std::string input_of(const SyncCommandOptions& options, std::uint32_t rank);
// How many ranks the inputs are for: the number of inputs, or of existing files for the name with
// %r.
std::uint32_t num_input_ranks(const SyncCommandOptions& options);
RankTensors read_tensors(const SyncCommandOptions& options, std::uint32_t rank);
// Throws CommandError if names or shapes differ; `name` is the other input's.
void check_same_tensors(const RankTensors& first, const RankTensors& other,
                        const std::string& name);

// The tensors and programs to synchronise, by codec and by tensor of a plan.
struct SyncSubject {
  std::vector<Program> programs;
  std::vector<ProgramOptions> sources;  // of the programs
  // By program: the program that carries its sums, or kDense; set by add_carriers
  std::vector<std::uint32_t> carriers;
  std::vector<rt::PlanTensor> tensors;
  std::vector<std::uint32_t> sent;  // by tensor of the plan: index in the rank's tensors
  std::vector<std::uint32_t> off;   // the rank's tensors that are not synchronised
  // How tensors of the plan are exchanged, where rules say so.
  std::vector<rt::PolicyRoute> routes;
  std::vector<std::uint32_t> route_of;
};

// Assigns programs by --policy. Without a policy, tensors of a folder get the default policy, and a
// single gradient gets the program. With no program ("none"), every tensor to which no rule gives a
// program is exact. Throws CommandError.
SyncSubject assign_programs(const SyncCommandOptions& options, const RankTensors& tensors);

// --plan FILE: the programs of the file, for the tensors that it names. Throws CommandError.
SyncSubject assign_by_plan_file(const SyncCommandOptions& options, const rt::PlanFile& file,
                                const RankTensors& tensors);

// Adds a program that is loaded for the CPU, even if ranks compute on a GPU. Throws CommandError.
void add_program(const ProgramOptions& program, const ExecutionOptions& execution,
                 SyncSubject& subject);
// Loads the programs that carry the sums of others (rt::CarrierKind::Program). Throws CommandError.
void add_carriers(const ExecutionOptions& execution, SyncSubject& subject);

// Throws CommandError.
rt::ReadyProfile read_profile(const std::string& path);
// Without a shape, tensors that are not small become matrices, as nearly square as possible.
std::vector<std::int64_t> shape_of(const rt::ReadyTensor& tensor);

// Writes updates, by tensor of the plan: to a file, or for tensors of a folder to files in a
// folder. Throws CommandError.
void write_updates(const std::string& path, const SyncSubject& subject, const RankTensors& tensors,
                   const std::vector<std::vector<float>>& updates);

// --state-in: reads the states that all ranks of an earlier run saved; the first file tells how
// many there are. A name without "%r" is one file. Empty if the option is not given. Throws
// CommandError, which names the file.
std::vector<std::vector<std::uint8_t>> read_saved_states(const SyncCommandOptions& options);
// --state-out: writes what one rank saved. Throws CommandError.
void write_saved_states(const SyncCommandOptions& options, std::uint32_t rank,
                        std::span<const std::uint8_t> states);
// Checks that ranks do not share a file. Throws CommandError.
void check_state_names(const SyncCommandOptions& options, std::uint32_t world);

// A rank's tensors in the order of the plan.
std::vector<rt::ConstTensorView> views_of(const SyncSubject& subject, const RankTensors& tensors);

}  // namespace cinch::driver
