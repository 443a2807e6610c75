// Sessions of many tensors: decoded values equal the encoded ones, calls are all or nothing, states
// can be moved, memory is the caller's if wanted.
#include <gmock/gmock.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <thread>

#include "../two_threads.h"
#include "support.h"

namespace cinch::testing {
namespace {

using ::testing::HasSubstr;

TEST(CApiSessions, ManyTensorsAreOneCall) {
  const Program program = compile("fp16");
  Tensor a(1), b(0), c(1025), out_a(1), out_b(0), out_c(1025);
  const std::vector<cinch_tensor> inputs = {a.view(), b.view(), c.view()};
  const Session session = open(program, inputs);
  EXPECT_EQ(3u, cinch_session_num_tensors(session.get()));
  std::size_t bounds[3];
  ASSERT_EQ(CINCH_OK, cinch_payload_bounds(session.get(), 0, nullptr, 3, bounds, nullptr));
  auto bytes = encode(session, 0, inputs);
  std::vector<cinch_payload> payloads;
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_LE(bytes[i].size(), bounds[i]);
    payloads.push_back(payload_of(bytes[i]));
  }
  const std::vector<cinch_tensor> outputs = {out_a.view(), out_b.view(), out_c.view()};
  ASSERT_EQ(CINCH_OK,
            cinch_decode(session.get(), 0, nullptr, 3, payloads.data(), outputs.data(), nullptr));
  for (std::size_t i = 0; i < 1025; ++i) {
    EXPECT_NEAR(c.values()[i], out_c.values()[i], 1e-3f);
  }
  ASSERT_EQ(CINCH_OK, cinch_decode_add(session.get(), 0, nullptr, 3, payloads.data(),
                                       outputs.data(), nullptr));
  EXPECT_NEAR(2 * c.values()[7], out_c.values()[7], 2e-3f);
}

TEST(CApiSessions, SomeTensorsInAnyOrder) {
  const Program program = compile("keeping.cinch", kKeeping);
  Tensor a(100), b(200), c(300);
  const Session session = open(program, {a.view(), b.view(), c.view()});
  const std::size_t which[] = {2, 0};
  const std::vector<cinch_tensor> gradients = {c.view(), a.view()};
  std::vector<cinch_payload> payloads(2, sized<cinch_payload>());
  const std::string untouched = states_of(session, 1);
  ASSERT_EQ(CINCH_OK,
            cinch_encode(session.get(), 0, which, 2, gradients.data(), payloads.data(), nullptr));
  EXPECT_GT(payloads[0].size, payloads[1].size);
  EXPECT_EQ(untouched, states_of(session, 1));
}

TEST(CApiSessions, EqualWhateverTheTypeOfTensors) {
  const Program program = compile("fp16");
  Tensor values(777);
  std::vector<std::uint16_t> halves(777);
  const Session session = open(program, {values.view()});
  auto bytes = encode(session, 0, {values.view()});
  const cinch_payload payload = payload_of(bytes[0]);
  cinch_tensor out = values.view();
  out.data = halves.data();
  out.dtype = CINCH_F16;
  ASSERT_EQ(CINCH_OK, cinch_decode(session.get(), 0, nullptr, 1, &payload, &out, nullptr));
  // f16 values are kept as they are.
  EXPECT_EQ(bytes, encode(session, 0, {out}));
}

TEST(CApiSessions, ACallIsAllOrNothing) {
  const Program program = compile("keeping.cinch", kKeeping);
  Tensor a(100, 3), b(200, 3), bad(200, 500);
  const Session session = open(program, {a.view(), b.view()});
  encode(session, 0, {a.view(), b.view()});
  const std::string of_a = states_of(session, 0), of_b = states_of(session, 1);
  std::vector<cinch_payload> payloads(2, sized<cinch_payload>());
  auto error = sized<cinch_error>();
  const std::vector<cinch_tensor> failing = {a.view(), bad.view()};
  EXPECT_EQ(CINCH_CHECK_FAILED,
            cinch_encode(session.get(), 1, nullptr, 2, failing.data(), payloads.data(), &error));
  EXPECT_EQ(1u, error.tensor);
  EXPECT_THAT(error.message, HasSubstr("keeping.cinch:6:5: magnitudes stay below 100"));
  EXPECT_EQ(of_a, states_of(session, 0));
  EXPECT_EQ(of_b, states_of(session, 1));

  // A payload that does not fit is detected after its tensor was compressed.
  std::string small(10, '\0');
  payloads[1] = payload_of(small);
  payloads[1].capacity = small.size();
  const std::vector<cinch_tensor> good = {a.view(), b.view()};
  EXPECT_EQ(CINCH_INVALID_ARGUMENT,
            cinch_encode(session.get(), 1, nullptr, 2, good.data(), payloads.data(), &error));
  EXPECT_EQ(of_a, states_of(session, 0));
  EXPECT_EQ(of_b, states_of(session, 1));

  // A call that changes no state never undoes an earlier call that succeeded.
  payloads.assign(2, sized<cinch_payload>());
  EXPECT_EQ(CINCH_INVALID_ARGUMENT,
            cinch_decode(session.get(), 1, nullptr, 2, payloads.data(), good.data(), &error));
  EXPECT_EQ(of_a, states_of(session, 0));
}

TEST(CApiSessions, NonFiniteGradientsLeaveTheStateAndDecodeToNaN) {
  const Program program = compile("keeping.cinch", kKeeping);
  Tensor tensor(50, 3), out(50);
  const Session session = open(program, {tensor.view()});
  encode(session, 0, {tensor.view()});
  const std::string before = states_of(session, 0);
  tensor.values()[17] = std::numeric_limits<float>::infinity();
  auto bytes = encode(session, 1, {tensor.view()});
  EXPECT_EQ(before, states_of(session, 0));
  const cinch_payload payload = payload_of(bytes[0]);
  const cinch_tensor output = out.view();
  ASSERT_EQ(CINCH_OK, cinch_decode(session.get(), 1, nullptr, 1, &payload, &output, nullptr));
  for (float value : out.values()) EXPECT_NE(value, value);
}

TEST(CApiSessions, ParametersAreBoundPerStep) {
  const Program program = compile("keeping.cinch", kKeeping);
  Tensor tensor(64), out(64);
  const Session session = open(program, {tensor.view()});
  ASSERT_EQ(CINCH_OK, cinch_session_set(session.get(), "limit", 0.25, nullptr));
  auto bytes = encode(session, 0, {tensor.view()});
  const cinch_payload payload = payload_of(bytes[0]);
  const cinch_tensor output = out.view();
  ASSERT_EQ(CINCH_OK, cinch_decode(session.get(), 0, nullptr, 1, &payload, &output, nullptr));
  for (float value : out.values()) EXPECT_LE(std::abs(value), 0.25f);
  EXPECT_EQ(CINCH_OUT_OF_RANGE, cinch_session_set(session.get(), "limit", -1, nullptr));
  auto error = sized<cinch_error>();
  EXPECT_EQ(CINCH_INVALID_ARGUMENT, cinch_session_set(session.get(), "limt", 1, &error));
  EXPECT_THAT(error.message, HasSubstr("limit"));
}

TEST(CApiSessions, InputsComeWithEachStep) {
  const Program program = compile("fed.cinch", kFed);
  auto info = sized<cinch_program_info>();
  ASSERT_EQ(CINCH_OK, cinch_program_get_info(program.get(), &info, nullptr));
  EXPECT_EQ(0u, info.num_parameters);
  EXPECT_EQ(1u, info.num_states);
  EXPECT_EQ(2u, info.num_inputs);
  auto input = sized<cinch_input_info>();
  ASSERT_EQ(CINCH_OK, cinch_program_get_input(program.get(), 0, &input, nullptr));
  EXPECT_STREQ("lr", input.name);
  EXPECT_STREQ("(0, inf)", input.range);
  EXPECT_EQ(0, input.is_array);
  ASSERT_EQ(CINCH_OK, cinch_program_get_input(program.get(), 1, &input, nullptr));
  EXPECT_STREQ("weights", input.name);
  EXPECT_EQ(1, input.is_array);
  EXPECT_EQ(CINCH_OUT_OF_RANGE, cinch_program_get_input(program.get(), 2, &input, nullptr));

  Tensor gradient(64), weights(64, 3), few(63);
  const Session session = open(program, {gradient.view()});
  const cinch_tensor from = gradient.view(), array = weights.view(), short_array = few.view();
  auto error = sized<cinch_error>();
  auto payload = sized<cinch_payload>();
  const auto encode_at = [&](std::uint64_t step) {
    payload = sized<cinch_payload>();
    return cinch_encode(session.get(), step, nullptr, 1, &from, &payload, &error);
  };
  const auto set_array = [&](const char* name, const cinch_tensor* given) {
    return cinch_session_set_input(session.get(), 0, name, given, &error);
  };
  const std::string before = states_of(session, 0);
  EXPECT_EQ(CINCH_INVALID_ARGUMENT, encode_at(0));
  EXPECT_THAT(error.message, HasSubstr("the input lr has no value in step 0"));
  EXPECT_EQ(CINCH_OUT_OF_RANGE, cinch_session_set(session.get(), "lr", 0, &error));
  EXPECT_THAT(error.message, HasSubstr("input lr = 0 is outside (0, inf)"));
  ASSERT_EQ(CINCH_OK, cinch_session_set(session.get(), "lr", 0.5, &error));
  EXPECT_EQ(CINCH_INVALID_ARGUMENT, encode_at(0));
  EXPECT_THAT(error.message, HasSubstr("the input weights has no value in step 0"));
  EXPECT_EQ(CINCH_INVALID_ARGUMENT, set_array("weights", &short_array));
  EXPECT_THAT(error.message, HasSubstr("input weights: 63 elements, the tensor has 64"));
  EXPECT_EQ(CINCH_INVALID_ARGUMENT, set_array("lr", &array));
  EXPECT_THAT(error.message, HasSubstr("lr is a number, not an array"));
  EXPECT_EQ(CINCH_INVALID_ARGUMENT, set_array("seen", &array));
  EXPECT_THAT(error.message, HasSubstr("seen is not an input of fed, which has weights"));
  EXPECT_EQ(CINCH_INVALID_ARGUMENT, set_array("weights", nullptr));
  EXPECT_EQ(before, states_of(session, 0));
  ASSERT_EQ(CINCH_OK, set_array("weights", &array));
  ASSERT_EQ(CINCH_OK, encode_at(0)) << error.message;
  const auto* bytes = static_cast<const char*>(payload.data) + payload.size - 64 * sizeof(float);
  for (std::size_t i = 0; i < 64; ++i) {
    float value = 0;
    std::memcpy(&value, bytes + i * sizeof(float), sizeof value);
    const float w = weights.values()[i];
    EXPECT_FLOAT_EQ(gradient.values()[i] * w + 0.5f * w, value) << i;
  }
  // Both were of step 0.
  EXPECT_EQ(CINCH_INVALID_ARGUMENT, encode_at(1));
  ASSERT_EQ(CINCH_OK, cinch_session_set(session.get(), "lr", 0.25, &error));
  EXPECT_EQ(CINCH_INVALID_ARGUMENT, encode_at(1));
  EXPECT_THAT(error.message, HasSubstr("the input weights has no value in step 1"));
}

TEST(CApiSessions, ParametersAreBoundToWords) {
  const char* const text =
      "compressor worded(fit: {near, far} = near, limit: f32 = 1) {\n"
      "  wire { value: [f32; n] }\n"
      "  encode(g: [f32; n]) { wire { value: if fit == near { g } else { -g } } }\n"
      "  decode(w) { min(w.value, limit) }\n"
      "}\n";
  const Program program = compile("worded.cinch", text, {"fit=far"});
  ASSERT_TRUE(program);
  auto parameter = sized<cinch_parameter_info>();
  ASSERT_EQ(CINCH_OK, cinch_program_get_parameter(program.get(), 0, &parameter, nullptr));
  EXPECT_STREQ("near, far", parameter.words);
  EXPECT_EQ(1, parameter.default_value);
  ASSERT_EQ(CINCH_OK, cinch_program_get_parameter(program.get(), 1, &parameter, nullptr));
  EXPECT_STREQ("", parameter.words);

  auto error = sized<cinch_error>();
  const auto value_of = [&](const char* name, const char* word) {
    double value = -1;
    const auto status = cinch_program_parameter_value(program.get(), name, word, &value, &error);
    return status == CINCH_OK ? value : -1 - status;
  };
  EXPECT_EQ(0, value_of("fit", "near"));
  EXPECT_EQ(1, value_of("fit", "far"));
  EXPECT_EQ(0.25, value_of("limit", "0.25"));
  EXPECT_EQ(-1 - CINCH_OUT_OF_RANGE, value_of("fit", "fra"));
  EXPECT_STREQ("parameter fit = fra is not a value of {near, far}", error.message);
  EXPECT_EQ(-1 - CINCH_OUT_OF_RANGE, value_of("limit", "near"));
  EXPECT_STREQ("parameter limit = near is not a value of f32", error.message);
  EXPECT_EQ(-1 - CINCH_INVALID_ARGUMENT, value_of("fitt", "near"));
  EXPECT_THAT(error.message, HasSubstr("did you mean fit?"));
  EXPECT_EQ(CINCH_INVALID_ARGUMENT,
            cinch_program_parameter_value(program.get(), "fit", nullptr, nullptr, &error));

  Tensor tensor(64);
  const Session session = open(program, {tensor.view()});
  EXPECT_EQ(CINCH_OK, cinch_session_set(session.get(), "fit", value_of("fit", "near"), &error));
  EXPECT_EQ(CINCH_OUT_OF_RANGE, cinch_session_set(session.get(), "fit", 2, &error));
  EXPECT_THAT(error.message, HasSubstr("{near, far}"));
}

TEST(CApiSessions, StatesInPlaceTakeNoSecondBuffer) {
  auto options = sized<cinch_compile_options>();
  options.program = "tbq";
  std::vector<std::string> payloads[2];
  std::size_t workspace[2] = {};
  for (const cinch_states states : {CINCH_STATES_SECOND_BUFFER, CINCH_STATES_IN_PLACE}) {
    options.states = states;
    cinch_program* compiled = nullptr;
    ASSERT_EQ(CINCH_OK, cinch_program_compile(&options, &compiled, nullptr));
    const Program program(compiled);
    Tensor tensor(5000, 3);
    const Session session = open(program, {tensor.view()});
    payloads[states] = encode(session, 0, {tensor.view()});
    workspace[states] = cinch_session_workspace_bytes(session.get());
  }
  EXPECT_EQ(payloads[0], payloads[1]);
  EXPECT_GE(workspace[0], workspace[1] + 5000 * sizeof(float));
  // A caller of the first version, whose struct ends before the field.
  options.struct_size = offsetof(cinch_compile_options, states);
  cinch_program* compiled = nullptr;
  EXPECT_EQ(CINCH_OK, cinch_program_compile(&options, &compiled, nullptr));
  cinch_program_release(compiled);
}

TEST(CApiSessions, HeadersAreFoundInTheFoldersGiven) {
  const std::string folder = ::testing::TempDir() + "cinch-c-api-headers";
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/doubled.h") << "inline float doubled(float x) { return x * 2; }\n";
  const std::string text =
      "extern fn doubled(x: f32) -> f32 from \"doubled.h\"\n"
      "compressor calls {\n  wire { value: [f32; n] }\n"
      "  encode(g: [f32; n]) { wire { value: doubled(g) } }\n  decode(w) { w.value }\n}\n";
  auto options = sized<cinch_compile_options>();
  options.text = text.data();
  options.text_size = text.size();
  cinch_program* compiled = nullptr;
  auto error = sized<cinch_error>();
  EXPECT_EQ(CINCH_PROGRAM, cinch_program_compile(&options, &compiled, &error));
  EXPECT_THAT(error.message, HasSubstr("'doubled.h' file not found"));
  const char* const folders[] = {folder.c_str()};
  options.num_include_folders = 1;
  EXPECT_EQ(CINCH_INVALID_ARGUMENT, cinch_program_compile(&options, &compiled, &error));
  EXPECT_THAT(error.message, HasSubstr("include_folders is null"));
  options.include_folders = folders;
  ASSERT_EQ(CINCH_OK, cinch_program_compile(&options, &compiled, &error)) << error.message;
  const Program program(compiled);
  Tensor tensor(100, 3), out(100);
  const Session session = open(program, {tensor.view()});
  auto bytes = encode(session, 0, {tensor.view()});
  const cinch_payload payload = payload_of(bytes[0]);
  const cinch_tensor output = out.view();
  ASSERT_EQ(CINCH_OK, cinch_decode(session.get(), 0, nullptr, 1, &payload, &output, nullptr));
  for (std::size_t i = 0; i < 100; ++i) EXPECT_EQ(out.values()[i], tensor.values()[i] * 2);
}

TEST(CApiSessions, StatesGoToFilesAndBack) {
  const Program program = compile("keeping.cinch", kKeeping);
  Tensor tensor(333, 3), other(334);
  const Session first = open(program, {tensor.view()}), second = open(program, {tensor.view()});
  encode(first, 0, {tensor.view()});
  const std::string path = ::testing::TempDir() + "cinch-c-api.states";
  ASSERT_EQ(CINCH_OK, cinch_states_save_file(first.get(), 0, path.c_str(), nullptr));
  ASSERT_EQ(CINCH_OK, cinch_states_load_file(second.get(), 0, path.c_str(), nullptr));
  EXPECT_EQ(states_of(first, 0), states_of(second, 0));
  EXPECT_EQ(encode(first, 1, {tensor.view()}), encode(second, 1, {tensor.view()}));
  const Session larger = open(program, {other.view()});
  EXPECT_EQ(CINCH_INVALID_ARGUMENT, cinch_states_load_file(larger.get(), 0, path.c_str(), nullptr));
  EXPECT_EQ(CINCH_IO, cinch_states_load_file(larger.get(), 0, "/nonexistent/states", nullptr));
  std::string bytes = states_of(first, 0);
  bytes[bytes.size() / 2] ^= 1;
  EXPECT_EQ(CINCH_CORRUPT_FILE,
            cinch_states_load(second.get(), 0, bytes.data(), bytes.size(), nullptr));
}

// Counts the memory in use, and can refuse requests.
struct Counted {
  std::size_t held[2] = {0, 0};
  std::map<void*, std::size_t> blocks;
  std::size_t allowed = SIZE_MAX;

  static void* allocate(void* context, std::size_t size, std::size_t alignment,
                        cinch_memory_use use) {
    auto& self = *static_cast<Counted*>(context);
    if (size > self.allowed) return nullptr;
    void* const memory =
        std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
    self.held[use] += size;
    self.blocks[memory] = size;
    return memory;
  }
  static void release(void* context, void* memory, std::size_t size, cinch_memory_use use) {
    auto& self = *static_cast<Counted*>(context);
    EXPECT_EQ(size, self.blocks[memory]);
    self.blocks.erase(memory);
    self.held[use] -= size;
    std::free(memory);
  }
  cinch_allocator allocator() {
    auto made = sized<cinch_allocator>();
    made.context = this;
    made.allocate = allocate;
    made.release = release;
    return made;
  }
};

TEST(CApiSessions, MemoryMayBeTheCallers) {
  const Program program = compile("dgc");
  Tensor tensor(100000);
  Counted counted;
  const cinch_allocator allocator = counted.allocator();
  auto options = sized<cinch_session_options>();
  options.allocator = &allocator;
  {
    const Session own = open(program, {tensor.view()}),
                  session = open(program, {tensor.view()}, &options);
    EXPECT_GE(counted.held[CINCH_MEMORY_STATE], cinch_session_state_bytes(session.get()));
    EXPECT_EQ(encode(own, 0, {tensor.view()}), encode(session, 0, {tensor.view()}));
    EXPECT_GT(counted.held[CINCH_MEMORY_WORKSPACE], 0u);
    EXPECT_EQ(
        cinch_session_state_bytes(session.get()) + cinch_session_workspace_bytes(session.get()),
        counted.held[CINCH_MEMORY_STATE] + counted.held[CINCH_MEMORY_WORKSPACE]);
  }
  EXPECT_TRUE(counted.blocks.empty());
}

TEST(CApiSessions, NoMemoryIsAnErrorAndLosesNothing) {
  const Program program = compile("dgc");
  Tensor tensor(100000);
  Counted counted;
  const cinch_allocator allocator = counted.allocator();
  auto options = sized<cinch_session_options>();
  options.allocator = &allocator;
  const Session session = open(program, {tensor.view()}, &options);
  const std::string before = states_of(session, 0);
  counted.allowed = 1000;
  auto payload = sized<cinch_payload>();
  const cinch_tensor gradient = tensor.view();
  EXPECT_EQ(CINCH_OUT_OF_MEMORY,
            cinch_encode(session.get(), 0, nullptr, 1, &gradient, &payload, nullptr));
  EXPECT_EQ(before, states_of(session, 0));
  counted.allowed = SIZE_MAX;
  EXPECT_EQ(CINCH_OK, cinch_encode(session.get(), 0, nullptr, 1, &gradient, &payload, nullptr));
  cinch_session* refused = nullptr;
  counted.allowed = 0;
  EXPECT_EQ(CINCH_OUT_OF_MEMORY,
            cinch_session_open(program.get(), &options, &gradient, 1, &refused, nullptr));
  EXPECT_EQ(nullptr, refused);
}

TEST(CApiSessions, DrawsDifferByTensorNumberSeedAndWorker) {
  const Program program = compile("terngrad");
  Tensor tensor(4096);
  const std::vector<cinch_tensor> two = {tensor.view(), tensor.view()};
  const auto by_place = encode(open(program, two), 0, two);
  EXPECT_NE(by_place[0], by_place[1]);
  const std::uint32_t numbers[] = {1, 0};
  auto options = sized<cinch_session_options>();
  options.tensor_numbers = numbers;
  const auto swapped = encode(open(program, two, &options), 0, two);
  EXPECT_EQ(by_place[0], swapped[1]);
  EXPECT_EQ(by_place[1], swapped[0]);
  options = sized<cinch_session_options>();
  options.seed = 1;
  EXPECT_NE(by_place[0], encode(open(program, two, &options), 0, two)[0]);
  options = sized<cinch_session_options>();
  options.world = 2;
  options.worker = 1;
  EXPECT_NE(by_place[0], encode(open(program, two, &options), 0, two)[0]);
}

TEST(CApiSessions, FinishAveragesByDefault) {
  const Program program = compile("fp16");
  Tensor sum(10), update(10);
  auto options = sized<cinch_session_options>();
  options.world = 4;
  const Session session = open(program, {sum.view()}, &options);
  const cinch_tensor in = sum.view(), out = update.view();
  ASSERT_EQ(CINCH_OK, cinch_finish(session.get(), 0, nullptr, 1, &in, &out, nullptr));
  for (std::size_t i = 0; i < 10; ++i) EXPECT_EQ(sum.values()[i] / 4, update.values()[i]);
}

TEST(CApiSessions, CancelEndsOneCall) {
  const Program program = compile("keeping.cinch", kKeeping);
  Tensor tensor(1000);
  const Session session = open(program, {tensor.view()});
  std::thread([&] { cinch_session_cancel(session.get()); }).join();
  auto payload = sized<cinch_payload>();
  const cinch_tensor gradient = tensor.view();
  EXPECT_EQ(CINCH_CANCELLED,
            cinch_encode(session.get(), 0, nullptr, 1, &gradient, &payload, nullptr));
  EXPECT_EQ(CINCH_OK, cinch_encode(session.get(), 0, nullptr, 1, &gradient, &payload, nullptr));
}

TEST(CApiSessions, OneCallAtATime) {
  const Program program = compile("keeping.cinch", kKeeping);
  Tensor gradient(20000), other(20000);
  const Session session = open(program, {gradient.view()});
  const cinch_tensor views[] = {gradient.view(), other.view()};
  call_from_two_threads(50, [&](int thread, int turn) {
    auto error = sized<cinch_error>();
    auto payload = sized<cinch_payload>();
    std::string room(100000, '\0');
    payload.data = room.data();
    payload.capacity = room.size();
    auto bucket = sized<cinch_bucket>();
    bucket.data = views[thread].data;
    bucket.num_elements = 20000;
    auto arena = sized<cinch_arena>();
    std::size_t offset = 0, size = 0;
    arena.data = room.data();
    arena.capacity = room.size();
    arena.offsets = &offset;
    arena.sizes = &size;
    const auto step = static_cast<std::uint64_t>(turn);
    cinch_status status = CINCH_OK;
    switch ((turn + thread) % 4) {
      case 0:
        status = cinch_encode(session.get(), step, nullptr, 1, &views[thread], &payload, &error);
        break;
      case 1:
        status = cinch_encode_bucket(session.get(), step, nullptr, 1, &bucket, &arena, &error);
        break;
      case 2:
        status = cinch_session_set(session.get(), "limit", 1 + thread, &error);
        break;
      default:
        (void)cinch_session_workspace_bytes(session.get());
        status = cinch_states_save(session.get(), 0, nullptr, &size, &error);
    }
    if (status == CINCH_OK) return true;
    EXPECT_EQ(status, CINCH_INVALID_ARGUMENT);
    EXPECT_THAT(error.message, HasSubstr("in use by another thread"));
    return false;
  });
}

TEST(CApiSessions, ThoseThatOnlyDecodeHoldNoStates) {
  const Program program = compile("keeping.cinch", kKeeping);
  Tensor gradient(3000), expected(3000), out(3000);
  const Session whole = open(program, {gradient.view()});
  auto options = sized<cinch_session_options>();
  options.only_decodes = 1;
  const Session session = open(program, {gradient.view()}, &options);
  EXPECT_GT(cinch_session_state_bytes(whole.get()), 0U);
  EXPECT_EQ(cinch_session_state_bytes(session.get()), 0U);
  const cinch_tensor given = gradient.view(), to = out.view(), wanted = expected.view();
  auto bytes = encode(whole, 0, {given});
  const cinch_payload payload = payload_of(bytes[0]);
  ASSERT_EQ(CINCH_OK, cinch_decode(whole.get(), 0, nullptr, 1, &payload, &wanted, nullptr));
  ASSERT_EQ(CINCH_OK, cinch_decode(session.get(), 0, nullptr, 1, &payload, &to, nullptr));
  EXPECT_EQ(expected.values(), out.values());
  ASSERT_EQ(CINCH_OK, cinch_finish(session.get(), 0, nullptr, 1, &to, &to, nullptr));
  auto error = sized<cinch_error>();
  auto refused = sized<cinch_payload>();
  EXPECT_EQ(CINCH_INVALID_ARGUMENT,
            cinch_encode(session.get(), 1, nullptr, 1, &given, &refused, &error));
  EXPECT_THAT(error.message, HasSubstr("encode: the session was opened to decode only"));
  const std::string states = states_of(whole, 0);
  std::size_t size = 0;
  EXPECT_EQ(CINCH_INVALID_ARGUMENT, cinch_states_save(session.get(), 0, nullptr, &size, &error));
  EXPECT_THAT(error.message, HasSubstr("it holds no states"));
  EXPECT_EQ(CINCH_INVALID_ARGUMENT,
            cinch_states_load(session.get(), 0, states.data(), states.size(), &error));
  ASSERT_EQ(CINCH_OK, cinch_decode_add(session.get(), 1, nullptr, 1, &payload, &to, nullptr));
  EXPECT_EQ(2 * expected.values()[7], out.values()[7]);
}

// A session that only decodes cannot run a finish with states, which needs the sums of all ranks.
TEST(CApiSessions, ThoseThatOnlyDecodeHaveNoFinishWithStates) {
  const char* const text = R"(
compressor last {
  state last: [f32; n] = 0
  wire { value: [f32; n] }
  encode(g: [f32; n]) { wire { value: g } }
  decode(w) { w.value }
  finish(sum) {
    let mean = (sum + last) / 2
    last = sum
    mean
  }
}
)";
  const Program program = compile("last.cinch", text);
  ASSERT_TRUE(program);
  Tensor sum(100);
  const cinch_tensor view = sum.view();
  auto options = sized<cinch_session_options>();
  options.only_decodes = 1;
  const Session session = open(program, {view}, &options);
  auto error = sized<cinch_error>();
  EXPECT_EQ(CINCH_INVALID_ARGUMENT,
            cinch_finish(session.get(), 0, nullptr, 1, &view, &view, &error));
  EXPECT_THAT(error.message, HasSubstr("finish: the session was opened to decode only"));
}

// Reading a session's sizes never makes its calls fail.
TEST(CApiSessions, QueriesHoldNoCallUp) {
  const Program program = compile("keeping.cinch", kKeeping);
  Tensor gradient(20000);
  const Session session = open(program, {gradient.view()});
  const std::size_t states = cinch_session_state_bytes(session.get());
  EXPECT_GT(states, 0U);
  std::atomic<bool> is_over = false;
  std::thread watcher([&] {
    while (!is_over) {
      (void)cinch_session_workspace_bytes(session.get());
      EXPECT_EQ(cinch_session_state_bytes(session.get()), states);
    }
  });
  for (std::uint64_t step = 0; step < 300; ++step) {
    auto payload = sized<cinch_payload>();
    auto error = sized<cinch_error>();
    const cinch_tensor view = gradient.view();
    EXPECT_EQ(CINCH_OK, cinch_encode(session.get(), step, nullptr, 1, &view, &payload, &error))
        << error.message;
  }
  is_over = true;
  watcher.join();
  EXPECT_GT(cinch_session_workspace_bytes(session.get()), 0U);
}

TEST(CApiSessions, MatrixProgramsTakeTheFirstDimensionByTheRest) {
  const char* const text = R"(
compressor rows {
  wire { total: [f32; r, 1] }
  encode(g: [f32; r, c]) { wire { total: sum(g, axis: 1) } }
  decode(w) { w.total + reshape(fill(0.0, n), r, c) }
}
)";
  const Program program = compile("rows.cinch", text);
  ASSERT_TRUE(program);
  Tensor tensor(24);
  const std::int64_t shape[] = {4, 2, 3};
  cinch_tensor gradient = tensor.view();
  gradient.num_dims = 3;
  gradient.shape = shape;
  const auto bytes = encode(open(program, {gradient}), 0, {gradient});
  EXPECT_EQ(64u + 4 * sizeof(float), bytes[0].size());
}

}  // namespace
}  // namespace cinch::testing
