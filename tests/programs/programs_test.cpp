// Whole programs: the standard library at its defaults and every program of this folder,
// interpreter against CPU, bit for bit. One test per program and kind of check; CINCH_LONG=1
// runs the full matrix of cases.
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "tests/environment.h"
#include "tests/programs/harness/matrix.h"

namespace cinch::testing {
namespace {

// Compiled once per program, whatever tests look at it.
struct Built {
  std::string error;
  Compiled compiled;
  std::vector<std::shared_ptr<const rt::LoadedProgram>> by_arch;
};

Built build(const ProgramFile& program) {
  Built built;
  auto compiled = compile(program);
  if (!compiled) {
    built.error = compiled.error();
    return built;
  }
  built.compiled = std::move(*compiled);
  auto loaded = load_for_all(built.compiled.kernels, levels_of(program.name));
  if (loaded) {
    built.by_arch = std::move(*loaded);
  } else {
    built.error = loaded.error();
  }
  return built;
}

const Built& built(const ProgramFile& program) {
  static std::map<std::string, Built> all;
  const auto found = all.find(program.path);
  return found != all.end() ? found->second
                            : all.emplace(program.path, build(program)).first->second;
}

class ProgramCheck : public ::testing::Test {
 public:
  using Check = std::function<void(const ProgramFile&, const Built&)>;
  ProgramCheck(ProgramFile program, Check check)
      : program_(std::move(program)), check_(std::move(check)) {}

  void TestBody() override {
    const Built& all = built(program_);
    ASSERT_TRUE(all.error.empty()) << all.error;
    check_(program_, all);
  }

 private:
  ProgramFile program_;
  Check check_;
};

void agree(const ProgramFile& program, const Built& all) {
  const std::string difference = run_matrix(program, all.compiled, all.by_arch, is_long_run());
  EXPECT_TRUE(difference.empty()) << difference;
}

void have_kernels(const ProgramFile& program, const Built& all) {
  const std::map<std::string, rt::EntryKind> entries = {{"init", rt::EntryKind::Init},
                                                        {"encode", rt::EntryKind::Encode},
                                                        {"decode", rt::EntryKind::Decode},
                                                        {"decode_add", rt::EntryKind::DecodeAdd},
                                                        {"finish", rt::EntryKind::Finish}};
  for (const auto& [name, expected] : program.kernels) {
    ASSERT_TRUE(entries.contains(name)) << name;
    EXPECT_EQ(count_sweeps(all.by_arch[0]->image(), entries.at(name)), expected) << name;
  }
}

void refuse_hostile(const ProgramFile& program, const Built& all) {
  const std::string found = attack_decoder(program, all.by_arch.back());
  EXPECT_TRUE(found.empty()) << found;
}

void keep_bounds(const ProgramFile& program, const Built& all) {
  const std::string found = check_payload_bounds(program, all.by_arch.back());
  EXPECT_TRUE(found.empty()) << found;
}

void register_check(const char* suite, const ProgramFile& program,
                    const ProgramCheck::Check& check) {
  ::testing::RegisterTest(suite, program.name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                          [=]() -> ProgramCheck* { return new ProgramCheck(program, check); });
}

// A folder's programs; a file that cannot be read is a test that fails.
void register_folder(const std::filesystem::path& folder) {
  for (const auto& path : find_programs(folder)) {
    auto program = read_program(path);
    if (!program) {
      ProgramFile broken;
      broken.path = broken.name = path.string();
      register_check("Unreadable", broken, [](const ProgramFile&, const Built&) {});
      continue;
    }
    // A wrapper alone is no program; programs of tests/programs compose it. Protocols run over
    // ranks: protocols_test.
    if (is_wrapper(*program) || is_protocol(*program)) continue;
    register_check("Agree", *program, agree);
    register_check("Bounds", *program, keep_bounds);
    register_check("Hostile", *program, refuse_hostile);
    if (!program->kernels.empty()) register_check("Kernels", *program, have_kernels);
  }
}

// What this machine cannot run is named, not left out in silence.
TEST(Architectures, AllLevelsRun) {
  const Architectures all = architectures();
  for (const std::string& arch : all.missing) {
    GTEST_SKIP() << "this machine does not run " << arch << ": its kernels are not compared here";
  }
}

}  // namespace
}  // namespace cinch::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  cinch::testing::register_folder(CINCH_STDLIB_DIR);
  cinch::testing::register_folder(CINCH_PROGRAMS_DIR);
  return RUN_ALL_TESTS();
}
