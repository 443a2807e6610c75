// A list of tensors in a session on a GPU, with its memory. It takes the same steps as run_step
// does with a session on a CPU.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "runtime/gpu/session/session.h"
#include "runtime/session/session.h"
#include "tests/programs/harness/oracle.h"

namespace cinch::testing {

class GpuList {
 public:
  /// One tensor per options; world, worker and seed are those of the first. `tuning`: none for the
  /// device's own. Null with the error's text on failure.
  static std::unique_ptr<GpuList> open(const std::shared_ptr<const rt::GpuProgram>& program,
                                       const std::vector<rt::SessionOptions>& tensors,
                                       std::string& error,
                                       const std::optional<rt::GpuTuning>& tuning = {});

  /// Encode, decode and, if the program has one, finish of all tensors, each in one call; results
  /// by tensor. Payloads have memory of exactly their bound.
  std::vector<StepResult> step(const std::vector<std::vector<float>>& gradients,
                               std::uint64_t step);
  rt::GpuSession& session() { return session_; }

 private:
  GpuList(std::shared_ptr<const rt::GpuProgram> program, rt::GpuSession session);
  bool encode(const std::vector<std::vector<float>>& gradients, std::uint64_t step,
              std::vector<StepResult>& results);
  void decode(std::uint64_t step, std::vector<StepResult>& results);
  void finish(std::uint64_t step, std::vector<StepResult>& results);
  void read_states(std::vector<StepResult>& results);
  rt::GpuAddress memory(std::size_t size_bytes);
  rt::GpuAddress memory_of(const std::vector<float>& values);
  std::vector<float> floats_at(rt::GpuAddress address, std::size_t num_elems) const;

  std::shared_ptr<const rt::GpuProgram> program_;
  rt::GpuSession session_;
  std::vector<rt::GpuMemory> held_;  // of the current step
  std::size_t num_tensors_placed_ = 0;
};

// One tensor of f16 or bf16 through a session on a GPU and one on the CPU.

/// Encodes and decodes a tensor with the shape in `options`, whose world, worker and seed apply to
/// both. Returns nothing, or the difference.
std::string compare_types(const std::shared_ptr<const rt::LoadedProgram>& on_cpu,
                          const std::shared_ptr<const rt::GpuProgram>& on_gpu,
                          const rt::SessionOptions& options, DType dtype);

}  // namespace cinch::testing
