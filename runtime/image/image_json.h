// Converts the metadata of an image to and from JSON: everything except the bytes of constants and
// binary. Internal to runtime/image.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "runtime/core/error.h"
#include "runtime/image/image.h"

namespace cinch::rt {

nlohmann::json image_to_json(const ProgramImage& image);

/// Leaves constants and binary empty. Does not check indices (validate.h). Errors: CorruptFile,
/// naming the place.
Result<ProgramImage> image_from_json(const nlohmann::json& in);

}  // namespace cinch::rt
