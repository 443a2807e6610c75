// NAME.json beside a library: what its compressors take and give.
#pragma once
#include <nlohmann/json.hpp>

#include "codegen/aot/library.h"

namespace cinch::driver {

// Formulas are in elements `n`, rows and columns, parameters and counts; they are added to the
// programs' pools.
nlohmann::json library_report(const codegen::LibraryRequest& request, codegen::Library& library);

}  // namespace cinch::driver
