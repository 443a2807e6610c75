// `cinch explain`: its report as JSON, and the text that is made from it.
#pragma once

#include <nlohmann/json.hpp>
#include <nlohmann/json_fwd.hpp>

#include <cstddef>

#include "codegen/kir/kir.h"
#include "compiler/driver/target.h"
#include "compiler/ir/ir.h"
#include "compiler/kernelize/kernelize.h"
#include "dsl/sema/checked.h"
#include "dsl/source/source.h"
#include "runtime/core/sizes/host_value.h"

namespace cinch::driver {
struct ExplainInputs {
  const ir::Program& lowered;   // before passes: as people wrote it
  const ir::Program& program;   // after passes
  kir::KernelProgram& kernels;  // with costs; formulas are added to its pool
  const std::vector<codegen::SweepsApart>& apart;
  std::int64_t steps = 0;         // steps of passes and fusion
  const dsl::SourceSet& sources;  // of the program
  const sema::CheckedProgram& checked;
};

// The report. Its keys follow the promises of docs/language.md: payload, kernels, sweeps, bytes.
// Throws CommandError if a size cannot be evaluated.
nlohmann::json explain_report(const ExplainInputs& inputs, const ExplainOptions& options);

/// First numbers for the given size, then what each sweep reads, does and writes, and why
/// neighbouring sweeps are not fused. No line is longer than `width` (at least 60). `with_places`:
/// also shows where in the text the value is for which a sweep waits, and how many steps the
/// compiler took.
std::string explanation_text(const nlohmann::json& report, std::size_t width, bool with_places);

/// `cinch explain --formulas`: sizes, bounds and bytes as formulas of n and the parameters.
/// `with_fusion`: also tells why neighbouring sweeps are not fused. Lines longer than `width` are
/// broken.
std::string formulas_text(const nlohmann::json& report, bool with_fusion, std::size_t width);

// `cinch explain --device cuda`: the resources that the kernels need on a GPU. Adds `arch` and
// `gpu_kernels` to the report: compiles the program for options.target, for this
// machine's GPU, or for sm_90. Throws CommandError if there is no NVRTC.
void add_gpu_report(FrontEnd& front_end, const ExplainOptions& options, nlohmann::json& report);
// A table of the kernels; lines are no longer than `width`, from 60 on.
std::string gpu_report_text(const nlohmann::json& report, std::size_t width);

// What the kernels of an entry read, do and write, as data for `cinch explain`.

/// The kernels of an entry at given sizes. Formulas are added to the program's pool.
class EntryKernels {
 public:
  EntryKernels(kir::KernelProgram& program, rt::EntryKind kind, const HostEnv& env)
      : program_(program), kind_(kind), env_(env) {}

  /// In the order of their first launches. Of each: name, role, number (of sweeps, from 1), fused
  /// and `does`, the same in words; in_branch, in_loop; bytes as formulas and as numbers, and the
  /// numbers of every buffer in `reads` and `writes`; what it computes in plain sweeps over the
  /// tensor, `work_sweeps`, and what takes most of that in words, `work_most` (codegen/kir/work.h).
  nlohmann::json list();

  /// What moves bytes between kernels, in the order of the steps: arrays that are filled with
  /// zeros, copied, or handed to other ranks. Of each: `does` ("zeros", "copy", "exchange"),
  /// in_branch, in_loop, read_most, written_most, and `reads` and `writes` as of kernels.
  nlohmann::json moves();

  /// Sweeps over the tensor: every loop at its most and the longer branch, or no loop at all and
  /// the shorter one.
  std::int64_t sweeps(bool most);

 private:
  nlohmann::json kernel(const kir::Kernel& kernel);
  void add_streams(const kir::Kernel& kernel, nlohmann::json& to);
  nlohmann::json stream(rt::BufferIndex index, std::int64_t least, std::int64_t most) const;
  nlohmann::json move(const rt::Step& step);
  bool is_sweep(const kir::Kernel& kernel);
  std::int64_t sweeps(const std::vector<rt::Step>& steps, bool most);
  std::string text(HostExprId id);
  std::int64_t value(HostExprId id);

  kir::KernelProgram& program_;
  rt::EntryKind kind_;
  const HostEnv& env_;
};

/// Neighbouring sweeps, and why they are not one: first, second, why, at ("dgc.cinch:12:3", or
/// null) and, where sizes are why, both sizes as numbers ("1000 x 4").
nlohmann::json apart_list(kir::KernelProgram& program,
                          const std::vector<codegen::SweepsApart>& apart, const HostEnv& env,
                          const dsl::SourceSet& sources);

// Words for parts of the report of `cinch explain`, for its text and its page.

/// "sum ×4, compute w", of a kernel's `does`.
std::string work_in_words(const nlohmann::json& does);

/// Names of a kernel's `reads` or `writes`, each once; "scalars" where all are small.
std::string stream_names(const nlohmann::json& streams);

/// What moves bytes between kernels, one of each kind, and of what is in a branch or a loop one of
/// its own.
nlohmann::json joined_moves(const nlohmann::json& moves);

/// "[u32; k] ascending below n, in [u32; index.words]", of a field.
std::string field_in_words(const nlohmann::json& field);

/// The value of a size or a parameter: "0.001", "1,000,000", "true".
std::string value_in_words(const nlohmann::json& named);

/// Why the floor of `call` is above what its kernels move at worst; empty if it is not.
std::string why_floor_is_above(const std::string& call, const nlohmann::json& entry);

/// The phrase that says which value a sweep waits for, and where it is computed.
enum class Places { None, FileName, Path };

/// Neighbouring sweeps of an entry, and why they are not one. Those of one reason are told
/// together: who is "3+4, 4+5".
struct Apart {
  std::string who, why;
};
std::vector<Apart> apart_in_words(const nlohmann::json& fusion, const nlohmann::json& kernels,
                                  Places places);

}  // namespace cinch::driver
