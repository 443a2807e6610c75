// libFuzzer target: plan files and speeds. What is read survives its own text; a plan file fits the
// tensors that it names, and curves of speeds give valid times.
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "runtime/planner/plan_file.h"
#include "runtime/planner/speeds.h"
#include "tests/fuzz/target.h"

namespace {

using namespace cinch::rt;

void use_plan(std::string_view text) {
  const auto file = plan_file_from_json(text);
  if (!file) return;
  const std::string written = plan_file_to_json(*file);
  const auto again = plan_file_from_json(written);
  if (!again || plan_file_to_json(*again) != written) std::abort();
  PlanRequest request;
  request.world = file->world;
  request.ranks_per_machine = file->ranks_per_machine;
  for (const PlanFile::Program& program : file->programs) {
    request.codecs.emplace_back().fingerprint = program.fingerprint;
  }
  for (const PlanFile::Tensor& tensor : file->tensors) {
    request.tensors.push_back({tensor.name, tensor.rows, tensor.cols, tensor.program});
  }
  const auto followed = with_plan_file(request, *file);
  if (!followed || followed->route_of.size() != file->tensors.size()) std::abort();
  request.world += 1;
  if (with_plan_file(std::move(request), *file)) std::abort();
}

void use_speeds(std::string_view text) {
  const auto table = speeds_from_json(text);
  if (!table) return;
  const std::string written = speeds_to_json(*table);
  const auto again = speeds_from_json(written);
  if (!again || speeds_to_json(*again) != written) std::abort();
  for (const double elems : {0.0, 1.0, 1e5, 1e9}) {
    const double seconds = table->dense.encode.at(elems);
    if (!std::isfinite(seconds) || seconds < 0) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  use_plan(text);
  use_speeds(text);
  return 0;
}
