// NVRTC in other processes gives the same results as in this one, errors too. Without NVRTC the
// result lists the searched places.
#include "codegen/aot/schedule.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <thread>

#include "codegen/jit/compile_program.h"

namespace cinch::codegen {
namespace {

KernelSource cuda_source(std::string arch, std::string text) {
  return {{TargetKind::Cuda, std::move(arch)}, std::move(text)};
}

void expect_same(const rt::Result<std::vector<std::uint8_t>>& got, const KernelSource& source,
                 bool is_ptx) {
  const auto wanted = nvrtc_binary(source, is_ptx);
  ASSERT_EQ(got.has_value(), wanted.has_value());
  if (wanted) {
    EXPECT_EQ(*got, *wanted);
    return;
  }
  EXPECT_EQ(got.error().kind, wanted.error().kind);
  EXPECT_EQ(got.error().message, wanted.error().message);
  EXPECT_EQ(got.error().native_code, wanted.error().native_code);
}

TEST(NvrtcProcessesTest, GivesWhatThisProcessGives) {
  NvrtcProcesses processes(2);
  ASSERT_EQ(processes.count(), 2);
  const KernelSource sources[] = {
      cuda_source("sm_90", "extern \"C\" __global__ void f(int* x) { *x = 1; }\n"),
      cuda_source("sm_90", "extern \"C\" __global__ void f(int* x) { *x = y; }\n"),
      cuda_source("sm_12345", "extern \"C\" __global__ void f() {}\n"), cuda_source("", "")};
  for (const KernelSource& source : sources) {
    for (const bool is_ptx : {false, true})
      expect_same(processes.compile(source, is_ptx), source, is_ptx);
  }
}

TEST(NvrtcProcessesTest, ServesMoreThreadsThanThereAreProcesses) {
  NvrtcProcesses processes(2);
  ASSERT_EQ(processes.count(), 2);
  constexpr int kThreads = 6;
  std::vector<KernelSource> sources;
  std::vector<rt::Result<std::vector<std::uint8_t>>> results(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    sources.push_back(cuda_source(
        "sm_80", fmt::format("extern \"C\" __global__ void f{0}(int* x) {{ *x = {0}; }}\n", i)));
  }
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i)
      threads.emplace_back([&, i] { results[i] = processes.compile(sources[i], false); });
  }
  for (int i = 0; i < kThreads; ++i) expect_same(results[i], sources[i], false);
}

TEST(NvrtcProcessesTest, AreNotForkedBesideOtherThreads) {
  std::jthread other([](const std::stop_token& stop) {
    while (!stop.stop_requested()) std::this_thread::yield();
  });
  EXPECT_EQ(NvrtcProcesses(2).count(), 0);
}

}  // namespace
}  // namespace cinch::codegen
