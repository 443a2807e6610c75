// Every error of a call is reported in the caller's memory, and nothing is lost.
#include <gmock/gmock.h>

#include "support.h"

namespace cinch::testing {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

class CApiErrors : public ::testing::Test {
 protected:
  cinch_status encode_with(const cinch_tensor& gradient) {
    auto payload = sized<cinch_payload>();
    return cinch_encode(session.get(), 0, nullptr, 1, &gradient, &payload, &error);
  }

  Program program = compile("onebit");
  Tensor tensor{64};
  Session session = open(program, {tensor.view()});
  cinch_error error = sized<cinch_error>();
};

TEST_F(CApiErrors, DiagnosticsOfATextAreTheMessage) {
  EXPECT_FALSE(compile("wrong.cinch",
                       "compressor wrong {\n  wire { v: [f32; n] }\n"
                       "  encode(g: [f32; n]) { wire { v: gg } }\n"
                       "  decode(w) { w.v }\n}\n",
                       {}, &error));
  EXPECT_EQ(CINCH_PROGRAM, error.status);
  EXPECT_THAT(error.message, HasSubstr("wrong.cinch:3:35: error[S001]: unknown name `gg`"));
  EXPECT_EQ(CINCH_NO_TENSOR, error.tensor);
}

TEST_F(CApiErrors, LongMessagesAreCutAndSaySo) {
  std::string text = "compressor wrong {\n  wire { v: [f32; n] }\n  encode(g: [f32; n]) {\n";
  for (int i = 0; i < 40; ++i) text += "    let x" + std::to_string(i) + " = nö_such_name\n";
  text += "    wire { v: g }\n  }\n  decode(w) { w.v }\n}\n";
  EXPECT_FALSE(compile("long.cinch", text.c_str(), {}, &error));
  EXPECT_EQ(CINCH_PROGRAM, error.status);
  EXPECT_GT(error.message_size, sizeof error.message);
  EXPECT_LT(std::strlen(error.message), sizeof error.message);
}

TEST_F(CApiErrors, ProgramsThatAreNotThere) {
  EXPECT_FALSE(compile("onebits", nullptr, {}, &error));
  EXPECT_EQ(CINCH_INVALID_ARGUMENT, error.status);
  EXPECT_THAT(error.message, HasSubstr("did you mean 'onebit'"));
  EXPECT_FALSE(compile("/nonexistent/x.cinch", nullptr, {}, &error));
  EXPECT_FALSE(compile("topk", nullptr, {"ratio"}, &error));
  EXPECT_EQ(CINCH_INVALID_ARGUMENT, error.status);
  EXPECT_FALSE(compile("topk", nullptr, {"ratio=7"}, &error));
  EXPECT_EQ(CINCH_PROGRAM, error.status);
  EXPECT_THAT(error.message, HasSubstr("outside (0, 1]"));
  cinch_program* none = nullptr;
  EXPECT_EQ(CINCH_IO, cinch_program_load("/nonexistent/image", &none, &error));
}

TEST_F(CApiErrors, ACompilerThatIsNotThereOrOfAnotherKind) {
  auto options = sized<cinch_compile_options>();
  options.program = "onebit";
  options.compiler = "/nonexistent/libcinch_compiler.so";
  cinch_program* none = nullptr;
  EXPECT_EQ(CINCH_UNAVAILABLE, cinch_program_compile(&options, &none, &error));
  EXPECT_THAT(error.message, HasSubstr("/nonexistent/libcinch_compiler.so"));
  options.compiler = "libm.so.6";
  EXPECT_EQ(CINCH_UNAVAILABLE, cinch_program_compile(&options, &none, &error));
  options.compiler = nullptr;
  options.cpu = "x86-64-v9";
  EXPECT_EQ(CINCH_UNAVAILABLE, cinch_program_compile(&options, &none, &error));
  options.cpu = nullptr;
  options.states = static_cast<cinch_states>(7);
  EXPECT_EQ(CINCH_INVALID_ARGUMENT, cinch_program_compile(&options, &none, &error));
  EXPECT_THAT(error.message, HasSubstr("states is 7"));
  EXPECT_EQ(nullptr, none);
}

TEST_F(CApiErrors, GpusThatAreNotThere) {
  auto options = sized<cinch_compile_options>();
  options.program = "onebit";
  options.device = CINCH_CUDA;
  options.device_number = 1000;
  cinch_program* none = nullptr;
  EXPECT_EQ(CINCH_UNAVAILABLE, cinch_program_compile(&options, &none, &error));
  EXPECT_THAT(error.message, AnyOf(HasSubstr("no CUDA driver"), HasSubstr("no device")));
  // No such architecture, or no NVRTC that could tell.
  for (const char* const arch : {"sm_1", "gfx90"}) {
    options.arch = arch;
    EXPECT_THAT(cinch_program_compile(&options, &none, &error),
                AnyOf(CINCH_INVALID_ARGUMENT, CINCH_UNAVAILABLE));
    EXPECT_THAT(error.message, HasSubstr("NVRTC"));
  }
  options.device = static_cast<cinch_device>(2);
  EXPECT_EQ(CINCH_UNAVAILABLE, cinch_program_compile(&options, &none, &error));
  EXPECT_EQ(nullptr, none);
  // A call on the CPU has ended when it returns.
  auto outcome = sized<cinch_outcome>();
  EXPECT_EQ(CINCH_INVALID_ARGUMENT, cinch_collect(session.get(), nullptr, &outcome, 1, &error));
  EXPECT_THAT(error.message, HasSubstr("on the CPU"));
  EXPECT_EQ(CINCH_INVALID_ARGUMENT,
            cinch_prepare(session.get(), CINCH_CALL_ENCODE, 0, nullptr, &error));
  EXPECT_EQ(CINCH_INVALID_ARGUMENT, cinch_collect(nullptr, nullptr, &outcome, 1, nullptr));
}

TEST_F(CApiErrors, NullsEverywhere) {
  cinch_program* none = nullptr;
  cinch_session* no_session = nullptr;
  const cinch_tensor gradient = tensor.view();
  auto payload = sized<cinch_payload>();
  std::size_t size = 0;
  EXPECT_EQ(CINCH_INVALID_ARGUMENT, cinch_program_compile(nullptr, &none, nullptr));
  EXPECT_EQ(CINCH_INVALID_ARGUMENT, cinch_program_load(nullptr, &none, nullptr));
  EXPECT_EQ(CINCH_INVALID_ARGUMENT, cinch_program_load_bytes(nullptr, 0, &none, nullptr));
  EXPECT_EQ(CINCH_INVALID_ARGUMENT, cinch_program_save(nullptr, "x", nullptr));
  EXPECT_EQ(CINCH_INVALID_ARGUMENT, cinch_program_get_info(nullptr, nullptr, nullptr));
  EXPECT_EQ(CINCH_INVALID_ARGUMENT, cinch_program_get_info(program.get(), nullptr, nullptr));
  EXPECT_EQ(CINCH_INVALID_ARGUMENT,
            cinch_session_open(nullptr, nullptr, &gradient, 1, &no_session, nullptr));
  EXPECT_EQ(CINCH_INVALID_ARGUMENT,
            cinch_session_open(program.get(), nullptr, nullptr, 1, &no_session, nullptr));
  EXPECT_EQ(CINCH_INVALID_ARGUMENT,
            cinch_session_open(program.get(), nullptr, &gradient, 1, nullptr, nullptr));
  EXPECT_EQ(CINCH_INVALID_ARGUMENT,
            cinch_encode(nullptr, 0, nullptr, 1, &gradient, &payload, nullptr));
  EXPECT_EQ(CINCH_INVALID_ARGUMENT,
            cinch_encode(session.get(), 0, nullptr, 1, nullptr, &payload, nullptr));
  EXPECT_EQ(CINCH_INVALID_ARGUMENT,
            cinch_encode(session.get(), 0, nullptr, 1, &gradient, nullptr, nullptr));
  EXPECT_EQ(CINCH_INVALID_ARGUMENT,
            cinch_decode(session.get(), 0, nullptr, 1, &payload, &gradient, nullptr));
  EXPECT_EQ(CINCH_INVALID_ARGUMENT, cinch_session_set(session.get(), nullptr, 0, nullptr));
  EXPECT_EQ(CINCH_INVALID_ARGUMENT, cinch_states_save(session.get(), 0, nullptr, nullptr, nullptr));
  EXPECT_EQ(CINCH_OUT_OF_RANGE, cinch_states_save(session.get(), 9, nullptr, &size, nullptr));
  EXPECT_EQ(CINCH_INVALID_ARGUMENT, cinch_states_load(session.get(), 0, nullptr, 0, nullptr));
  cinch_program_release(nullptr);
  cinch_session_release(nullptr);
  cinch_session_cancel(nullptr);
  EXPECT_EQ(0u, cinch_session_num_tensors(nullptr));
}

TEST_F(CApiErrors, TensorsThatAreNotWhatIsWanted) {
  cinch_tensor gradient = tensor.view();
  gradient.struct_size = 4;
  EXPECT_EQ(CINCH_INVALID_ARGUMENT, encode_with(gradient));
  EXPECT_THAT(error.message, HasSubstr("struct_size"));
  gradient = tensor.view();
  gradient.dtype = static_cast<cinch_dtype>(3);
  EXPECT_EQ(CINCH_INVALID_ARGUMENT, encode_with(gradient));
  gradient = tensor.view();
  gradient.device = CINCH_CUDA;
  EXPECT_EQ(CINCH_INVALID_ARGUMENT, encode_with(gradient));
  gradient.device = static_cast<cinch_device>(2);
  EXPECT_EQ(CINCH_UNAVAILABLE, encode_with(gradient));
  gradient = tensor.view();
  gradient.data = nullptr;
  EXPECT_EQ(CINCH_INVALID_ARGUMENT, encode_with(gradient));
  gradient = tensor.view();
  gradient.data = static_cast<char*>(gradient.data) + 1;
  EXPECT_EQ(CINCH_INVALID_ARGUMENT, encode_with(gradient));
  EXPECT_THAT(error.message, HasSubstr("not aligned: its address is not a multiple of 4"));
  gradient = tensor.view();
  gradient.num_dims = -1;
  EXPECT_EQ(CINCH_INVALID_ARGUMENT, encode_with(gradient));
  gradient = tensor.view();
  gradient.shape = nullptr;
  EXPECT_EQ(CINCH_INVALID_ARGUMENT, encode_with(gradient));
  EXPECT_EQ(0u, error.tensor);
}

TEST_F(CApiErrors, ShapesAndStrides) {
  cinch_tensor gradient = tensor.view();
  const std::int64_t matrix[] = {8, 8}, dense[] = {8, 1}, transposed[] = {1, 8};
  gradient.num_dims = 2;
  gradient.shape = matrix;
  EXPECT_EQ(CINCH_OK, encode_with(gradient));
  gradient.strides = dense;
  EXPECT_EQ(CINCH_OK, encode_with(gradient));
  gradient.strides = transposed;
  EXPECT_EQ(CINCH_INVALID_ARGUMENT, encode_with(gradient));
  EXPECT_THAT(error.message, HasSubstr("dimension 1 has stride 8, a dense tensor has 1"));
  gradient.strides = nullptr;
  const std::int64_t negative[] = {-8, -8}, other[] = {8, 9},
                     huge[] = {std::int64_t{1} << 31, std::int64_t{1} << 31};
  for (const std::int64_t* shape : {negative, other, huge}) {
    gradient.shape = shape;
    EXPECT_EQ(CINCH_INVALID_ARGUMENT, encode_with(gradient));
  }
}

TEST_F(CApiErrors, TensorsOfACallStandOnce) {
  const std::size_t twice[] = {0, 0}, beyond[] = {1};
  const std::vector<cinch_tensor> gradients = {tensor.view(), tensor.view()};
  std::vector<cinch_payload> payloads(2, sized<cinch_payload>());
  EXPECT_EQ(CINCH_INVALID_ARGUMENT,
            cinch_encode(session.get(), 0, twice, 2, gradients.data(), payloads.data(), &error));
  EXPECT_EQ(1u, error.tensor);
  EXPECT_EQ(CINCH_OUT_OF_RANGE,
            cinch_encode(session.get(), 0, beyond, 1, gradients.data(), payloads.data(), &error));
  EXPECT_EQ(CINCH_OUT_OF_RANGE,
            cinch_encode(session.get(), 0, nullptr, 2, gradients.data(), payloads.data(), &error));
}

TEST_F(CApiErrors, HostilePayloads) {
  Tensor out(64);
  const cinch_tensor output = out.view();
  const auto bytes = encode(session, 0, {tensor.view()});
  const auto decode = [&](std::string changed) {
    const cinch_payload payload = payload_of(changed);
    return cinch_decode(session.get(), 0, nullptr, 1, &payload, &output, &error);
  };
  EXPECT_EQ(CINCH_OK, decode(bytes[0]));
  EXPECT_EQ(CINCH_CORRUPT_PAYLOAD, decode(bytes[0].substr(0, bytes[0].size() - 1)));
  EXPECT_EQ(CINCH_CORRUPT_PAYLOAD, decode(bytes[0] + "x"));
  for (std::size_t at = 0; at < 64; ++at) {
    std::string changed = bytes[0];
    changed[at] = static_cast<char>(changed[at] ^ 0x04);
    const cinch_status status = decode(changed);
    EXPECT_TRUE(status == CINCH_CORRUPT_PAYLOAD || status == CINCH_VERSION_MISMATCH) << at;
  }
}

// A caller of a later version passes more than this library knows, one of an earlier version less.
TEST_F(CApiErrors, StructsOfOtherVersions) {
  struct Later {
    cinch_program_info info;
    std::uint64_t more;
  } later{};
  later.info.struct_size = sizeof later;
  later.more = 0xabcd;
  ASSERT_EQ(CINCH_OK, cinch_program_get_info(program.get(), &later.info, &error));
  EXPECT_STREQ("onebit", later.info.name);
  EXPECT_EQ(sizeof later, later.info.struct_size);
  EXPECT_EQ(0xabcdu, later.more);

  struct LaterTensor {
    cinch_tensor tensor;
    std::uint64_t more;
  };
  Tensor second(64);
  LaterTensor tensors[2] = {{tensor.view(), 1}, {second.view(), 2}};
  for (LaterTensor& each : tensors) each.tensor.struct_size = sizeof each;
  cinch_session* opened = nullptr;
  ASSERT_EQ(CINCH_OK,
            cinch_session_open(program.get(), nullptr, &tensors[0].tensor, 2, &opened, &error))
      << error.message;
  const Session two(opened);
  std::vector<cinch_payload> payloads(2, sized<cinch_payload>());
  EXPECT_EQ(CINCH_OK,
            cinch_encode(two.get(), 0, nullptr, 2, &tensors[0].tensor, payloads.data(), &error));
}

}  // namespace
}  // namespace cinch::testing
