// Programs: compiled from text, file and library, described, saved and loaded.
#include <cinch_sync.h>
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <array>
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
      "compressor kept = error_feedback(onebit)\ncompressor other = momentum(ef_sign)\n";
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

TEST(CApiPrograms, AnExpressionIsAProgram) {
  const Program program = compile("error_feedback(topk(ratio: 0.125))");
  ASSERT_NE(program, nullptr);
  auto info = sized<cinch_program_info>();
  auto error = sized<cinch_error>();
  ASSERT_EQ(CINCH_OK, cinch_program_get_info(program.get(), &info, &error)) << error.message;
  EXPECT_STREQ(info.name, "error_feedback_topk_ratio_0_125");
  auto options = sized<cinch_compile_options>();
  options.program = "error_feedback(nothing)";
  cinch_program* none = nullptr;
  EXPECT_EQ(CINCH_PROGRAM, cinch_program_compile(&options, &none, &error));
  EXPECT_THAT(error.message, HasSubstr("nothing"));
}

std::string warnings_of(const Program& program) {
  auto info = sized<cinch_program_info>();
  EXPECT_EQ(CINCH_OK, cinch_program_get_info(program.get(), &info, nullptr));
  return info.warnings;
}

TEST(CApiPrograms, TellWarningsWheneverTheyAreCompiled) {
  for (int i = 0; i < 2; ++i) {
    const Program program = compile("error_feedback(qsgd)");
    ASSERT_TRUE(program);
    EXPECT_THAT(warnings_of(program), HasSubstr("warning[S095]: `qsgd` is unbiased"));
    EXPECT_EQ("", warnings_of(compile("onebit")));
  }
  const std::string path = temporary("warned.image");
  const Program program = compile("error_feedback(qsgd)", nullptr, {"bits=3"});
  EXPECT_THAT(warnings_of(program), HasSubstr("not a contraction"));
  ASSERT_EQ(CINCH_OK, cinch_program_save(program.get(), path.c_str(), nullptr));
  cinch_program* loaded = nullptr;
  ASSERT_EQ(CINCH_OK, cinch_program_load(path.c_str(), &loaded, nullptr));
  EXPECT_EQ("", warnings_of(Program(loaded)));
  std::filesystem::remove(path);
}

TEST(CApiPrograms, OnesWithASyncAreCompiledForRanks) {
  const Program program = compile("terngrad_shared");
  ASSERT_NE(program, nullptr);
  Tensor gradient(64);
  const auto view = gradient.view();
  auto options = sized<cinch_session_options>();
  cinch_session* opened = nullptr;
  auto error = sized<cinch_error>();
  ASSERT_EQ(CINCH_OK, cinch_session_open(program.get(), &options, &view, 1, &opened, &error))
      << error.message;
  const Session session(opened);
  auto payload = sized<cinch_payload>();
  EXPECT_EQ(CINCH_INVALID_ARGUMENT,
            cinch_encode(session.get(), 0, nullptr, 1, &view, &payload, &error));
  EXPECT_THAT(error.message, HasSubstr("terngrad_shared has no encode"));
}

TEST(CApiPrograms, TheLibraryIsListed) {
  std::size_t size = 0;
  auto error = sized<cinch_error>();
  ASSERT_EQ(CINCH_OK, cinch_programs_list(nullptr, nullptr, &size, &error)) << error.message;
  std::string text(size, ' ');
  ASSERT_EQ(CINCH_OK, cinch_programs_list(nullptr, text.data(), &size, &error));
  EXPECT_THAT(text, HasSubstr("\"name\":\"dgc\""));
  EXPECT_EQ(text.front(), '[');
  size = 3;
  EXPECT_EQ(CINCH_INVALID_ARGUMENT, cinch_programs_list(nullptr, text.data(), &size, &error));
}

// The diagnostics of a program with many errors, more than a cinch_error holds.
TEST(CApiPrograms, WholeDiagnosticsAreKept) {
  std::string text = "compressor faulty {\n  sync(g: [f32; n]) {\n";
  for (int i = 0; i < 60; ++i) text += "    let a" + std::to_string(i) + " = missing\n";
  text += "    g\n  }\n}\n";
  auto options = sized<cinch_compile_options>();
  options.text = text.c_str();
  options.text_size = text.size();
  cinch_program* none = nullptr;
  auto error = sized<cinch_error>();
  ASSERT_EQ(CINCH_PROGRAM, cinch_program_compile(&options, &none, &error));
  const std::string whole = cinch_error_message();
  EXPECT_EQ(whole.size(), error.message_size);
  EXPECT_GT(whole.size(), sizeof error.message);
  EXPECT_TRUE(whole.starts_with(error.message));
}

TEST(CApiPolicies, SayWhichTensorIsCompressedByWhat) {
  const std::int64_t matrix[] = {100, 100}, flat[] = {20000};
  std::array tensors = {sized<cinch_policy_tensor>(), sized<cinch_policy_tensor>(),
                        sized<cinch_policy_tensor>()};
  const char* const names[] = {"fc.weight", "fc.bias", "frozen.weight"};
  for (std::size_t i = 0; i < 3; ++i) {
    tensors[i].name = names[i];
    tensors[i].shape = i == 1 ? flat : matrix;
    tensors[i].num_dims = i == 1 ? 1 : 2;
  }
  const char* const rules = R"({"rules": [{"name": "frozen.*", "use": "off"},
    {"min_dims": 2, "use": "dgc", "set": {"ratio": 0.25}, "priority": 3}]})";
  auto error = sized<cinch_error>();
  cinch_policy* policy = nullptr;
  ASSERT_EQ(CINCH_OK, cinch_policy_apply(rules, tensors.data(), 3, &policy, &error))
      << error.message;
  ASSERT_EQ(1U, cinch_policy_num_programs(policy));
  auto program = sized<cinch_policy_program>();
  ASSERT_EQ(CINCH_OK, cinch_policy_get_program(policy, 0, &program, &error));
  EXPECT_STREQ(program.program, "dgc");
  ASSERT_EQ(1U, program.num_bindings);
  EXPECT_STREQ(program.bindings[0], "ratio=0.25");
  const std::int32_t wanted[] = {0, CINCH_EXACT, CINCH_OFF};
  for (std::size_t i = 0; i < 3; ++i) {
    auto choice = sized<cinch_policy_choice>();
    ASSERT_EQ(CINCH_OK, cinch_policy_get_choice(policy, i, &choice, &error));
    EXPECT_EQ(choice.program, wanted[i]) << i;
    EXPECT_EQ(choice.priority, i == 0 ? 3 : 0);
  }
  EXPECT_EQ(CINCH_OUT_OF_RANGE, cinch_policy_get_program(policy, 1, &program, &error));
  cinch_policy_release(policy);
  EXPECT_EQ(CINCH_CORRUPT_FILE, cinch_policy_apply(R"({"rules": [{"uses": "dgc"}]})",
                                                   tensors.data(), 3, &policy, &error));
  EXPECT_EQ(CINCH_OK, cinch_policy_apply(nullptr, tensors.data(), 3, &policy, &error));
  EXPECT_EQ(1U, cinch_policy_num_programs(policy));
  cinch_policy_release(policy);
}

}  // namespace
}  // namespace cinch::testing
