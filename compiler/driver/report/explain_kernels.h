// What the kernels of an entry read, do and write, as data for `cinch explain`.
#pragma once
#include <nlohmann/json.hpp>

#include "codegen/kir/kir.h"
#include "compiler/kernelize/kernelize.h"
#include "dsl/source/source.h"

namespace cinch::driver {

/// The kernels of an entry at given sizes. Formulas are added to the program's pool.
class EntryKernels {
 public:
  EntryKernels(kir::KernelProgram& program, rt::EntryKind kind, const HostEnv& env)
      : program_(program), kind_(kind), env_(env) {}

  /// In the order of their first launches. Of each: name, role, number (of sweeps, from 1), fused
  /// and `does`, the same in words; in_branch, in_loop; bytes as formulas and as numbers, and the
  /// numbers of every buffer in `reads` and `writes`.
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

}  // namespace cinch::driver
