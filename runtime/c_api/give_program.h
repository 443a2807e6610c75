// Makes handles of programs from images and from libraries.
#pragma once
#include <memory>
#include <string>

#include "runtime/c_api/cinch.h"
#include "runtime/c_api/support.h"
#include "runtime/image/image.h"
#include "runtime/session/loaded_program.h"

namespace cinch::c_api {

/// Makes a handle for the caller. Errors: CORRUPT_FILE, UNAVAILABLE (made for another processor).
/// `find_better`: for a CPU, see LoadedProgram::load.
CallStatus give_program(rt::ProgramImage image, cinch_program** to,
                        rt::FindBetterCode find_better = {});
/// The same from a loaded program; passes on the error if loading failed.
CallStatus give_program(rt::Result<std::shared_ptr<const rt::LoadedProgram>> loaded,
                        cinch_program** to);

/// Loads the CPU code of compressor `name`, or of the only compressor, from the shared library at
/// `path`. Errors: see cinch_library_load and cinch_library_find.
CallStatus load_from_library(const std::string& path, const std::string& name,
                             cinch_program** program);

}  // namespace cinch::c_api
