// The interpreter's side of a whole-program test: the correct payloads, decoded tensors, updates
// and states, step by step.
#pragma once
#include <string>
#include <vector>

#include "compiler/interp/interp.h"
#include "compiler/ir/ir.h"
#include "runtime/call/parameters.h"
#include "runtime/core/error.h"
#include "runtime/payload/payload.h"
#include "runtime/session/session.h"

namespace cinch::testing {

/// The results of one step. After an error of encode only states are set.
struct StepResult {
  std::optional<rt::Error> encode_error, decode_error, finish_error;
  std::vector<std::uint8_t> payload;
  std::vector<float> decoded, update;
  std::vector<std::vector<std::uint8_t>> states;  // stored bytes, after encode and finish
};

/// One tensor's steps through the interpreter. `info` and `fingerprint` are the image's.
class Oracle {
 public:
  Oracle(const ir::Program& program, const rt::ProgramImage& image, rt::SessionOptions options);

  StepResult step(const std::vector<float>& gradient, std::uint64_t step);

 private:
  interp::Inputs inputs(std::uint64_t step) const;
  rt::Result<std::vector<std::uint8_t>> assemble(const interp::Outputs& outputs,
                                                 std::uint64_t step) const;
  void decode(const interp::Outputs& encoded, std::uint64_t step, StepResult& result) const;
  void finish(std::uint64_t step, StepResult& result);
  void pack_states(StepResult& result) const;

  const ir::Program& program_;
  const rt::ProgramImage& image_;
  rt::SessionOptions options_;
  std::vector<interp::Array> states_;
};

/// What a session with these options expects of a payload. Views into `image` and `parameters`.
rt::PayloadExpectation expected_payload(const rt::ProgramImage& image,
                                        const rt::SessionOptions& options,
                                        const rt::ParameterValues& parameters, std::uint64_t step);

/// Decodes a payload in the interpreter after its reader has parsed it, with default parameters.
/// Errors: those of interp::run.
rt::Result<std::vector<float>> interpret_decode(const ir::Program& program,
                                                const rt::PayloadExpectation& expected,
                                                const rt::PayloadView& view,
                                                const rt::SessionOptions& options,
                                                std::uint64_t step);

/// The sum over ranks in these tests: two equal ranks.
std::vector<float> doubled(const std::vector<float>& values);

/// The same steps through a session.
StepResult run_step(rt::Session& session, const std::vector<float>& gradient, std::uint64_t step);

/// Returns "" if both are the same bit for bit; else the first difference.
std::string compare(const StepResult& oracle, const StepResult& cpu);

}  // namespace cinch::testing
