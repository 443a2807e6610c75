// NVRTC compiles the CUDA text of whole programs without a word: of those that together have all
// that the emitter writes; with CINCH_LONG=1 of all, and for other architectures too, from the
// oldest to the newest.
//
//   cuda_compiles_test [FOLDER]
//
// With a folder, whose name is a version of NVRTC and which holds its wheel: that one, and, but for
// CINCH_LONG=1, a third of the programs, only as far as PTX.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <set>

#include "codegen/emit/cuda.h"
#include "codegen/jit/nvrtc.h"
#include "tests/environment.h"
#include "tests/programs/harness/compile.h"
#include "tests/programs/harness/matrix.h"

namespace cinch::testing {
namespace {

namespace fs = std::filesystem;
using Words = std::set<std::string, std::less<>>;

std::string cuda_text(const ProgramFile& program) {
  const auto compiled = compile(program);
  return compiled ? codegen::emit_cuda(compiled->kernels, {.arch = "sm_90"}).text : "";
}

bool is_of_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

// Names that are called, or instantiated from a template.
Words called_names(std::string_view text) {
  Words names;
  for (auto it = text.begin(); it != text.end();) {
    const auto begin = std::find_if(it, text.end(), is_of_word);
    it = std::find_if_not(begin, text.end(), is_of_word);
    const bool is_called = it != text.end() && (*it == '(' || *it == '<');
    if (is_called && std::isdigit(static_cast<unsigned char>(*begin)) == 0) {
      names.emplace(begin, it);
    }
  }
  return names;
}

// The parts of a program's text: a comment, the prelude, and its own code.
struct Parts {
  std::string_view prelude, own;
};

Parts parts_of(std::string_view text) {
  const std::size_t own = text.rfind("namespace cinch {\n\n");
  const std::size_t prelude = text.find("\nnamespace ");
  if (own == std::string_view::npos || prelude > own) return {};
  return {text.substr(prelude, own - prelude), text.substr(own)};
}

// A small set of programs that together call everything of the prelude that any program calls:
// repeatedly takes the program that adds most for its length.
std::vector<ProgramFile> covering(const std::vector<ProgramFile>& programs) {
  struct Candidate {
    const ProgramFile* program;
    double length;
    Words missing = {};
    double gain() const { return static_cast<double>(missing.size()) / length; }
  };
  std::vector<Candidate> candidates;
  for (const ProgramFile& program : programs) {
    const std::string text = cuda_text(program);
    const auto [prelude, own] = parts_of(text);
    Candidate& made = candidates.emplace_back(&program, static_cast<double>(own.size()) + 1);
    std::ranges::set_intersection(called_names(prelude), called_names(own),
                                  std::inserter(made.missing, made.missing.end()));
  }
  std::vector<ProgramFile> taken;
  for (;;) {
    const auto best = std::ranges::max_element(candidates, {}, &Candidate::gain);
    if (best == candidates.end() || best->missing.empty()) return taken;
    taken.push_back(*best->program);
    for (const std::string& name : Words(best->missing)) {
      for (Candidate& candidate : candidates) candidate.missing.erase(name);
    }
  }
}

std::vector<ProgramFile> programs_to_compile() {
  std::vector<ProgramFile> programs = programs_for_cuda(is_long_run());
  return is_long_run() ? programs : covering(programs);
}

class NvrtcCheck : public ::testing::Test {
 public:
  NvrtcCheck(ProgramFile program, codegen::CudaOutput output)
      : program_(std::move(program)), output_(output) {}

  void TestBody() override {
    if (!codegen::nvrtc_report().is_found) GTEST_SKIP() << describe(codegen::nvrtc_report());
    const auto compiled = compile(program_);
    ASSERT_TRUE(compiled) << compiled.error();
    std::vector<std::string> archs = {"sm_90"};
    if (is_long_run()) archs = {"sm_75", "sm_80", "sm_90", "sm_100", "sm_120"};
    for (const std::string& arch : archs) {
      const auto source = codegen::emit_cuda(compiled->kernels, {.arch = arch});
      const auto binary =
          codegen::compile_cuda(source, {.output = output_, .effort = codegen::Effort::Quick});
      ASSERT_TRUE(binary) << arch << ": " << binary.error().message;
      EXPECT_EQ(binary->log, "") << arch;
      EXPECT_GT(binary->bytes.size(), 1000u);
    }
  }

 private:
  ProgramFile program_;
  codegen::CudaOutput output_;
};

// Devices newer than this NVRTC, of a generation that it knows and of one that it does not.
class NewerDeviceCheck : public ::testing::Test {
 public:
  NewerDeviceCheck(ProgramFile program, std::string version)
      : program_(std::move(program)), version_(std::move(version)) {}

  void TestBody() override {
    const codegen::NvrtcReport& report = codegen::nvrtc_report();
    EXPECT_EQ(fmt::format("{}.{}", report.major, report.minor), version_) << describe(report);
    const auto compiled = compile(program_);
    ASSERT_TRUE(compiled) << compiled.error();
    for (const char* arch : {"sm_103", "sm_121", "sm_999"}) {
      const std::string serves = codegen::ptx_arch_for(arch, report.archs);
      const auto source = codegen::emit_cuda(compiled->kernels, {.arch = arch});
      const auto binary = codegen::compile_cuda_to_load(source, codegen::Effort::Quick);
      ASSERT_TRUE(binary) << arch << ": " << binary.error().message;
      const std::string text(binary->bytes.begin(), binary->bytes.end());
      const bool is_ptx = text.find(".target " + serves) != std::string::npos;
      EXPECT_EQ(is_ptx, !serves.empty()) << arch;
    }
  }

 private:
  ProgramFile program_;
  std::string version_;
};

class AbsentWheel : public ::testing::Test {
 public:
  explicit AbsentWheel(fs::path folder) : folder_(std::move(folder)) {}
  void TestBody() override {
    GTEST_SKIP() << "no wheel of NVRTC in " << folder_ << "; ./dev test installs it there";
  }

 private:
  fs::path folder_;
};

template <typename Check, typename... Args>
void register_check(const std::string& name, const Args&... args) {
  ::testing::RegisterTest("CudaCompiles", name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                          [=]() -> ::testing::Test* { return new Check(args...); });
}

// The wheel's library; empty if it is not there.
fs::path library_in(const fs::path& folder) {
  std::error_code error;
  for (const auto& entry : fs::recursive_directory_iterator(folder, error)) {
    if (entry.path().filename().string().starts_with("libnvrtc.so.")) return entry.path();
  }
  return {};
}

void register_for_wheel(const fs::path& folder) {
  const fs::path library = library_in(folder);
  if (library.empty()) return register_check<AbsentWheel>("wheel", folder);
  ::setenv("CINCH_NVRTC", library.c_str(), 1);
  const std::vector<ProgramFile> programs = everyday_part_of(programs_to_compile(), 3);
  const auto output = is_long_run() ? codegen::CudaOutput::Cubin : codegen::CudaOutput::Ptx;
  for (const ProgramFile& program : programs) {
    register_check<NvrtcCheck>(program.name, program, output);
  }
  register_check<NewerDeviceCheck>("newer_devices", programs.front(), folder.filename().string());
}

}  // namespace
}  // namespace cinch::testing

int main(int argc, char** argv) {
  using namespace cinch::testing;
  ::testing::InitGoogleTest(&argc, argv);
  if (argc > 1) {
    register_for_wheel(argv[1]);
    return RUN_ALL_TESTS();
  }
  for (const auto& program : programs_to_compile()) {
    register_check<NvrtcCheck>(program.name, program, cinch::codegen::CudaOutput::Cubin);
  }
  return RUN_ALL_TESTS();
}
