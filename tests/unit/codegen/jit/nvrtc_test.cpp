// The door to NVRTC: compiles where the library is there, explains itself where it is not.
#include "codegen/jit/nvrtc.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace cinch::codegen {
namespace {

using ::testing::HasSubstr;

constexpr const char* kKernel =
    "extern \"C\" __global__ void twice(float* x) { x[threadIdx.x] *= 2.0f; }\n";

#define SKIP_WITHOUT_NVRTC() \
  if (!nvrtc_report().is_found) GTEST_SKIP() << describe(nvrtc_report())

TEST(Nvrtc, report_names_every_place_or_the_version) {
  const NvrtcReport& report = nvrtc_report();
  ASSERT_FALSE(report.attempts.empty());
  EXPECT_EQ(report.attempts[0].origin, "already loaded");
  EXPECT_EQ(report.is_found, report.attempts.back().problem.empty());
  EXPECT_EQ(report.is_found, report.major > 0);
}

TEST(Nvrtc, makes_cubins_and_ptx) {
  SKIP_WITHOUT_NVRTC();
  const auto cubin = compile_cuda(kKernel, "sm_90");
  ASSERT_TRUE(cubin) << cubin.error().message;
  ASSERT_GT(cubin->bytes.size(), 4u);
  EXPECT_EQ(cubin->bytes[0], 0x7f);  // ELF
  EXPECT_EQ(cubin->bytes[1], 'E');
  const auto ptx = compile_cuda(kKernel, "sm_75", {.output = CudaOutput::Ptx});
  ASSERT_TRUE(ptx) << ptx.error().message;
  const std::string text(ptx->bytes.begin(), ptx->bytes.end());
  EXPECT_THAT(text, HasSubstr(".target sm_75"));
  EXPECT_THAT(text, HasSubstr("twice"));
}

TEST(Nvrtc, multiplications_and_additions_are_not_contracted) {
  SKIP_WITHOUT_NVRTC();
  const char* kernel =
      "extern \"C\" __global__ void axpy(float* x, float a) { *x = *x * a + 1.0f; }\n";
  const auto ptx = compile_cuda(kernel, "sm_90", {.output = CudaOutput::Ptx});
  ASSERT_TRUE(ptx) << ptx.error().message;
  const std::string text(ptx->bytes.begin(), ptx->bytes.end());
  EXPECT_EQ(text.find("fma"), std::string::npos) << text;
}

TEST(Nvrtc, wrong_text_gives_the_log) {
  SKIP_WITHOUT_NVRTC();
  const auto result =
      compile_cuda("extern \"C\" __global__ void bad() { undefined_name; }", "sm_90");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, rt::ErrorKind::Internal);
  EXPECT_THAT(result.error().message, HasSubstr("undefined_name"));
}

TEST(Nvrtc, unknown_architectures_are_refused_by_name) {
  SKIP_WITHOUT_NVRTC();
  for (const char* arch : {"sm_70", "sm_1", "compute_90", ""}) {
    const auto result = compile_cuda(kKernel, arch);
    ASSERT_FALSE(result) << arch;
    EXPECT_EQ(result.error().kind, rt::ErrorKind::InvalidArgument);
    EXPECT_THAT(result.error().message, HasSubstr("sm_90"));
  }
}

TEST(Nvrtc, newer_architectures_take_the_ptx_of_the_highest_below) {
  const std::vector<int> known = {75, 90, 80, 120};
  EXPECT_EQ(ptx_arch_for("sm_130", known), "sm_120");
  EXPECT_EQ(ptx_arch_for("sm_103", known), "sm_90");
  EXPECT_EQ(ptx_arch_for("sm_103", std::vector<int>{90, 100, 101, 120}), "sm_100");
  EXPECT_EQ(ptx_arch_for("sm_101", std::vector<int>{90, 100, 101, 120}), "");
  EXPECT_EQ(ptx_arch_for("sm_90", known), "");
  EXPECT_EQ(ptx_arch_for("sm_70", known), "");
  EXPECT_EQ(ptx_arch_for("x86-64", known), "");
  EXPECT_EQ(ptx_arch_for("sm_130", {}), "");
}

TEST(Nvrtc, code_of_earlier_minors_and_ptx_serve) {
  using Archs = std::vector<std::string>;
  EXPECT_EQ(archs_that_serve("sm_80"), (Archs{"sm_80", "ptx"}));
  EXPECT_EQ(archs_that_serve("sm_82"), (Archs{"sm_82", "sm_81", "sm_80", "ptx"}));
  EXPECT_EQ(archs_that_serve("sm_101"), (Archs{"sm_101", "sm_100", "ptx"}));
  EXPECT_EQ(archs_that_serve("sm_120"), (Archs{"sm_120", "ptx"}));
  EXPECT_EQ(archs_that_serve("sm_70"), (Archs{"sm_70"}));
  EXPECT_EQ(archs_that_serve("ptx"), (Archs{"ptx"}));
}

TEST(Nvrtc, what_is_loaded_on_a_newer_device_is_ptx) {
  SKIP_WITHOUT_NVRTC();
  KernelSource source;
  source.text = kKernel;
  source.target = {TargetKind::Cuda, "sm_999"};
  const auto ptx = compile_cuda_to_load(source);
  ASSERT_TRUE(ptx) << ptx.error().message;
  const auto& archs = nvrtc_report().archs;
  const std::string text(ptx->bytes.begin(), ptx->bytes.end());
  EXPECT_THAT(text, HasSubstr(".target " + ptx_arch_for("sm_999", archs)));
  EXPECT_EQ(ptx->bytes.back(), 0);
  source.target.arch = "sm_90";
  const auto cubin = compile_cuda_to_load(source);
  ASSERT_TRUE(cubin) << cubin.error().message;
  EXPECT_EQ(cubin->bytes[0], 0x7f);
  source.target.arch = "sm_70";
  EXPECT_FALSE(compile_cuda_to_load(source));
}

class LibrarySearchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root = std::filesystem::temp_directory_path() /
           ("cinch_library_search_" + std::to_string(::getpid()));
    std::filesystem::create_directories(root);
    for (const char* name : kNames) unsetenv(name);
  }
  void TearDown() override {
    for (const char* name : kNames) unsetenv(name);
    std::filesystem::remove_all(root);
  }
  std::string touch(const std::string& path) {
    std::filesystem::create_directories((root / path).parent_path());
    std::ofstream(root / path) << "x";
    return (root / path).string();
  }
  void set(const char* name, const std::string& place) { setenv(name, (root / place).c_str(), 1); }
  std::vector<LibraryCandidate> candidates() {
    return library_candidates({"libx.so", {"libx.so.13"}, "CINCH_TEST_LIBX"});
  }

  static constexpr const char* kNames[] = {"CINCH_TEST_LIBX", "VIRTUAL_ENV", "CINCH_SITE_PACKAGES",
                                           "CONDA_PREFIX",    "CUDA_PATH",   "CUDA_HOME"};
  std::filesystem::path root;
};

TEST_F(LibrarySearchTest, order_is_loaded_override_wheels_conda_loader_toolkit) {
  const std::string wheel = touch("venv/lib/python3.11/site-packages/nvidia/cu13/lib/libx.so.13");
  const std::string site = touch("site/nvidia/x/lib/libx.so.13");
  const std::string conda = touch("conda/lib/libx.so.13");
  const std::string toolkit = touch("cuda/lib64/libx.so.13");
  const std::string mine = touch("mine/libx.so.13");
  set("VIRTUAL_ENV", "venv");
  set("CINCH_SITE_PACKAGES", "site");
  set("CONDA_PREFIX", "conda");
  set("CUDA_PATH", "cuda");
  set("CINCH_TEST_LIBX", "mine");
  std::vector<std::string> paths;
  for (const LibraryCandidate& c : candidates()) paths.push_back(c.path);
  EXPECT_THAT(
      paths, ::testing::ElementsAre("libx.so.13", mine, wheel, site, conda, "libx.so.13", toolkit));
}

TEST_F(LibrarySearchTest, override_may_be_a_file_and_newer_versions_are_found) {
  const std::string file = touch("odd_name.so");
  set("CINCH_TEST_LIBX", "odd_name.so");
  const std::string newer = touch("cuda/lib64/libx.so.14");
  set("CUDA_HOME", "cuda");
  const auto found = candidates();
  ASSERT_EQ(found.size(), 4u);
  EXPECT_EQ(found[1].path, file);
  EXPECT_EQ(found[3].path, newer);
}

}  // namespace
}  // namespace cinch::codegen
