// Compiles a compressor from text, keeps it as an image, loads that without a compiler, and carries
// a state across a restart. C++20.
//
//   compress IMAGE            where the image is kept
#include <cinch.h>

#include <cmath>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

constexpr const char* kText = R"(
compressor clipped(limit: f32 = 1 in (0, inf)) {
  state residual: [f32; n] = 0
  wire { value: [f16; n] }
  encode(g: [f32; n]) {
    let p = g + residual
    let kept = clamp(p, -limit, limit) as f16
    residual = p - kept as f32
    wire { value: kept }
  }
  decode(w) { w.value as f32 }
}
)";

struct Error : cinch_error {
  Error() : cinch_error{} { struct_size = sizeof(cinch_error); }
  void check(cinch_status given) const {
    if (given != CINCH_OK) throw std::runtime_error(message);
  }
};

struct Release {
  void operator()(cinch_program* program) const { cinch_program_release(program); }
  void operator()(cinch_session* session) const { cinch_session_release(session); }
};
using Program = std::unique_ptr<cinch_program, Release>;
using Session = std::unique_ptr<cinch_session, Release>;

Program compile(const std::string& text) {
  Error error;
  cinch_compile_options options{};
  options.struct_size = sizeof options;
  options.program = "clipped.cinch";
  options.text = text.data();
  options.text_size = text.size();
  cinch_program* program = nullptr;
  error.check(cinch_program_compile(&options, &program, &error));
  return Program(program);
}

Program load(const char* path) {
  Error error;
  cinch_program* program = nullptr;
  error.check(cinch_program_load(path, &program, &error));
  return Program(program);
}

// A vector of floats for as long as the shape lives.
struct Tensor : cinch_tensor {
  Tensor(std::vector<float>& values, const std::int64_t& size) : cinch_tensor{} {
    struct_size = sizeof(cinch_tensor);
    data = values.data();
    num_dims = 1;
    shape = &size;
  }
};

Session open(const Program& program, const Tensor& tensor) {
  Error error;
  cinch_session* session = nullptr;
  error.check(cinch_session_open(program.get(), nullptr, &tensor, 1, &session, &error));
  return Session(session);
}

std::vector<unsigned char> encode(const Session& session, std::uint64_t step,
                                  const Tensor& tensor) {
  Error error;
  std::size_t bound = 0;
  error.check(cinch_payload_bounds(session.get(), step, nullptr, 1, &bound, &error));
  std::vector<unsigned char> bytes(bound);
  cinch_payload payload{};
  payload.struct_size = sizeof payload;
  payload.data = bytes.data();
  payload.capacity = bytes.size();
  error.check(cinch_encode(session.get(), step, nullptr, 1, &tensor, &payload, &error));
  bytes.resize(payload.size);
  return bytes;
}

std::vector<unsigned char> states_of(const Session& session) {
  Error error;
  std::size_t size = 0;
  error.check(cinch_states_save(session.get(), 0, nullptr, &size, &error));
  std::vector<unsigned char> states(size);
  error.check(cinch_states_save(session.get(), 0, states.data(), &size, &error));
  return states;
}

void run(const char* path) {
  Error error;
  error.check(cinch_program_save(compile(kText).get(), path, &error));
  const Program program = load(path);

  const std::int64_t size = 100000;
  std::vector<float> gradient(static_cast<std::size_t>(size));
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    gradient[i] = 2 * std::sin(static_cast<float>(i));
  }
  const Tensor tensor(gradient, size);

  const Session first = open(program, tensor);
  error.check(cinch_session_set(first.get(), "limit", 0.5, &error));
  encode(first, 0, tensor);
  const std::vector<unsigned char> checkpoint = states_of(first);
  const std::vector<unsigned char> expected = encode(first, 1, tensor);

  // After a restart: the same program, parameter and states give the same bytes.
  const Session second = open(program, tensor);
  error.check(cinch_session_set(second.get(), "limit", 0.5, &error));
  error.check(cinch_states_load(second.get(), 0, checkpoint.data(), checkpoint.size(), &error));
  const bool is_same = encode(second, 1, tensor) == expected;
  std::printf("%zu bytes of payload, %s after a restart\n", expected.size(),
              is_same ? "the same" : "different");
  if (!is_same) throw std::runtime_error("the restarted session gave other bytes");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s IMAGE\n", argv[0]);
    return 2;
  }
  try {
    run(argv[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
  return 0;
}
