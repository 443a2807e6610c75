// Bodies of lockstep.h.
#include "tests/unit/codegen/emit/lockstep.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#include <sys/mman.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <vector>

#include "codegen/jit/clang_jit.h"
#include "runtime/core/sanitizer.h"

#ifdef CINCH_HAS_ADDRESS_SANITIZER
// Looking for the use of returned frames takes memory of its own for each stack: for thousands of
// fibers a launch, most of the time.
extern "C" const char* __asan_default_options() {
  return "detect_stack_use_after_return=0";
}
#endif

// Keeps the registers that a function must keep on the stack at hand, whose end goes to *from, and
// goes on with the stack that ends at `to`. swapcontext would ask the kernel for the signal mask at
// every switch, and under AddressSanitizer map the stack's shadow anew.
extern "C" void cinch_switch_stack(void** from, void* to);
asm(R"(
  .text
  .type cinch_switch_stack, @function
cinch_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size cinch_switch_stack, .-cinch_switch_stack
)");

namespace cinch::codegen {
namespace {

struct Index {
  unsigned x = 0;
};
// As in lockstep_shim.h.
struct Hooks {
  Index thread, block, block_dim, grid_dim;
  void (*sync_warp)() = nullptr;
  void (*sync_block)() = nullptr;
  unsigned long long (*shuffle)(unsigned long long, unsigned) = nullptr;
  unsigned (*ballot)(unsigned) = nullptr;
};

enum class Meeting { None, SyncWarp, SyncBlock, Shuffle, Ballot };

// Threads that meet: nobody goes on before all have come.
struct Rendezvous {
  std::uint32_t size = 0, arrived = 0;
  std::uint64_t generation = 0;
  Meeting meeting = Meeting::None;
  std::uint64_t values[2][32] = {};
};

constexpr std::size_t kStackBytes = std::int64_t{512} * 1024;

// One stack of the process: the scheduler's or a fiber's. AddressSanitizer is told of every switch:
// it keeps shadow stacks of its own.
struct Stack {
  void* end = nullptr;  // while it sleeps
  const void* bottom = nullptr;
  std::size_t size_bytes = 0;
  void* shadow = nullptr;  // the sanitizer's, while this stack sleeps
};

// From the stack that runs to another one. Comes back when some stack switches to `from` again.
void switch_stacks(Stack& from, Stack& to) {
  if constexpr (kAddressSanitizer) {
    __sanitizer_start_switch_fiber(&from.shadow, to.bottom, to.size_bytes);
  }
  cinch_switch_stack(&from.end, to.end);
  if constexpr (kAddressSanitizer) __sanitizer_finish_switch_fiber(from.shadow, nullptr, nullptr);
}

// The first thing that runs on a new stack; fills in where `previous`, that it came from, lies.
void arrive_on_new_stack(Stack& previous) {
  if constexpr (kAddressSanitizer) {
    __sanitizer_finish_switch_fiber(nullptr, &previous.bottom, &previous.size_bytes);
  }
}

// The last thing that runs on a stack.
[[noreturn]] void leave_stack(Stack& to) {
  if constexpr (kAddressSanitizer) {
    __sanitizer_start_switch_fiber(nullptr, to.bottom, to.size_bytes);
  }
  void* end = nullptr;
  cinch_switch_stack(&end, to.end);
  __builtin_unreachable();
}

class Block;
Block* g_block = nullptr;

// One block's threads, which run block after block. Fibers switch only where they wait.
class Block {
 public:
  using Kernel = void (*)(const void* args);

  Block(Hooks& hooks, std::uint32_t num_threads) : hooks_(hooks), fibers_(num_threads) {
    stacks_ = static_cast<char*>(mmap(nullptr, kStackBytes * num_threads, PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    for (std::size_t i = 0; i < fibers_.size(); ++i) start(i);
    warps_.resize(num_threads / 32);
    for (Rendezvous& warp : warps_) warp.size = 32;
    all_.size = num_threads;
    hooks_.sync_warp = [] { g_block->meet(g_block->warp(), Meeting::SyncWarp, 0); };
    hooks_.sync_block = [] { g_block->meet(g_block->all_, Meeting::SyncBlock, 0); };
    hooks_.shuffle = [](unsigned long long value, unsigned source) -> unsigned long long {
      Rendezvous& warp = g_block->warp();
      const std::uint64_t at = warp.generation % 2;
      g_block->meet(warp, Meeting::Shuffle, value);
      return warp.values[at][source];
    };
    hooks_.ballot = [](unsigned predicate) {
      Rendezvous& warp = g_block->warp();
      const std::uint64_t at = warp.generation % 2;
      g_block->meet(warp, Meeting::Ballot, predicate);
      unsigned bits = 0;
      for (unsigned lane = 0; lane < 32; ++lane) bits |= unsigned(warp.values[at][lane]) << lane;
      return bits;
    };
  }
  // Frames of fibers that wait are not unwound: what guards them goes with them.
  ~Block() {
    is_closing_ = true;
    for (current_ = 0; current_ < fibers_.size(); ++current_) {
      if (fibers_[current_].is_done) switch_stacks(scheduler_, fibers_[current_].stack);
    }
    if constexpr (kAddressSanitizer) {
      __asan_unpoison_memory_region(stacks_, kStackBytes * fibers_.size());
    }
    munmap(stacks_, kStackBytes * fibers_.size());
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  // Empty, or what went wrong; then no other block may run.
  std::string run(Kernel kernel, const void* args) {
    kernel_ = kernel;
    args_ = args;
    g_block = this;
    for (Fiber& fiber : fibers_) fiber.is_done = false;
    bool moved = true;
    while (moved && error_.empty()) moved = round();
    for (std::size_t i = 0; i < fibers_.size() && error_.empty(); ++i) {
      if (!fibers_[i].is_done) error_ = fmt::format("thread {} waits for ever", i);
    }
    return error_;
  }

 private:
  struct Fiber {
    Stack stack;
    bool is_done = false;
    Rendezvous* waits = nullptr;
    std::uint64_t generation = 0;
  };

  void start(std::size_t i) {
    Stack& stack = fibers_[i].stack;
    stack.bottom = stacks_ + i * kStackBytes;
    stack.size_bytes = kStackBytes;
    // As cinch_switch_stack left it: six registers, where it returns to, and that one's caller.
    auto** words = reinterpret_cast<void**>(stacks_ + (i + 1) * kStackBytes) - 8;
    words[6] = reinterpret_cast<void*>(+[] { g_block->body(); });
    stack.end = static_cast<void*>(words);
  }

  void body() {
    arrive_on_new_stack(scheduler_);
    while (!is_closing_) {
      kernel_(args_);
      fibers_[current_].is_done = true;
      switch_stacks(fibers_[current_].stack, scheduler_);
    }
    leave_stack(scheduler_);
  }

  // Every thread that can go on does; false if none could.
  bool round() {
    bool moved = false;
    for (current_ = 0; current_ < fibers_.size() && error_.empty(); ++current_) {
      Fiber& fiber = fibers_[current_];
      if (fiber.is_done || (fiber.waits && fiber.waits->generation == fiber.generation)) continue;
      hooks_.thread.x = static_cast<unsigned>(current_);
      fiber.waits = nullptr;
      moved = true;
      switch_stacks(scheduler_, fiber.stack);
    }
    return moved;
  }

  Rendezvous& warp() { return warps_[current_ / 32]; }

  void meet(Rendezvous& place, Meeting meeting, std::uint64_t value) {
    if (place.arrived > 0 && place.meeting != meeting) {
      error_ = fmt::format("thread {} comes to another collective", current_);
    }
    place.meeting = meeting;
    if (place.size == 32) place.values[place.generation % 2][current_ % 32] = value;
    if (++place.arrived == place.size && error_.empty()) {
      place.arrived = 0;
      ++place.generation;
      return;
    }
    Fiber& fiber = fibers_[current_];
    fiber.waits = &place;
    fiber.generation = place.generation;
    switch_stacks(fiber.stack, scheduler_);
  }

  Hooks& hooks_;
  std::vector<Fiber> fibers_;
  std::vector<Rendezvous> warps_;
  Rendezvous all_;
  char* stacks_ = nullptr;
  Stack scheduler_;
  std::size_t current_ = 0;
  Kernel kernel_ = nullptr;
  const void* args_ = nullptr;
  std::string error_;
  bool is_closing_ = false;
};

std::string shim_text() {
  std::ifstream file(CINCH_LOCKSTEP_SHIM);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The kernel takes its struct by value; fibers hand over a pointer.
std::string entry_text(const std::string& symbol) {
  return fmt::format(
      "extern \"C\" __attribute__((visibility(\"default\"))) void lockstep_{0}(const void* args) "
      "{{ cinch::{0}(*static_cast<const cinch::CinchArgs*>(args)); }}\n",
      symbol);
}

}  // namespace

struct LockstepModule::Loaded {
  void* handle = nullptr;
  int file = -1;  // stays open: the loader knows modules by their path
  Hooks hooks;
  ~Loaded() {
    if (handle) dlclose(handle);
    if (file >= 0) close(file);
  }
};

LockstepModule::LockstepModule() : loaded_(std::make_unique<Loaded>()) {}
LockstepModule::LockstepModule(LockstepModule&&) noexcept = default;
LockstepModule::~LockstepModule() = default;

rt::Result<LockstepModule> LockstepModule::compile(const kir::KernelProgram& program) {
  KernelSource source = emit_cuda(program);
  source.text = shim_text() + source.text;
  for (const std::string& symbol : source.symbols) source.text += entry_text(symbol);
  source.target = {TargetKind::Cpu, "x86-64"};
  const auto binary = compile_cpu(source, {.optimization_level = 1});
  if (!binary) return tl::unexpected(binary.error());
  LockstepModule module;
  const int file = memfd_create("lockstep", 0);
  module.loaded_->file = file;
  if (write(file, binary->data(), binary->size()) != static_cast<ssize_t>(binary->size())) {
    return rt::fail(rt::ErrorKind::Io, "cannot write the module");
  }
  module.loaded_->handle = dlopen(fmt::format("/proc/self/fd/{}", file).c_str(), RTLD_NOW);
  if (!module.loaded_->handle) return rt::fail(rt::ErrorKind::CorruptFile, dlerror());
  auto** hooks = static_cast<Hooks**>(dlsym(module.loaded_->handle, "lockstep_hooks"));
  if (!hooks) return rt::fail(rt::ErrorKind::CorruptFile, "the module has no hooks");
  *hooks = &module.loaded_->hooks;
  return module;
}

rt::Status LockstepModule::launch(const std::string& symbol, std::span<const std::uint8_t> args,
                                  std::uint32_t num_blocks, std::uint32_t block_threads) const {
  const auto kernel =
      reinterpret_cast<Block::Kernel>(dlsym(loaded_->handle, ("lockstep_" + symbol).c_str()));
  if (!kernel) return rt::fail(rt::ErrorKind::Internal, "no kernel " + symbol);
  Hooks& hooks = loaded_->hooks;
  hooks.block_dim.x = block_threads;
  hooks.grid_dim.x = num_blocks;
  Block block(hooks, block_threads);
  for (hooks.block.x = 0; hooks.block.x < num_blocks; ++hooks.block.x) {
    const std::string error = block.run(kernel, args.data());
    if (!error.empty())
      return rt::fail(rt::ErrorKind::Internal, fmt::format("{}: {}", symbol, error));
  }
  return rt::Ok{};
}

}  // namespace cinch::codegen
