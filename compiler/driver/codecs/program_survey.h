// Tries a program on the tensors of a step: how small it makes them, how far it changes them, and
// how long that takes here.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "compiler/driver/codecs/gradient_file.h"
#include "compiler/driver/options.h"
#include "runtime/session/loaded_program.h"

namespace cinch::driver {

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
  // The sum of each tensor's median. A program with a `sync` has one call for both, in a world of
  // one rank; payload_bytes is then what it gives to collectives.
  double encode_seconds = 0, decode_seconds = 0;
};

/// Throws CommandError, ServiceError and InternalError (Limitation) if the program cannot be tried.
SurveyFigures try_program(const std::string& program, const SurveyOptions& options,
                          const std::vector<SurveyTensor>& tensors);

}  // namespace cinch::driver
