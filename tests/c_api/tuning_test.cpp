// A user's table of tuning numbers that cannot be used. It is read once per process, so every case
// is a process of its own.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "support.h"

namespace cinch::testing {
namespace {

class CApiTuning : public ::testing::Test {
 protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    std::filesystem::create_directories(folder + "/cinch");
    write("{}");
    unsetenv("CINCH_TUNING");
    setenv("XDG_CONFIG_HOME", folder.c_str(), 1);
  }
  void TearDown() override {
    std::filesystem::remove_all(folder);
    unsetenv("CINCH_TUNING");
    unsetenv("XDG_CONFIG_HOME");
  }

  void write(const char* text) const { std::ofstream(table) << text; }

  [[noreturn]] static void end(cinch_status status, const cinch_error& error) {
    std::fputs(status == CINCH_OK ? "fine" : error.message, stderr);
    std::exit(status);
  }
  static void check() {
    auto error = sized<cinch_error>();
    const cinch_status status = cinch_check_tuning(&error);
    end(status, error);
  }
  static void open_session() {
    const Program program = compile("onebit");
    Tensor tensor(64);
    const cinch_tensor view = tensor.view();
    auto error = sized<cinch_error>();
    cinch_session* session = nullptr;
    const cinch_status status =
        cinch_session_open(program.get(), nullptr, &view, 1, &session, &error);
    const Session held(session);
    if (status == CINCH_OK) EXPECT_EQ(encode(held, 0, {view}).size(), 1u);
    end(status, error);
  }
  static void compile_for_gpu() {
    auto options = sized<cinch_compile_options>();
    options.program = "onebit";
    options.device = CINCH_CUDA;
    options.arch = "sm_90";
    auto error = sized<cinch_error>();
    cinch_program* program = nullptr;
    const cinch_status status = cinch_program_compile(&options, &program, &error);
    cinch_program_release(program);
    end(status, error);
  }

  const std::string folder = ::testing::TempDir() + "cinch_c_api_tuning";
  const std::string table = folder + "/cinch/tuning.json";
};
using CApiTuningDeathTest = CApiTuning;

using ::testing::ExitedWithCode;

TEST_F(CApiTuningDeathTest, ATableThatIsNamedAndBrokenIsAnError) {
  setenv("CINCH_TUNING", table.c_str(), 1);
  const auto* const message = "tuning table: .*tuning.json: there is no format .CINCH_TUNING names";
  EXPECT_EXIT(check(), ExitedWithCode(CINCH_CORRUPT_FILE), message);
  EXPECT_EXIT(open_session(), ExitedWithCode(CINCH_CORRUPT_FILE), message);
  EXPECT_EXIT(compile_for_gpu(), ExitedWithCode(CINCH_CORRUPT_FILE), message);
}

TEST_F(CApiTuningDeathTest, ATableThatIsNamedAndNotThereIsAnError) {
  setenv("CINCH_TUNING", "/nonexistent/table", 1);
  EXPECT_EXIT(check(), ExitedWithCode(CINCH_IO), "/nonexistent/table");
  EXPECT_EXIT(open_session(), ExitedWithCode(CINCH_IO), "/nonexistent/table");
}

TEST_F(CApiTuningDeathTest, ABrokenTableThatIsNotNamedIsToldWhereItIsAskedFor) {
  EXPECT_EXIT(check(), ExitedWithCode(CINCH_CORRUPT_FILE), "tuning.json: there is no format$");
  EXPECT_EXIT(open_session(), ExitedWithCode(CINCH_OK), "fine");
}

TEST_F(CApiTuningDeathTest, TablesThatCanBeUsedAndNoneAreFine) {
  setenv("CINCH_TUNING", table.c_str(), 1);
  write(R"({"format": 1, "entries": []})");
  EXPECT_EXIT(check(), ExitedWithCode(CINCH_OK), "fine");
  EXPECT_EXIT(open_session(), ExitedWithCode(CINCH_OK), "fine");
  write("{}");
  setenv("CINCH_TUNING", "off", 1);
  EXPECT_EXIT(check(), ExitedWithCode(CINCH_OK), "fine");
  EXPECT_EXIT(open_session(), ExitedWithCode(CINCH_OK), "fine");
}

}  // namespace
}  // namespace cinch::testing
