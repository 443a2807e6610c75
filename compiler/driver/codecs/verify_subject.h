// The two ends of `cinch verify`: a program as `compiler/verify` sees it, and the files of a
// counterexample.
#pragma once

#include "compiler/bench/tuning_search.h"
#include "compiler/driver/codecs/codec.h"
#include "compiler/verify/subject.h"
#include "compiler/verify/verify.h"
#include "dsl/sema/checked.h"
#include "runtime/gpu/device.h"

namespace cinch::driver {
// A program on this machine's processor at its levels of vectors, in the interpreter and on the
// emulated GPU: a subject with the objects that it points to.
struct VerifiedProgram {
  explicit VerifiedProgram(const VerifyOptions& options);
  service::FrontEnd silent;  // shows nothing: diagnostics were shown before
  sema::CheckedProgram checked;
  ir::Program ir;
  std::optional<sema::CheckedProgram> carrier;
  verify::Subject subject;

 private:
  void add_carrier(VerifyOptions options);
};

struct CounterexampleFiles {
  std::vector<std::string> inputs;
  std::string description;            // the JSON file
  std::vector<std::string> commands;  // commands of `cinch` that show it
};

// Writes a counterexample: the input as .npy, and a JSON file that says which law it breaks and how
// to reproduce that. `path` is the file for the first input. Files for further inputs, and the JSON
// file, have the same name with other endings. Throws CommandError (AtFault) if they cannot be
// written.
CounterexampleFiles write_counterexample(const std::string& path, const VerifyOptions& options,
                                         const rt::ProgramInfo& info,
                                         const verify::Finding& finding,
                                         const verify::Counterexample& counterexample);

// Tries a program on the tensors of a step: how small it makes them, how far it changes them, and
// how long that takes here.

struct SurveyTensor {
  std::string name;
  rt::NpyArray array;
  std::vector<float> values;  // the same as f32

  // Does it have the two dimensions that a program on matrices needs?
  bool is_matrix() const { return array.shape.size() >= 2; }
};

struct SurveyFigures {
  std::shared_ptr<const rt::LoadedProgram> program;
  std::shared_ptr<const rt::LoadedProgram> carrier;  // of its sums, if another program does that
  // Sum over all tensors. Tensors that the program does not take, since they are not matrices,
  // count as f32.
  std::int64_t payload_bytes = 0;
  std::size_t num_exact = 0;
  double relative_error = 0;  // of one step; not finite if the gradient is zero
  struct OfTensor {
    std::int64_t payload_bytes = 0;
    double squared_error = 0, squared_norm = 0;
    bool is_exact = false;  // the program does not take it
  };
  std::vector<OfTensor> by_tensor;
  // The sum of each tensor's median. A program with a `sync` has one call for both, in a world of
  // one rank; payload_bytes is then what it gives to collectives.
  double encode_seconds = 0, decode_seconds = 0;
};

/// The tensors of a folder. Throws CommandError, also if one is not finite.
std::vector<SurveyTensor> read_survey(const SurveyOptions& options);

/// Without `options.seconds` nothing is timed. Throws CommandError, ServiceError and InternalError
/// (Limitation) if the program cannot be tried.
SurveyFigures try_program(const std::string& program, const SurveyOptions& options,
                          const std::vector<SurveyTensor>& tensors);

// The measurements of `cinch tune`: programs of the library at several sizes, on a CPU or a GPU.

// Encode and decode together, in sessions with the options' number of threads. All throw
// CommandError if a call fails.
std::vector<bench::TuningWorkload<rt::CpuTuning>> cpu_workloads(const ExecutionOptions& options);
// Encode and decode of programs that are compiled once for each number of warps. The device
// measures the time.
std::vector<bench::TuningWorkload<rt::GpuTuning>> gpu_workloads(
    const std::shared_ptr<const rt::GpuDevice>& device);

}  // namespace cinch::driver
