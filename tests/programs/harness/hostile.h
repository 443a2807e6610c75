// Attacks on the decoder of a compiled program, and the promise about payload sizes.
#pragma once
#include <memory>
#include <string>

#include "runtime/session/session.h"
#include "tests/programs/harness/program_file.h"

namespace cinch::testing {

/// Payloads cut, longer, with bits flipped in header, counts, indices and values, of another
/// compressor and of other constants. Damage to header and counts must be refused before anything
/// is written; damaged values may decode. Empty where that holds. Run under an address sanitizer
/// this also shows that nothing outside is touched.
std::string attack_decoder(const ProgramFile& program,
                           const std::shared_ptr<const rt::LoadedProgram>& loaded);

/// payload_bound is met for all kinds of data. Empty where it is.
std::string check_payload_bounds(const ProgramFile& program,
                                 const std::shared_ptr<const rt::LoadedProgram>& loaded);

}  // namespace cinch::testing
