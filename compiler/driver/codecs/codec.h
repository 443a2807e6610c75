// Encodes and decodes one tensor of one rank step by step: by a session with compiled kernels on a
// device, or by the interpreter.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compiler/driver/codecs/gradient_file.h"
#include "compiler/driver/options.h"
#include "compiler/ir/ir.h"
#include "dsl/sema/sema.h"
#include "runtime/collective/rank_exchange.h"
#include "runtime/core/program_info.h"
#include "runtime/device/compute_device.h"
#include "runtime/gpu/program.h"
#include "runtime/session/loaded_program.h"

namespace cinch::driver {

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

// Opens a codec for the device's first program.
std::unique_ptr<Codec> open_device_codec(std::unique_ptr<rt::ComputeDevice> device,
                                         const rt::ListOptions& options, Shape shape);
std::unique_ptr<Codec> open_interpreter_codec(std::shared_ptr<const ir::Program> program,
                                              const RunOptions& options, Shape shape,
                                              std::uint32_t worker, std::uint32_t world);

}  // namespace cinch::driver
