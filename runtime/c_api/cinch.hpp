// Owners and spans over the C API, for C++20: header only, errors as exceptions.
//
//   cinch::Program program = cinch::Program::compile("dgc", {"ratio=0.01"});
//   cinch::Session session(program, {gradient.size()});
//   std::vector<std::byte> payload = session.encode(step, gradient);
//   session.decode(step, payload, output);
//
// What these do not cover (many tensors a call, buckets, GPUs' streams, synchronisation) the
// handles reach: `session.get()`.
#pragma once
#include <cinch.h>
#include <cinch_library.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace cinch {

class Error : public std::runtime_error {
 public:
  explicit Error(const cinch_error& error)
      : std::runtime_error(error.message), status_(error.status) {}
  cinch_status status() const noexcept { return status_; }

 private:
  cinch_status status_;
};

namespace detail {

// Calls with an error of its own, and throws what comes back in it.
template <typename Call>
void checked(const Call& call) {
  cinch_error error{};
  error.struct_size = sizeof error;
  if (call(&error) != CINCH_OK) throw Error(error);
}

struct Release {
  void operator()(cinch_program* program) const noexcept { cinch_program_release(program); }
  void operator()(cinch_session* session) const noexcept { cinch_session_release(session); }
};

}  // namespace detail

/// A compressor that is ready to run. Moved, not copied.
class Program {
 public:
  /// `name`: of the standard library, a path, or path:name. `bindings`: "ratio=0.01".
  static Program compile(const std::string& name, const std::vector<std::string>& bindings = {}) {
    std::vector<const char*> texts;
    for (const std::string& binding : bindings) texts.push_back(binding.c_str());
    cinch_compile_options options{};
    options.struct_size = sizeof options;
    options.program = name.c_str();
    options.bindings = texts.data();
    options.num_bindings = texts.size();
    return made([&](cinch_program** program, cinch_error* error) {
      return cinch_program_compile(&options, program, error);
    });
  }
  /// An image, or a library that `cinch build` made (path or path:name).
  static Program load(const std::string& path) {
    return made([&](cinch_program** program, cinch_error* error) {
      return cinch_program_load(path.c_str(), program, error);
    });
  }
  /// Of a library that is linked.
  static Program open(const cinch_compressor& compressor, cinch_choice choice = CINCH_CPU_CODE,
                      std::int32_t device_number = 0) {
    cinch_open_options options{};
    options.struct_size = sizeof options;
    options.choice = choice;
    options.device_number = device_number;
    return made([&](cinch_program** program, cinch_error* error) {
      return cinch_program_open(&compressor, &options, program, error);
    });
  }

  const cinch_program* get() const noexcept { return program_.get(); }
  cinch_program_info info() const {
    cinch_program_info info{};
    info.struct_size = sizeof info;
    detail::checked(
        [&](cinch_error* error) { return cinch_program_get_info(get(), &info, error); });
    return info;
  }
  /// What a run-time parameter is set to for a word: `session.set("fit", program.value_of("fit",
  /// "gamma"))`.
  double value_of(const std::string& parameter, const std::string& word) const {
    double value = 0;
    detail::checked([&](cinch_error* error) {
      return cinch_program_parameter_value(get(), parameter.c_str(), word.c_str(), &value, error);
    });
    return value;
  }

 private:
  template <typename Make>
  static Program made(const Make& make) {
    cinch_program* program = nullptr;
    detail::checked([&](cinch_error* error) { return make(&program, error); });
    return Program(program);
  }
  explicit Program(cinch_program* program) : program_(program) {}
  std::unique_ptr<cinch_program, detail::Release> program_;
};

/// One tensor of one worker, step by step, on the CPU: states, parameters and memory.
class Session {
 public:
  /// `shape`: n elements, or rows and columns.
  Session(const Program& program, std::vector<std::int64_t> shape,
          cinch_session_options options = {})
      : shape_(std::move(shape)) {
    options.struct_size = sizeof options;
    const cinch_tensor tensor = tensor_at(nullptr);
    cinch_session* session = nullptr;
    detail::checked([&](cinch_error* error) {
      return cinch_session_open(program.get(), &options, &tensor, 1, &session, error);
    });
    session_.reset(session);
  }
  Session(const Program& program, std::initializer_list<std::size_t> shape)
      : Session(program, std::vector<std::int64_t>(shape.begin(), shape.end())) {}

  cinch_session* get() const noexcept { return session_.get(); }

  void set(const std::string& parameter, double value) {
    detail::checked([&](cinch_error* error) {
      return cinch_session_set(get(), parameter.c_str(), value, error);
    });
  }
  /// An array that the program has as an `input`, for one step; it stays in place until the step's
  /// last call. Numbers are set by `set`.
  void set_input(const std::string& input, std::span<const float> array) {
    const cinch_tensor tensor = tensor_of(array);
    detail::checked([&](cinch_error* error) {
      return cinch_session_set_input(get(), 0, input.c_str(), &tensor, error);
    });
  }
  /// Most bytes of a payload with the parameters of now.
  std::size_t payload_bound(std::uint64_t step) {
    std::size_t bytes = 0;
    detail::checked([&](cinch_error* error) {
      return cinch_payload_bounds(get(), step, nullptr, 1, &bytes, error);
    });
    return bytes;
  }
  std::vector<std::byte> encode(std::uint64_t step, std::span<const float> gradient) {
    std::vector<std::byte> bytes(payload_bound(step));
    bytes.resize(encode(step, gradient, bytes));
    return bytes;
  }
  /// Into the caller's memory; gives the payload's bytes.
  std::size_t encode(std::uint64_t step, std::span<const float> gradient, std::span<std::byte> to) {
    const cinch_tensor tensor = tensor_of(gradient);
    cinch_payload payload = payload_of(to);
    detail::checked([&](cinch_error* error) {
      return cinch_encode(get(), step, nullptr, 1, &tensor, &payload, error);
    });
    return payload.size;
  }
  void decode(std::uint64_t step, std::span<const std::byte> payload, std::span<float> to) {
    decode_by(cinch_decode, step, payload, to);
  }
  /// to += the decoded payload.
  void decode_add(std::uint64_t step, std::span<const std::byte> payload, std::span<float> to) {
    decode_by(cinch_decode_add, step, payload, to);
  }
  /// From the sum over ranks to the update, which may be the same memory.
  void finish(std::uint64_t step, std::span<const float> sum, std::span<float> update) {
    const cinch_tensor from = tensor_of(sum), to = tensor_of(update);
    detail::checked([&](cinch_error* error) {
      return cinch_finish(get(), step, nullptr, 1, &from, &to, error);
    });
  }

 private:
  cinch_tensor tensor_at(const float* data) const {
    cinch_tensor tensor{};
    tensor.struct_size = sizeof tensor;
    tensor.data = const_cast<float*>(data);  // calls say what they write
    tensor.num_dims = static_cast<std::int32_t>(shape_.size());
    tensor.shape = shape_.data();
    return tensor;
  }
  cinch_tensor tensor_of(std::span<const float> values) const {
    std::int64_t elements = 1;
    for (const std::int64_t size : shape_) elements *= size;
    if (static_cast<std::int64_t>(values.size()) != elements)
      throw std::invalid_argument(std::to_string(values.size()) + " elements, not " +
                                  std::to_string(elements));
    return tensor_at(values.data());
  }
  static cinch_payload payload_of(std::span<const std::byte> bytes) {
    cinch_payload payload{};
    payload.struct_size = sizeof payload;
    payload.data = const_cast<std::byte*>(bytes.data());
    payload.capacity = payload.size = bytes.size();
    return payload;
  }
  template <typename Call>
  void decode_by(const Call& call, std::uint64_t step, std::span<const std::byte> bytes,
                 std::span<float> to) {
    const cinch_payload payload = payload_of(bytes);
    const cinch_tensor tensor = tensor_of(to);
    detail::checked([&](cinch_error* error) {
      return call(get(), step, nullptr, 1, &payload, &tensor, error);
    });
  }

  std::vector<std::int64_t> shape_;
  std::unique_ptr<cinch_session, detail::Release> session_;
};

}  // namespace cinch
