// Runs entries of a kernel program twice, by its CPU kernels and by its CUDA text on the emulated
// GPU, and compares every buffer after every kernel. What the emulator finds is a difference, too.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "codegen/kir/kir.h"
#include "runtime/core/error.h"

namespace cinch::codegen {

struct BitsCase {
  std::int64_t n = 0, rows = 1, cols = 0;
  std::vector<std::uint64_t> params;   // raw bits
  std::vector<HostValue> host_params;  // the same for host formulas, where they ask
  std::vector<std::uint8_t> input;     // bytes that fill buffers which hold input, over and over
  std::uint32_t num_blocks = 3;
  // Where it is not 0, partials that may be folded are, by so many blocks, before a kernel
  // finishes; or the kernel is told so and nobody did.
  std::uint32_t num_fold_blocks = 0;
  bool is_fold_missing = false;
  std::int64_t step = 77, world = 1;
  // Entries are a session's: what they have not written they may not read of workspaces, new
  // states, or outputs. Else every buffer is an input.
  bool is_session = false;
};

/// What every run draws from: seed, step (the case's; 0 for Init), tensor, piece, worker 2.
inline constexpr std::uint32_t kBitsDraw[8] = {0x12345678, 0x9abcdef0, 0, 0, 5, 1, 2, 0};

/// A program compiled for both.
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
  /// All outlive the run.
  BitsRun(const kir::KernelProgram& program, const BothTargets& targets, const BitsCase& at);
  ~BitsRun();

  /// Empty if all buffers and status words are equal after every kernel; else what differs first.
  std::string run(rt::EntryKind entry);
  /// What a session does between entries: new states become states; states start as zeros.
  void commit_states();
  void zero_states();
  /// The next gradient.
  void set_input(const std::vector<std::uint8_t>& input);
  /// A buffer as the CUDA text left it.
  std::span<const std::uint8_t> buffer(rt::BufferRole role, std::uint32_t role_index) const;

 private:
  class Comparison;
  std::unique_ptr<Comparison> comparison_;
  std::int64_t step_;
};

/// One entry in each of the cases: empty, or what differs.
rt::Result<std::string> compare_targets(const kir::KernelProgram& program, rt::EntryKind entry,
                                        const std::vector<BitsCase>& cases);

}  // namespace cinch::codegen
