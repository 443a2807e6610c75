// Programs: compiled from text, file and library, described, saved and loaded.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "support.h"

namespace cinch::testing {
namespace {

using ::testing::HasSubstr;

std::string temporary(const char* name) {
  return (std::filesystem::temp_directory_path() / (std::string("cinch-c-api-") + name)).string();
}

TEST(CApiPrograms, VersionsAreThoseOfTheHeader) {
  EXPECT_EQ(CINCH_ABI_VERSION, cinch_abi_version());
  EXPECT_THAT(cinch_version(), HasSubstr("."));
}

TEST(CApiPrograms, AreDescribed) {
  const Program program = compile("keeping.cinch", kKeeping);
  ASSERT_TRUE(program);
  auto info = sized<cinch_program_info>();
  ASSERT_EQ(CINCH_OK, cinch_program_get_info(program.get(), &info, nullptr));
  EXPECT_STREQ("keeping", info.name);
  EXPECT_THAT(info.cpu, HasSubstr("x86-64"));
  EXPECT_EQ(1u, info.num_parameters);
  EXPECT_EQ(1u, info.num_states);
  EXPECT_EQ(0, info.is_matrix);
  EXPECT_EQ(CINCH_GATHER, info.aggregation);
  auto parameter = sized<cinch_parameter_info>();
  ASSERT_EQ(CINCH_OK, cinch_program_get_parameter(program.get(), 0, &parameter, nullptr));
  EXPECT_STREQ("limit", parameter.name);
  EXPECT_STREQ("f32", parameter.type);
  EXPECT_STREQ("(0, inf)", parameter.range);
  EXPECT_EQ(1, parameter.default_value);
  auto state = sized<cinch_state_info>();
  ASSERT_EQ(CINCH_OK, cinch_program_get_state(program.get(), 0, &state, nullptr));
  EXPECT_STREQ("residual", state.name);
  EXPECT_STREQ("f32", state.type);
  EXPECT_EQ(CINCH_OUT_OF_RANGE, cinch_program_get_state(program.get(), 1, &state, nullptr));
}

TEST(CApiPrograms, OfTheLibraryTakeBindings) {
  const Program a = compile("qsgd", nullptr, {"bits=4"});
  const Program b = compile("qsgd", nullptr, {"bits=8"});
  auto of_a = sized<cinch_program_info>(), of_b = sized<cinch_program_info>();
  ASSERT_EQ(CINCH_OK, cinch_program_get_info(a.get(), &of_a, nullptr));
  ASSERT_EQ(CINCH_OK, cinch_program_get_info(b.get(), &of_b, nullptr));
  EXPECT_NE(of_a.fingerprint[0], of_b.fingerprint[0]);
}

TEST(CApiPrograms, TextsMayHoldSeveralAndImportTheLibrary) {
  const char* const text =
      "import std.wrap\nimport std.sign\n"
      "compressor kept = error_feedback(onebit)\ncompressor other = error_feedback(ef_sign)\n";
  auto error = sized<cinch_error>();
  EXPECT_FALSE(compile("two.cinch", text, {}, &error));
  EXPECT_EQ(CINCH_PROGRAM, error.status);
  EXPECT_THAT(error.message, HasSubstr("two.cinch:other"));
  EXPECT_TRUE(compile("two.cinch:kept", text));
}

TEST(CApiPrograms, AreSavedAndLoadedWithoutTheCompiler) {
  const std::string path = temporary("onebit.image");
  const Program program = compile("onebit");
  ASSERT_EQ(CINCH_OK, cinch_program_save(program.get(), path.c_str(), nullptr));
  cinch_program* loaded = nullptr;
  ASSERT_EQ(CINCH_OK, cinch_program_load(path.c_str(), &loaded, nullptr));
  const Program from_file(loaded);
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  ASSERT_EQ(CINCH_OK, cinch_program_load_bytes(bytes.data(), bytes.size(), &loaded, nullptr));
  const Program from_bytes(loaded);
  Tensor tensor(5000);
  const auto expected = encode(open(program, {tensor.view()}), 0, {tensor.view()});
  EXPECT_EQ(expected, encode(open(from_file, {tensor.view()}), 0, {tensor.view()}));
  EXPECT_EQ(expected, encode(open(from_bytes, {tensor.view()}), 0, {tensor.view()}));
  std::filesystem::remove(path);
}

TEST(CApiPrograms, AreLoadedFromAPipe) {
  const Program program = compile("keeping.cinch", kKeeping);
  const std::string image = temporary("piped.image"), pipe = temporary("pipe");
  ASSERT_EQ(CINCH_OK, cinch_program_save(program.get(), image.c_str(), nullptr));
  std::filesystem::remove(pipe);
  ASSERT_EQ(0, ::mkfifo(pipe.c_str(), 0600));
  std::thread writer([&] {
    std::ofstream(pipe, std::ios::binary) << std::ifstream(image, std::ios::binary).rdbuf();
  });
  auto error = sized<cinch_error>();
  cinch_program* loaded = nullptr;
  EXPECT_EQ(CINCH_OK, cinch_program_load(pipe.c_str(), &loaded, &error)) << error.message;
  writer.join();
  cinch_program_release(loaded);
  std::filesystem::remove(pipe);
  std::filesystem::remove(image);
}

TEST(CApiPrograms, BytesThatAreNoImageAreRefused) {
  const Program program = compile("onebit");
  const std::string path = temporary("changed.image");
  ASSERT_EQ(CINCH_OK, cinch_program_save(program.get(), path.c_str(), nullptr));
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  for (std::size_t at = 0; at < bytes.size(); at += bytes.size() / 37 + 1) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ 0x10);
    cinch_program* loaded = nullptr;
    const cinch_status status =
        cinch_program_load_bytes(changed.data(), changed.size(), &loaded, nullptr);
    EXPECT_TRUE(status == CINCH_CORRUPT_FILE || status == CINCH_VERSION_MISMATCH) << at;
    EXPECT_EQ(nullptr, loaded);
  }
  std::filesystem::remove(path);
}

TEST(CApiPrograms, MayBeCompiledAndUsedByManyThreads) {
  const Program shared = compile("keeping.cinch", kKeeping);
  std::vector<std::vector<std::string>> given(4);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < given.size(); ++t) {
    threads.emplace_back([&, t] {
      const Program own = compile("keeping.cinch", kKeeping);
      Tensor tensor(3000);
      given[t] = encode(open(t % 2 == 0 ? shared : own, {tensor.view()}), 0, {tensor.view()});
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& payloads : given) EXPECT_EQ(given[0], payloads);
}

}  // namespace
}  // namespace cinch::testing
