// Encodes and decodes one tensor of one rank step by step: by a session with compiled kernels on a
// device, or by the interpreter.
#pragma once

#include <map>
#include <memory>
#include <span>

#include "compiler/driver/options.h"
#include "compiler/interp/interp.h"
#include "compiler/ir/ir.h"
#include "dsl/sema/sema.h"
#include "runtime/call/list_call.h"
#include "runtime/collective/rank_exchange.h"
#include "runtime/core/program_info.h"
#include "runtime/device/compute_device.h"
#include "runtime/gpu/program.h"
#include "runtime/payload/npy.h"
#include "runtime/session/loaded_program.h"

namespace cinch::driver {
// Gradients: their shapes, their .npy files, and how far a decoded one is from its original.

// The shape of a tensor for a program: a vector, or a matrix of the first dimension by the rest.
struct Shape {
  std::int64_t rows = 0, cols = 1;
  std::int64_t num_elems() const { return rows * cols; }
  friend bool operator==(const Shape&, const Shape&) = default;
};

// Reads a file. `dtype` is "" or "bf16" (to read uint16 as bf16). Throws CommandError.
rt::NpyArray read_gradient(const std::string& path, const std::string& dtype);
// Reads all files; they must agree in shape and type.
std::vector<rt::NpyArray> read_gradients(const std::vector<std::string>& paths,
                                         const std::string& dtype);
Shape shape_of(const rt::NpyArray& array, bool is_matrix);
rt::ConstTensorView view_of(const rt::NpyArray& array);
// The elements as f32.
std::vector<float> to_f32(rt::ConstTensorView tensor);
// Repeats the whole tensor until it fills `size_bytes` (at least once), as a vector.
rt::NpyArray repeat_to(const rt::NpyArray& array, std::int64_t size_bytes);
void write_gradient(const std::string& path, std::span<const float> values,
                    std::vector<std::int64_t> shape);

// ‖x - y‖ / ‖x‖ and the cosine of the angle between them, summed in double; NaN where undefined.
struct Distance {
  double relative_error = 0, cosine = 0;
};
Distance distance(std::span<const float> x, std::span<const float> y);

/// The columns of a matrix with so many elements: the requested number, else the one closest to a
/// square. Throws CommandError if the
/// elements are not a multiple of the request.
std::int64_t matrix_columns(std::int64_t elements, std::optional<std::int64_t> asked);

// The inputs of a program besides the gradient: what the user gives, a value for each step or one
// for all, or made-up values.
class InputSource {
 public:
  // Throws CommandError for a name that the program does not have, or a file that does not fit.
  InputSource(const rt::ProgramInfo& info, const RunOptions& options, Shape shape);

  // Calls on_number(name, value) and on_array(index of the state, name, values). Throws
  // CommandError (Usage) if an input is missing.
  template <typename OnNumber, typename OnArray>
  void each(std::uint64_t step, const OnNumber& on_number, const OnArray& on_array) const {
    for (const rt::ParamInfo& param : info_.params) {
      if (param.is_input) on_number(param.name, number(param, step));
    }
    for (std::uint32_t i = 0; i < info_.states.size(); ++i) {
      if (info_.states[i].is_input) on_array(i, info_.states[i].name, array(i, step));
    }
  }
  // Sets them for the interpreter, whose states are there.
  void set(interp::Inputs& inputs, std::uint64_t step) const;

 private:
  double number(const rt::ParamInfo& param, std::uint64_t step) const;
  std::span<const float> array(std::uint32_t state, std::uint64_t step) const;
  void take(const std::string& word, Shape shape);
  [[noreturn]] void refuse_missing(const std::string& name, const char* example) const;

  const rt::ProgramInfo& info_;
  std::uint64_t first_step_ = 0;
  bool makes_up_ = false;
  std::map<std::string, std::vector<double>> numbers_;  // by step
  std::map<std::string, std::vector<std::vector<float>>> arrays_;
  std::vector<float> made_up_;
};

// All calls throw CommandError if the runtime returns an error.
class Codec {
 public:
  virtual ~Codec() = default;
  virtual std::vector<std::uint8_t> encode(rt::ConstTensorView gradient, std::uint64_t step) = 0;
  virtual void decode(std::span<const std::uint8_t> payload, std::span<float> out,
                      std::uint64_t step) = 0;
  // Turns the sum over ranks into the update, in place.
  virtual void finish(std::span<float> sum, std::uint64_t step) = 0;
  // Computes the update. All ranks call it at once, each on a thread of its own.
  virtual void sync(rt::ConstTensorView gradient, std::span<float> update, std::uint64_t step,
                    rt::RankExchange& ranks) = 0;
  virtual std::int64_t payload_bound(std::uint64_t step) = 0;
  virtual void load_states(const std::string& path) = 0;
  virtual void save_states(const std::string& path) = 0;
  // The bytes that save_states writes.
  virtual std::vector<std::uint8_t> states_as_bytes() = 0;
  // Time of the last call on the device; none if all of it ran in this process.
  virtual std::optional<double> device_ms() const { return std::nullopt; }
};

// A program that is ready to run. Makes a codec for each tensor or rank.
class CodecFactory {
 public:
  explicit CodecFactory(const RunOptions& options);
  const rt::ProgramInfo& info() const { return *info_; }
  std::string fingerprint() const;  // 32 hexadecimal digits
  // None if the program is interpreted or on a GPU.
  std::shared_ptr<const rt::LoadedProgram> loaded() const { return loaded_; }
  // Throws CommandError for a program with a `sync` body, which has no such call.
  void require_payloads(const char* call) const;
  std::unique_ptr<Codec> open(Shape shape, std::uint32_t worker, std::uint32_t world) const;
  // Joins the payloads of all ranks into one (joins.h).
  std::vector<std::uint8_t> sum_payloads(Shape shape,
                                         std::span<const std::vector<std::uint8_t>> payloads,
                                         std::uint64_t step) const;

 private:
  const RunOptions& options_;
  const rt::ProgramInfo* info_ = nullptr;
  std::shared_ptr<const rt::LoadedProgram> loaded_;
  std::shared_ptr<const rt::GpuProgram> on_gpu_;
  std::shared_ptr<const ir::Program> interpreted_;
  std::vector<sema::Binding> bindings_;  // for an image; compiled programs contain theirs
};

std::unique_ptr<Codec> open_interpreter_codec(std::shared_ptr<const ir::Program> program,
                                              const RunOptions& options, Shape shape,
                                              std::uint32_t worker, std::uint32_t world);

}  // namespace cinch::driver
