// Runs entries of a kernel program twice, by its CPU kernels and by its CUDA text on the emulated
// GPU, and compares every buffer after every kernel. Findings of the emulator count as differences,
// too.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "codegen/kir/kir.h"
#include "runtime/core/error.h"
#include "runtime/core/sizes/host_value.h"

namespace cinch::codegen {

struct BitsCase {
  std::int64_t n = 0, rows = 1, cols = 0;
  std::vector<std::uint64_t> params;   // raw bits
  std::vector<HostValue> host_params;  // the same for host formulas
  std::vector<std::uint8_t> input;     // bytes that fill input buffers, repeated
  std::uint32_t num_blocks = 3;
  // Not 0: partials that may be folded are folded by this many blocks before a kernel finishes; or
  // the kernel is told so although nobody did.
  std::uint32_t num_fold_blocks = 0;
  bool is_fold_missing = false;
  std::int64_t step = 77, world = 1;
  // Do entries have a session's rules? They then may not read workspaces, new states or outputs
  // that they have not written. Otherwise every buffer is an input.
  bool is_session = false;
};

/// The draw words of every run: seed, step (the case's; 0 for Init), tensor, piece, worker 2.
inline constexpr std::uint32_t kBitsDraw[8] = {0x12345678, 0x9abcdef0, 0, 0, 5, 1, 2, 0};

/// A program compiled for both targets.
class BothTargets {
 public:
  /// Errors: Unavailable (no Clang library).
  static rt::Result<BothTargets> compile(const kir::KernelProgram& program);
  BothTargets(BothTargets&&) noexcept;
  ~BothTargets();

 private:
  friend class BitsRun;
  struct Modules;
  explicit BothTargets(std::unique_ptr<Modules> modules);
  std::unique_ptr<Modules> modules_;
};

/// Two memories, one per target, in which entries run one after another.
class BitsRun {
 public:
  /// All arguments outlive the run.
  BitsRun(const kir::KernelProgram& program, const BothTargets& targets, const BitsCase& at);
  ~BitsRun();

  /// Returns "" if all buffers and status words are equal after every kernel; else the first
  /// difference.
  std::string run(rt::EntryKind entry);
  /// Does a session's work between entries: new states become states; states begin as zeros.
  void commit_states();
  void zero_states();
  /// Sets the next gradient.
  void set_input(const std::vector<std::uint8_t>& input);
  /// A buffer after the CUDA text.
  std::span<const std::uint8_t> buffer(rt::BufferRole role, std::uint32_t role_index) const;

 private:
  class Comparison;
  std::unique_ptr<Comparison> comparison_;
  std::int64_t step_;
};

/// Runs one entry in each of the cases. Returns "" or the difference.
rt::Result<std::string> compare_targets(const kir::KernelProgram& program, rt::EntryKind entry,
                                        const std::vector<BitsCase>& cases);

}  // namespace cinch::codegen
