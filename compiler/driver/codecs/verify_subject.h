// Codecs as what `compiler/verify` tries: a program on this machine's processor at its levels of
// vectors, through the interpreter and on the emulated GPU.
#pragma once
#include "compiler/driver/options.h"
#include "compiler/service/front_end.h"
#include "compiler/verify/subject.h"

namespace cinch::driver {

// A subject and what it points to.
struct VerifiedProgram {
  explicit VerifiedProgram(const VerifyOptions& options);
  service::FrontEnd silent;  // what there is to say was said
  sema::CheckedProgram checked;
  ir::Program ir;
  verify::Subject subject;
};

}  // namespace cinch::driver
