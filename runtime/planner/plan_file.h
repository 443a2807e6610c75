// A planned step as a file: the program and the route of each tensor, and what it was planned for.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/error.h"
#include "runtime/planner/planner.h"

namespace cinch::rt {

struct PlanFile {
  std::uint32_t world = 1, ranks_per_machine = 1;
  struct Program {
    std::string program;  // "onebit", "topk(ratio: 0.1)"
    std::array<std::uint64_t, 2> fingerprint{};
    friend bool operator==(const Program&, const Program&) = default;
  };
  std::vector<Program> programs;
  std::vector<PlanRoute> routes;
  struct Tensor {
    std::string name;
    std::int64_t rows = 0, cols = 1;
    std::uint32_t program = kDense, route = 0;
    friend bool operator==(const Tensor&, const Tensor&) = default;
  };
  std::vector<Tensor> tensors;  // in the order in which they become ready
  /// Digests of the files that it was made from; empty: of none.
  std::string profile, network, speeds;
  double predicted_seconds = 0;
};

std::string plan_file_to_json(const PlanFile& file);
/// Errors: CorruptFile ("tensors[3].route: is more than 4: 5"), VersionMismatch.
Result<PlanFile> plan_file_from_json(std::string_view text);
/// Is this text a plan's name, not that of a file? Names have neither a dot nor a slash.
bool is_plan_file(std::string_view plan);

/// The request with the routes of the file. Its tensors have their codecs already. Errors:
/// InvalidArgument, with the first three differences between the file and the request: tensors,
/// sizes, programs, ranks, machines.
Result<PlanRequest> with_plan_file(PlanRequest request, const PlanFile& file);

/// The digest of a file's text: 16 hexadecimal digits.
std::string digest_text(std::string_view text);

}  // namespace cinch::rt
