// Makes NAME.json for a library: the inputs and outputs of its compressors.
#pragma once
#include <nlohmann/json.hpp>

#include "codegen/aot/library.h"

namespace cinch::driver {

// Formulas are in elements `n`, rows and columns, parameters and counts; they are added to the
// programs' pools.
nlohmann::json library_report(const codegen::LibraryRequest& request, codegen::Library& library);

}  // namespace cinch::driver
