// Attacks on the decoder of a compiled program, and a test of the promise about payload sizes.
#pragma once
#include <memory>
#include <string>

#include "runtime/session/session.h"
#include "tests/programs/harness/program_file.h"

namespace cinch::testing {

/// Decodes payloads that are truncated, extended, have flipped bits in header, counts, indices and
/// values, or belong to another compressor or to other constants. Damage to header and counts must
/// be rejected before anything is written; damaged values may decode. Returns "" if that holds.
/// Under an address sanitizer this also shows that nothing outside is accessed.
std::string attack_decoder(const ProgramFile& program,
                           const std::shared_ptr<const rt::LoadedProgram>& loaded);

/// Checks payload_bound for all kinds of data. Returns "" if it holds.
std::string check_payload_bounds(const ProgramFile& program,
                                 const std::shared_ptr<const rt::LoadedProgram>& loaded);

}  // namespace cinch::testing
