// Memory runs out at any allocation in a program's life, by `operator new` of the whole process.
// Every call returns OUT_OF_MEMORY, loses and leaks nothing, and succeeds when it is repeated.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <limits>
#include <new>

#include "support.h"
#include "tests/environment.h"

namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

// Counts allocations within calls of the library, and makes them fail.
struct Supply {
  std::atomic<bool> is_counting{false};
  std::atomic<bool> stays_empty{false};     // until the call has ended
  std::atomic<std::int64_t> left{kNever};   // allocations before the one that fails
  std::atomic<std::int64_t> taken{0};       // within calls
  std::atomic<std::int64_t> num_blocks{0};  // of the process
} supply;

bool is_refused() {
  if (!supply.is_counting) return false;
  ++supply.taken;
  const std::int64_t left = supply.left--;
  return left == 0 || (left < 0 && supply.stays_empty);
}

// Null if the process has no more memory.
void* take_block(std::size_t size, std::size_t alignment) {
  void* const block = std::aligned_alloc(
      alignment, (std::max<std::size_t>(size, 1) + alignment - 1) / alignment * alignment);
  if (block != nullptr) ++supply.num_blocks;
  return block;
}

void* take(std::size_t size, std::size_t alignment) {
  void* const block = is_refused() ? nullptr : take_block(size, alignment);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}

void give(void* block) {
  if (block == nullptr) return;
  --supply.num_blocks;
  std::free(block);
}

}  // namespace

void* operator new(std::size_t size) {
  return take(size, __STDCPP_DEFAULT_NEW_ALIGNMENT__);
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  return take(size, static_cast<std::size_t>(alignment));
}
// Sanitizers replace each form; elsewhere the others call the two above.
void* operator new[](std::size_t size) {
  return operator new(size);
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return is_refused() ? nullptr : take_block(size, __STDCPP_DEFAULT_NEW_ALIGNMENT__);
}
void* operator new[](std::size_t size, const std::nothrow_t& nothrow) noexcept {
  return operator new(size, nothrow);
}
void operator delete(void* block) noexcept {
  give(block);
}
void operator delete[](void* block) noexcept {
  give(block);
}
void operator delete[](void* block, std::size_t) noexcept {
  give(block);
}
void operator delete(void* block, std::size_t) noexcept {
  give(block);
}
void operator delete(void* block, std::align_val_t) noexcept {
  give(block);
}
void operator delete(void* block, std::size_t, std::align_val_t) noexcept {
  give(block);
}

namespace cinch::testing {
namespace {

template <typename Call>
cinch_status counted(const Call& call) {
  supply.is_counting = true;
  const cinch_status status = call();
  supply.is_counting = false;
  return status;
}

// A call may fail until memory was refused; repeated, it must succeed.
template <typename Call>
void insist(const char* name, const Call& call) {
  const cinch_status status = counted(call);
  if (status == CINCH_OK) return;
  EXPECT_EQ(CINCH_OUT_OF_MEMORY, status) << name;
  EXPECT_LT(supply.left, 0) << name << " failed though no allocation did";
  supply.left = kNever;
  EXPECT_EQ(CINCH_OK, counted(call)) << name << " made again";
}

std::string saved(const Program& program) {
  const std::string path = ::testing::TempDir() + "cinch_memory_test.image";
  EXPECT_EQ(CINCH_OK, cinch_program_save(program.get(), path.c_str(), nullptr));
  std::string bytes;
  if (std::FILE* file = std::fopen(path.c_str(), "rb")) {
    char chunk[4096];
    while (const std::size_t got = std::fread(chunk, 1, sizeof chunk, file))
      bytes.append(chunk, got);
    std::fclose(file);
  }
  std::remove(path.c_str());
  return bytes;
}

// Loads, opens, encodes, decodes and adds two steps, saves and loads states; returns all results.
std::string live(const std::string& image) {
  Tensor tensor(3000), out(3000);
  const cinch_tensor gradient = tensor.view(), output = out.view();
  cinch_program* program = nullptr;
  insist("load",
         [&] { return cinch_program_load_bytes(image.data(), image.size(), &program, nullptr); });
  cinch_session* session = nullptr;
  insist("open",
         [&] { return cinch_session_open(program, nullptr, &gradient, 1, &session, nullptr); });
  std::string result;
  for (std::uint64_t step = 0; step < 2; ++step) {
    auto payload = sized<cinch_payload>();
    insist("encode",
           [&] { return cinch_encode(session, step, nullptr, 1, &gradient, &payload, nullptr); });
    result.append(static_cast<const char*>(payload.data), payload.size);
    std::string bytes(static_cast<const char*>(payload.data), payload.size);
    const cinch_payload copy = payload_of(bytes);
    const auto decode = step == 0 ? cinch_decode : cinch_decode_add;
    insist("decode", [&] { return decode(session, step, nullptr, 1, &copy, &output, nullptr); });
  }
  std::string states(100000, '\0');
  std::size_t size = states.size();
  insist("save", [&] {
    size = states.size();
    return cinch_states_save(session, 0, states.data(), &size, nullptr);
  });
  insist("restore", [&] { return cinch_states_load(session, 0, states.data(), size, nullptr); });
  result.append(states, 0, size);
  for (float value : out.values()) result.append(reinterpret_cast<const char*>(&value), 4);
  cinch_session_release(session);
  cinch_program_release(program);
  return result;
}

// A program, and the distance between failing allocations.
struct Case {
  const char* program;
  std::int64_t stride;
};
class OutOfMemory : public ::testing::TestWithParam<Case> {};

TEST_P(OutOfMemory, AtAnyAllocationOfAProgramsLifeLosesNothing) {
  const std::string image = saved(compile(GetParam().program));
  const std::string expected = live(image);
  const std::int64_t stride = GetParam().stride * (is_long_run() ? 1 : is_sample_run() ? 11 : 3);
  for (const bool stays_empty : {false, true}) {
    supply.stays_empty = stays_empty;
    std::int64_t at = 0;
    for (bool is_through = false; !is_through; at += stride) {
      const std::int64_t blocks_before = supply.num_blocks;
      supply.left = at;
      ASSERT_EQ(expected, live(image)) << "allocation " << at;
      is_through = supply.left >= 0 && supply.left < kNever / 2;
      ASSERT_EQ(blocks_before, supply.num_blocks) << "allocation " << at;
    }
    EXPECT_GT(at, 100);
    supply.left = kNever;
  }
}

INSTANTIATE_TEST_SUITE_P(Programs, OutOfMemory,
                         ::testing::Values(Case{"onebit", 1}, Case{"qsgd", 1}, Case{"dgc", 23}),
                         [](const auto& info) { return std::string(info.param.program); });

// Compiles twice in a process of its own, since a crash would end all tests: does it end properly
// if memory runs out at allocation `at`?
bool compiles_or_says_why(std::int64_t at, bool stays_empty) {
  const pid_t child = ::fork();
  if (child == 0) {
    auto options = sized<cinch_compile_options>();
    options.program = "topk";
    const auto ends_well = [&](cinch_status second) {
      cinch_program* program = nullptr;
      auto error = sized<cinch_error>();
      const cinch_status status =
          counted([&] { return cinch_program_compile(&options, &program, &error); });
      const bool is_told = error.message[0] != '\0' && program == nullptr;
      if (status == CINCH_OK) cinch_program_release(program);
      return status == CINCH_OK || ((status == CINCH_OUT_OF_MEMORY || status == second) && is_told);
    };
    supply.stays_empty = stays_empty;
    supply.left = at;
    bool is_fine = ends_well(CINCH_OUT_OF_MEMORY);
    supply.left = kNever;
    is_fine = ends_well(CINCH_UNAVAILABLE) && is_fine;
    ::_exit(is_fine ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(OutOfMemoryInTheCompiler, IsAnErrorWhereverItHappens) {
  supply.taken = 0;
  auto options = sized<cinch_compile_options>();
  options.program = "topk";
  cinch_program* program = nullptr;
  ASSERT_EQ(CINCH_OK, counted([&] { return cinch_program_compile(&options, &program, nullptr); }));
  cinch_program_release(program);
  const std::int64_t all = supply.taken;
  ASSERT_GT(all, 10000);
  const std::int64_t num_samples = is_long_run() ? 16 : is_sample_run() ? 4 : 8;
  for (std::int64_t i = 0; i < num_samples; ++i) {
    const std::int64_t at = i * all / num_samples + 5 * i;
    EXPECT_TRUE(compiles_or_says_why(at, i % 2 == 0)) << "allocation " << at << " of " << all;
  }
}

}  // namespace
}  // namespace cinch::testing
