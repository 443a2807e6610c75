// Sessions of the C API on the emulated GPU, whose driver replaces NVIDIA's: payloads and states
// equal those of a CPU session, outcomes are reported by tensor, misuse is an error.
#include "gpu_fixture.h"

#include <limits>

#include "../two_threads.h"
#include "runtime/c_api/handles.h"

namespace cinch::c_api {
const rt::GpuDriver* emulated = nullptr;

rt::Result<const rt::GpuDriver*> gpu_driver() {
  if (emulated != nullptr) return emulated;
  return rt::fail(rt::ErrorKind::Unavailable, "no CUDA driver: none in this test");
}
}  // namespace cinch::c_api

namespace cinch::testing {
namespace {

using ::testing::HasSubstr;

TEST_F(CApiGpu, AListGivesWhatTheCpuGives) {
  const Program on_cpu = compile("keeping.cinch", kKeeping);
  Tensor a(1, 3), b(0), c(1025, 3), d(5000, 3);
  const std::vector<cinch_tensor> inputs = {a.view(), b.view(), c.view(), d.view()};
  const std::vector<cinch_tensor> gradients = {on_gpu(a), on_gpu(b), on_gpu(c), on_gpu(d)};
  auto options = sized<cinch_session_options>();
  options.world = 2;
  const Session expected = open(on_cpu, inputs, &options);
  const Session session = open(keeping(), gradients, &options);
  auto payloads = rooms(session);
  for (std::uint64_t step = 0; step < 2; ++step) {
    ASSERT_EQ(CINCH_OK, encode_on_gpu(session, step, gradients, payloads));
    ASSERT_EQ(encode(expected, step, inputs), payloads_of(session, payloads)) << step;
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    EXPECT_EQ(states_of(expected, i), states_of(session, i));
  }
  EXPECT_EQ(cinch_session_state_bytes(expected.get()), cinch_session_state_bytes(session.get()));
  EXPECT_GT(cinch_session_workspace_bytes(session.get()), 0u);

  // Decodes, adds once more, and averages over two ranks: the result is the decoded values again.
  Tensor out_a(1), out_b(0), out_c(1025), out_d(5000), up_a(1), up_b(0), up_c(1025), up_d(5000);
  const std::vector<cinch_tensor> outputs = {on_gpu(out_a), on_gpu(out_b), on_gpu(out_c),
                                             on_gpu(out_d)};
  const std::vector<cinch_tensor> updates = {on_gpu(up_a), on_gpu(up_b), on_gpu(up_c),
                                             on_gpu(up_d)};
  const auto outcomes = collect(session);
  for (std::size_t i = 0; i < 4; ++i) payloads[i].size = outcomes[i].payload_size;
  ASSERT_EQ(CINCH_OK,
            cinch_decode(session.get(), 1, nullptr, 4, payloads.data(), outputs.data(), nullptr));
  const Floats once = values_of(outputs[3]);
  for (const float value : once) EXPECT_LE(std::abs(value), 1.0f);
  ASSERT_EQ(CINCH_OK, cinch_decode_add(session.get(), 1, nullptr, 4, payloads.data(),
                                       outputs.data(), nullptr));
  EXPECT_EQ(2 * once[77], values_of(outputs[3])[77]);
  ASSERT_EQ(CINCH_OK,
            cinch_finish(session.get(), 1, nullptr, 4, outputs.data(), updates.data(), nullptr));
  EXPECT_EQ(once, values_of(updates[3]));
  for (const cinch_outcome& outcome : collect(session)) {
    EXPECT_EQ(CINCH_OK, outcome.status) << outcome.message;
  }
}

TEST_F(CApiGpu, InputsAreThoseOfTheCpu) {
  const Program on_cpu = compile("fed.cinch", kFed), on_device = compile_for_gpu("fed.cinch", kFed);
  Tensor a(1, 3), b(1025, 3), weights_a(1, 2), weights_b(1025, 2);
  const std::vector<cinch_tensor> inputs = {a.view(), b.view()};
  const std::vector<cinch_tensor> gradients = {on_gpu(a), on_gpu(b)};
  const Session expected = open(on_cpu, inputs), session = open(on_device, gradients);
  auto payloads = rooms(session);
  EXPECT_EQ(CINCH_INVALID_ARGUMENT, encode_on_gpu(session, 0, gradients, payloads));
  for (std::uint64_t step = 0; step < 3; ++step) {
    const double lr = 0.5 / static_cast<double>(step + 1);
    weights_b.values()[7] = static_cast<float>(step);
    const cinch_tensor here[] = {weights_a.view(), weights_b.view()};
    const cinch_tensor there[] = {on_gpu(weights_a), on_gpu(weights_b)};
    for (const Session* each : {&expected, &session}) {
      ASSERT_EQ(CINCH_OK, cinch_session_set(each->get(), "lr", lr, nullptr));
      for (std::size_t t = 0; t < 2; ++t) {
        const cinch_tensor* array = each == &session ? &there[t] : &here[t];
        ASSERT_EQ(CINCH_OK, cinch_session_set_input(each->get(), t, "weights", array, nullptr));
      }
    }
    ASSERT_EQ(CINCH_OK, encode_on_gpu(session, step, gradients, payloads));
    ASSERT_EQ(encode(expected, step, inputs), payloads_of(session, payloads)) << step;
    EXPECT_EQ(states_of(expected, 1), states_of(session, 1));
  }
  auto error = sized<cinch_error>();
  const cinch_tensor on_host = weights_a.view();
  EXPECT_EQ(CINCH_INVALID_ARGUMENT,
            cinch_session_set_input(session.get(), 0, "weights", &on_host, &error));
}

TEST_F(CApiGpu, FaultsOfOneTensorAreItsOutcome) {
  Tensor good(300, 3), bad(200, 500), infinite(64);
  infinite.values()[5] = std::numeric_limits<float>::infinity();
  const std::vector<cinch_tensor> gradients = {on_gpu(good), on_gpu(bad), on_gpu(infinite)};
  const Session session = open(keeping(), gradients);
  const std::string before = states_of(session, 1);
  auto payloads = rooms(session);
  ASSERT_EQ(CINCH_OK, encode_on_gpu(session, 0, gradients, payloads));
  auto outcomes = collect(session);
  EXPECT_EQ(CINCH_OK, outcomes[0].status);
  EXPECT_STREQ("", outcomes[0].message);
  EXPECT_EQ(CINCH_CHECK_FAILED, outcomes[1].status);
  EXPECT_THAT(outcomes[1].message, HasSubstr("magnitudes stay below 100"));
  EXPECT_EQ(CINCH_OK, outcomes[2].status);
  EXPECT_EQ(1, outcomes[2].is_non_finite);
  EXPECT_EQ(before, states_of(session, 1));
  EXPECT_NE(before, states_of(session, 0));

  Tensor out_a(300), out_b(200), out_c(64);
  const std::vector<cinch_tensor> outputs = {on_gpu(out_a), on_gpu(out_b), on_gpu(out_c)};
  const std::string junk(payloads[1].size, 'x');
  write(payloads[1].data, junk.data(), junk.size());
  ASSERT_EQ(CINCH_OK,
            cinch_decode(session.get(), 0, nullptr, 3, payloads.data(), outputs.data(), nullptr));
  outcomes = collect(session);
  EXPECT_EQ(CINCH_OK, outcomes[0].status);
  EXPECT_EQ(CINCH_CORRUPT_PAYLOAD, outcomes[1].status);
  EXPECT_NE(std::string(), outcomes[1].message);
  EXPECT_EQ(out_b.values(), values_of(outputs[1])) << "nothing is written";
  const float of_infinite = values_of(outputs[2])[0];
  EXPECT_NE(of_infinite, of_infinite);
}

TEST_F(CApiGpu, SessionsThatOnlyDecodeHoldNoStates) {
  Tensor tensor(5000, 3), out(5000), wanted(5000);
  const std::vector<cinch_tensor> gradients = {on_gpu(tensor)};
  const Program& program = keeping();
  const Session whole = open(program, gradients);
  auto options = sized<cinch_session_options>();
  options.only_decodes = 1;
  const Session session = open(program, gradients, &options);
  EXPECT_EQ(cinch_session_state_bytes(session.get()), 0U);
  EXPECT_LT(cinch_session_workspace_bytes(session.get()) + 5000 * sizeof(float),
            cinch_session_workspace_bytes(whole.get()) + cinch_session_state_bytes(whole.get()));
  auto payloads = rooms(whole);
  ASSERT_EQ(CINCH_OK, encode_on_gpu(whole, 0, gradients, payloads));
  const cinch_tensor to = on_gpu(out), expected = on_gpu(wanted);
  ASSERT_EQ(CINCH_OK,
            cinch_decode(whole.get(), 0, nullptr, 1, payloads.data(), &expected, nullptr));
  EXPECT_EQ(CINCH_OK, collect(whole)[0].status);
  ASSERT_EQ(CINCH_OK, cinch_decode(session.get(), 0, nullptr, 1, payloads.data(), &to, nullptr));
  EXPECT_EQ(CINCH_OK, collect(session)[0].status);
  EXPECT_EQ(values_of(expected), values_of(to));
  auto error = sized<cinch_error>();
  EXPECT_EQ(CINCH_INVALID_ARGUMENT, encode_on_gpu(session, 1, gradients, payloads, &error));
  EXPECT_THAT(error.message, HasSubstr("opened to decode only"));
  EXPECT_EQ(CINCH_INVALID_ARGUMENT,
            cinch_prepare(session.get(), CINCH_CALL_ENCODE, 1, nullptr, nullptr));
  std::size_t size = 0;
  EXPECT_EQ(CINCH_INVALID_ARGUMENT, cinch_states_save(session.get(), 0, nullptr, &size, &error));
  EXPECT_THAT(error.message, HasSubstr("it holds no states"));
  ASSERT_EQ(CINCH_OK,
            cinch_decode_add(session.get(), 1, nullptr, 1, payloads.data(), &to, nullptr));
  EXPECT_EQ(CINCH_OK, collect(session)[0].status);
  EXPECT_EQ(2 * values_of(expected)[7], values_of(to)[7]);
}

TEST_F(CApiGpu, StatesMoveBetweenDevices) {
  const Program on_cpu = compile("keeping.cinch", kKeeping);
  Tensor tensor(777, 3);
  const std::vector<cinch_tensor> gradients = {on_gpu(tensor)};
  const Session from = open(on_cpu, {tensor.view()}), to = open(keeping(), gradients);
  encode(from, 0, {tensor.view()});
  const std::string path = ::testing::TempDir() + "cinch-c-api-gpu.states";
  ASSERT_EQ(CINCH_OK, cinch_states_save_file(from.get(), 0, path.c_str(), nullptr));
  ASSERT_EQ(CINCH_OK, cinch_states_load_file(to.get(), 0, path.c_str(), nullptr));
  EXPECT_EQ(states_of(from, 0), states_of(to, 0));
  auto payloads = rooms(to);
  ASSERT_EQ(CINCH_OK, encode_on_gpu(to, 1, gradients, payloads));
  EXPECT_EQ(encode(from, 1, {tensor.view()}), payloads_of(to, payloads));
}

TEST_F(CApiGpu, CallsAreCapturedAndReplayedWithParametersOfNow) {
  const rt::GpuDriver& driver = *c_api::emulated;
  rt::GpuStream stream = nullptr;
  ASSERT_EQ(rt::kGpuSuccess, driver.stream_create(&stream, 1));
  Tensor tensor(1000, 3);
  std::vector<cinch_tensor> gradients = {on_gpu(tensor)};
  gradients[0].stream = stream;
  const Session session = open(keeping(), gradients);
  auto payloads = rooms(session);
  auto error = sized<cinch_error>();
  EXPECT_EQ(CINCH_INVALID_ARGUMENT,
            cinch_prepare(session.get(), CINCH_CALL_DECODE, 0, stream, &error));
  EXPECT_THAT(error.message, HasSubstr("no call of this kind"));
  ASSERT_EQ(CINCH_OK, encode_on_gpu(session, 0, gradients, payloads));
  rt::GpuGraph graph = nullptr;
  rt::GpuGraphExec replay = nullptr;
  ASSERT_EQ(rt::kGpuSuccess, driver.capture_begin(stream, 2));
  ASSERT_EQ(CINCH_OK, encode_on_gpu(session, 0, gradients, payloads, &error)) << error.message;
  ASSERT_EQ(rt::kGpuSuccess, driver.capture_end(stream, &graph));
  ASSERT_EQ(rt::kGpuSuccess, driver.graph_instantiate(&replay, graph, 0));

  const Program on_cpu = compile("keeping.cinch", kKeeping);
  const Session expected = open(on_cpu, {tensor.view()});
  encode(expected, 0, {tensor.view()});
  for (const double limit : {0.5, 2.0}) {
    ASSERT_EQ(CINCH_OK, cinch_session_set(session.get(), "limit", limit, nullptr));
    ASSERT_EQ(CINCH_OK, cinch_session_set(expected.get(), "limit", limit, nullptr));
    ASSERT_EQ(CINCH_OK, cinch_prepare(session.get(), CINCH_CALL_ENCODE, 0, stream, nullptr));
    ASSERT_EQ(rt::kGpuSuccess, driver.graph_launch(replay, stream));
    const auto outcomes = collect(session, stream);
    ASSERT_EQ(CINCH_OK, outcomes[0].status);
    EXPECT_EQ(encode(expected, 0, {tensor.view()})[0],
              read(payloads[0].data, outcomes[0].payload_size));
  }
  driver.graph_exec_destroy(replay);
  driver.graph_destroy(graph);
}

TEST_F(CApiGpu, SizesFollowParametersUpToTheLargest) {
  const Program program = compile_for_gpu("topk");
  Tensor tensor(2000);
  const std::vector<cinch_tensor> gradients = {on_gpu(tensor)};
  const char* const names[] = {"ratio"};
  const double values[] = {0.25};
  auto options = sized<cinch_session_options>();
  options.largest_names = names;
  options.largest_values = values;
  options.num_largest = 1;
  const Session session = open(program, gradients, &options);
  auto error = sized<cinch_error>();
  EXPECT_EQ(CINCH_OUT_OF_RANGE, cinch_session_set(session.get(), "ratio", 0.5, &error));
  EXPECT_THAT(error.message, HasSubstr("ratio"));
  ASSERT_EQ(CINCH_OK, cinch_session_set(session.get(), "ratio", 0.25, nullptr));
  auto payloads = rooms(session);
  ASSERT_EQ(CINCH_OK, encode_on_gpu(session, 0, gradients, payloads));
  const Session expected = open(compile("topk"), {tensor.view()});
  ASSERT_EQ(CINCH_OK, cinch_session_set(expected.get(), "ratio", 0.25, nullptr));
  EXPECT_EQ(encode(expected, 0, {tensor.view()}), payloads_of(session, payloads));
}

TEST_F(CApiGpu, BucketsLieOnTheDevice) {
  const Program on_cpu = compile("keeping.cinch", kKeeping);
  Tensor first(100, 3), second(500, 3), both(600);
  std::copy_n(first.values().begin(), 100, both.values().begin());
  std::copy_n(second.values().begin(), 500, both.values().begin() + 100);
  const cinch_tensor flat = on_gpu(both);
  const Session session = open(keeping(), {on_gpu(first), on_gpu(second)});
  auto bucket = sized<cinch_bucket>();
  bucket.data = flat.data;
  bucket.num_elements = 600;
  bucket.device = CINCH_CUDA;
  std::size_t offsets[2], sizes[2];
  auto arena = sized<cinch_arena>();
  arena.capacity = 4000;
  arena.data = allocate(arena.capacity);
  arena.offsets = offsets;
  arena.sizes = sizes;
  auto error = sized<cinch_error>();
  ASSERT_EQ(CINCH_OK, cinch_encode_bucket(session.get(), 0, nullptr, 2, &bucket, &arena, &error))
      << error.message;
  const auto expected =
      encode(open(on_cpu, {first.view(), second.view()}), 0, {first.view(), second.view()});
  const auto outcomes = collect(session);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(0u, offsets[i] % 16);
    EXPECT_LE(outcomes[i].payload_size, sizes[i]);
    const char* const at = static_cast<const char*>(arena.data) + offsets[i];
    EXPECT_EQ(expected[i], read(at, outcomes[i].payload_size));
  }
  ASSERT_EQ(CINCH_OK, cinch_decode_bucket(session.get(), 0, nullptr, 2, &arena, &bucket, &error))
      << error.message;
  EXPECT_EQ(CINCH_OK, collect(session)[1].status);
  const Floats decoded = values_of(flat);
  EXPECT_NEAR(decoded[0], std::clamp(both.values()[0], -1.0f, 1.0f), 1e-3f);
  EXPECT_NEAR(decoded[599], std::clamp(both.values()[599], -1.0f, 1.0f), 1e-3f);
}

TEST_F(CApiGpu, ImagesGoToFilesAndBack) {
  const std::string path = ::testing::TempDir() + "cinch-c-api-gpu.image";
  ASSERT_EQ(CINCH_OK, cinch_program_save(keeping().get(), path.c_str(), nullptr));
  c_api::emulated = nullptr;  // loading needs no GPU
  cinch_program* loaded = nullptr;
  ASSERT_EQ(CINCH_OK, cinch_program_load(path.c_str(), &loaded, nullptr));
  const Program program(loaded);
  auto info = sized<cinch_program_info>();
  ASSERT_EQ(CINCH_OK, cinch_program_get_info(program.get(), &info, nullptr));
  EXPECT_STREQ("cuda:emulated", info.cpu);
  EXPECT_EQ(1u, info.num_states);
  std::remove(path.c_str());
}

TEST_F(CApiGpu, OneCallAtATime) {
  Tensor gradient(3000);
  const std::vector<cinch_tensor> gradients = {on_gpu(gradient)};
  const Session session = open(keeping(), gradients);
  auto payloads = rooms(session);
  call_from_two_threads(10, [&](int thread, int turn) {
    auto error = sized<cinch_error>();
    auto outcome = sized<cinch_outcome>();
    std::size_t size = 0;
    cinch_status status = CINCH_OK;
    switch ((turn + thread) % 4) {
      case 0:
        status =
            encode_on_gpu(session, static_cast<std::uint64_t>(turn), gradients, payloads, &error);
        break;
      case 1:
        status = cinch_collect(session.get(), nullptr, &outcome, 1, &error);
        break;
      case 2:
        status = cinch_session_set(session.get(), "limit", 1 + thread, &error);
        break;
      default:
        status = cinch_states_save(session.get(), 0, nullptr, &size, &error);
    }
    if (status == CINCH_OK) return true;
    EXPECT_EQ(status, CINCH_INVALID_ARGUMENT);
    EXPECT_THAT(error.message, HasSubstr("in use by another thread"));
    return false;
  });
}

TEST_F(CApiGpu, WithoutADriverSessionsSaySo) {
  Tensor tensor(100);
  const std::vector<cinch_tensor> gradients = {on_gpu(tensor)};
  const Program& program = keeping();
  cinch_session* none = nullptr;
  auto error = sized<cinch_error>();
  cinch_tensor elsewhere = gradients[0];
  elsewhere.device_number = 7;
  EXPECT_EQ(CINCH_UNAVAILABLE,
            cinch_session_open(program.get(), nullptr, &elsewhere, 1, &none, &error));
  EXPECT_THAT(error.message, HasSubstr("no device 7"));
  c_api::emulated = nullptr;
  EXPECT_EQ(CINCH_UNAVAILABLE,
            cinch_session_open(program.get(), nullptr, gradients.data(), 1, &none, &error));
  EXPECT_THAT(error.message, HasSubstr("no CUDA driver"));
  EXPECT_FALSE(compile_for_gpu("onebit", nullptr, &error));
  EXPECT_EQ(CINCH_UNAVAILABLE, error.status);
  EXPECT_EQ(nullptr, none);
}

TEST_F(CApiGpu, WhatCannotBeOpenedIsRefused) {
  Tensor tensor(100), other(200);
  const Program on_cpu = compile("keeping.cinch", kKeeping);
  cinch_tensor on_device = on_gpu(tensor), second = on_gpu(other);
  auto options = sized<cinch_session_options>();
  auto error = sized<cinch_error>();
  cinch_session* none = nullptr;
  const auto refused = [&](const Program& program, std::vector<cinch_tensor> tensors) {
    return cinch_session_open(program.get(), &options, tensors.data(), tensors.size(), &none,
                              &error);
  };
  EXPECT_EQ(CINCH_INVALID_ARGUMENT, refused(on_cpu, {on_device}));
  EXPECT_THAT(error.message, HasSubstr("on a GPU"));
  EXPECT_EQ(CINCH_INVALID_ARGUMENT, refused(keeping(), {on_device, tensor.view()}));
  EXPECT_EQ(1u, error.tensor);
  second.dtype = CINCH_F16;
  EXPECT_EQ(CINCH_INVALID_ARGUMENT, refused(keeping(), {on_device, second}));
  EXPECT_EQ(1u, error.tensor);
  EXPECT_EQ(CINCH_INVALID_ARGUMENT, refused(keeping(), {}));
  options.num_largest = 1;
  EXPECT_EQ(CINCH_INVALID_ARGUMENT, refused(keeping(), {on_device}));
  options.num_largest = 0;
  EXPECT_EQ(nullptr, none);
}

TEST_F(CApiGpu, CallsThatCannotBeAreRefused) {
  Tensor tensor(100), other(200), shorter(99);
  const cinch_tensor a = on_gpu(tensor), b = on_gpu(other);
  const Session session = open(keeping(), {a, b});
  auto payloads = rooms(session);
  auto error = sized<cinch_error>();
  const auto refused = [&](const std::vector<cinch_tensor>& gradients, std::size_t place) {
    EXPECT_EQ(CINCH_INVALID_ARGUMENT, encode_on_gpu(session, 0, gradients, payloads, &error));
    EXPECT_EQ(place, error.tensor) << error.message;
  };
  refused({a}, CINCH_NO_TENSOR);
  refused({a, other.view()}, 1);
  cinch_tensor changed = b;
  changed.stream = &changed;
  refused({a, changed}, 1);
  changed = b;
  changed.device_number = 3;
  refused({a, changed}, 1);
  changed = b;
  changed.dtype = CINCH_BF16;
  refused({a, changed}, 1);
  refused({on_gpu(shorter), b}, 0);
  const std::size_t which[] = {0, 1};
  const cinch_tensor both[] = {a, b};
  EXPECT_EQ(CINCH_INVALID_ARGUMENT,
            cinch_encode(session.get(), 0, which, 2, both, payloads.data(), &error));
  EXPECT_EQ(CINCH_INVALID_ARGUMENT, cinch_finish(session.get(), 0, nullptr, 2, both, both, &error));
  EXPECT_THAT(error.message, HasSubstr("its sum's memory"));
  payloads[1].capacity = 16;
  EXPECT_EQ(CINCH_INVALID_ARGUMENT, encode_on_gpu(session, 0, {a, b}, payloads, &error));
  EXPECT_THAT(error.message, HasSubstr("room for 16 bytes"));
  std::vector<cinch_outcome> outcomes(2, sized<cinch_outcome>());
  EXPECT_EQ(CINCH_INVALID_ARGUMENT,
            cinch_collect(session.get(), nullptr, outcomes.data(), 1, nullptr));
  EXPECT_EQ(CINCH_INVALID_ARGUMENT, cinch_collect(session.get(), nullptr, nullptr, 2, nullptr));
  EXPECT_EQ(CINCH_INVALID_ARGUMENT,
            cinch_prepare(session.get(), static_cast<cinch_call>(9), 0, nullptr, nullptr));
}

}  // namespace
}  // namespace cinch::testing
