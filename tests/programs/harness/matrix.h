// The matrix of cases that a program runs through: shapes, data, steps, architectures, threads,
// task splits. Interpreter and CPU must agree bit for bit in all of them.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "runtime/session/session.h"
#include "tests/programs/harness/compile.h"
#include "tests/programs/harness/gradients.h"
#include "tests/programs/harness/program_file.h"

namespace cinch::testing {

struct Case {
  std::int64_t rows = 0, cols = 1;
  DataKind data = DataKind::Normal;
  std::uint64_t steps = 1;
};

/// How a session runs a case; this never changes a result.
struct Execution {
  std::size_t arch = 0;  // index of the loaded programs
  std::uint32_t threads = 1;
  std::uint64_t groups_per_task = 0;
};

std::vector<Case> cases_for(const ProgramFile& program, bool is_matrix, bool is_long);
std::vector<Execution> executions_for(const Case& one_case, std::size_t num_archs, bool is_long);

/// Runs every case. Returns "" if all agree; else the first difference with its case.
std::string run_matrix(const ProgramFile& program, const Compiled& compiled,
                       const std::vector<std::shared_ptr<const rt::LoadedProgram>>& by_arch,
                       bool is_long);

// Attacks on the decoder of a compiled program, and a test of the promise about payload sizes.

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
