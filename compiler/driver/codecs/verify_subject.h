// Presents codecs to `compiler/verify`: a program on this machine's processor at its levels of
// vectors, in the interpreter and on the emulated GPU.
#pragma once
#include "compiler/driver/options.h"
#include "compiler/service/front_end.h"
#include "compiler/verify/subject.h"

namespace cinch::driver {

// A subject with the objects that it points to.
struct VerifiedProgram {
  explicit VerifiedProgram(const VerifyOptions& options);
  service::FrontEnd silent;  // shows nothing: diagnostics were shown before
  sema::CheckedProgram checked;
  ir::Program ir;
  verify::Subject subject;
};

}  // namespace cinch::driver
