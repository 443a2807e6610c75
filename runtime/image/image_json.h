// The metadata of an image to and from JSON: all but the bytes of constants and binary. Internal to
// runtime/image.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "runtime/core/error.h"
#include "runtime/image/image.h"

namespace cinch::rt {

nlohmann::json image_to_json(const ProgramImage& image);

/// Constants and binary stay empty. Errors: CorruptFile, naming the place. Indices are not checked
/// here (validate.h).
Result<ProgramImage> image_from_json(const nlohmann::json& in);

}  // namespace cinch::rt
