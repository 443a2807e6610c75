// Module: kernels for the emulated GPU, loaded from the bytes of a shared object that
// codegen::compile_emulated made, and the interface between such a module and the emulator: the
// table that the module calls through.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/core/error.h"
#include "runtime/module/shared_object.h"

namespace cinch::emulator {
// The interface between a module for the emulated GPU and the emulator: the table that the module
// calls through, and the description that it exports. Plain data with fixed layout; the compiler
// (codegen/jit/clang) generates the other side.

inline constexpr std::uint64_t kModuleAbi = 1;
/// Bytes of a thread's stack; a function's frame may take half of it.
inline constexpr std::uint64_t kStackBytes = std::uint64_t{256} << 10;

struct Dim {
  std::uint32_t x = 1, y = 1, z = 1;
};

// State of the running thread, then functions. There is one table at a time in a process.
struct Hooks {
  Dim thread, block, block_dim, grid_dim;
  char* shared = nullptr;  // the running block's shared memory
  std::uint64_t fuel = 0;  // back edges of loops left before out_of_fuel is called
#define CINCH_HOOK(name, result, parameters) result(*name) parameters = nullptr;
#include "codegen/emulator/hooks.def"
#undef CINCH_HOOK
};

enum class BlockOp : std::uint32_t { Sync, Count, And, Or };
enum class VoteOp : std::uint32_t { Ballot, Any, All };
enum class MatchOp : std::uint32_t { Any, All };
// As in codegen/prelude/emulated/memory.h.
enum class AtomicOp : std::uint32_t {
  Load,
  Store,
  Exchange,
  CompareExchange,
  Add,
  And,
  Or,
  Xor,
  Min,
  Max,
  MinSigned,
  MaxSigned,
  AddFloat
};
enum class RoundMode : std::uint32_t { Nearest, Floor, Ceil, Trunc };

// ---- what a module exports as kModuleSymbol; words and pointers only ----
inline constexpr const char* kModuleSymbol = "cinch_emulated_module";

// A static array of shared memory that a kernel uses.
struct SharedArray {
  std::uint64_t offset, size_bytes;
};
inline constexpr std::uint64_t kNoDynamicShared = ~std::uint64_t{0};
struct KernelEntry {
  const char* name;
  void (*run)(void** params);
  const SharedArray* shared;
  std::uint64_t num_shared;
  std::uint64_t dynamic_offset;  // of `extern __shared__` memory, or kNoDynamicShared
};
// The line of an access or a call in the emitted text: its own, and that of the kernel into which
// it was inlined; 0 if unknown.
struct Site {
  std::uint32_t line, kernel_line;
};
struct ConstantRange {
  const void* begin;
  std::uint64_t size_bytes;
};
struct ModuleInfo {
  std::uint64_t abi;
  std::uint64_t has_checks;  // 1: accesses are reported
  Hooks** hooks;             // set before a kernel runs
  const KernelEntry* kernels;
  std::uint64_t num_kernels;
  const Site* sites;
  std::uint64_t num_sites;
  const ConstantRange* constants;  // data of the module that kernels may read
  std::uint64_t num_constants;
  const char* text;  // emitted text, not terminated
  std::uint64_t text_size;
};

class Module {
 public:
  /// Errors: CorruptFile (not a shared object of compile_emulated, or one of another version), Io
  /// (no memory file).
  static rt::Result<Module> load(std::span<const std::uint8_t> shared_object);

  std::vector<std::string> kernels() const;
  bool has_checks() const { return info_->has_checks != 0; }
  /// Null if there is no such kernel.
  const KernelEntry* find(std::string_view kernel) const;
  const ModuleInfo& info() const { return *info_; }
  /// A line of the emitted text, without its indentation; empty if there is none.
  std::string line(std::uint32_t number) const;

 private:
  Module(rt::SharedObject object, const ModuleInfo* info)
      : object_(std::move(object)), info_(info) {}
  rt::SharedObject object_;
  const ModuleInfo* info_;
};

}  // namespace cinch::emulator
