#include "runtime/planner/plan_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <utility>

#include "runtime/core/hash.h"
#include "runtime/core/json.h"
#include "runtime/planner/exchange_options.h"
#include "runtime/planner/speeds.h"

namespace cinch::rt {
namespace {

using nlohmann::json;

constexpr const char* kPlanFileKind = "cinch plan";
constexpr int kPlanFileFormat = 1;
constexpr const char* kOnCpus = "cpus";
constexpr std::uint64_t kLeastPiece = 4, kMostPiece = UINT64_C(1) << 40;

PlanRoute read_route(const JsonPart& from) {
  PlanRoute route;
  from.refuse_others({"plan", "piece_bytes", "lengths", "option", "device"});
  const JsonPart plan = from.at("plan"), piece = from.at("piece_bytes"),
                 lengths = from.at("lengths");
  route.plan = plan.text();
  if (std::ranges::find(plan_names(), route.plan) == plan_names().end()) {
    plan.refuse("is no plan: " + plan.value.dump());
  }
  route.piece_bytes = piece.count(kMostPiece);
  if (route.piece_bytes < kLeastPiece) piece.refuse("has less than an element");
  const auto policy = length_policy_named(lengths.text());
  if (!policy) lengths.refuse("is not auto, padded or exchanged");
  route.lengths = *policy;
  if (const auto option = from.find("option")) {
    auto found = option_described(option->text());
    if (!found) option->refuse("is no way to exchange a tensor: " + option->value.dump());
    if (compresses_copies(*found)) {
      option->refuse("lets several ranks compress the same values, each in its own way");
    }
    route.option = std::move(*found);
  }
  if (const auto device = from.find("device")) {
    if (device->text() != kOnCpus) device->refuse("is not cpus: " + device->value.dump());
    route.device = OptionDevice::Cpu;
  }
  return route;
}

PlanFile::Tensor read_tensor(const JsonPart& from, const PlanFile& file) {
  constexpr std::uint64_t kMostElems = (UINT64_C(1) << 32) - 1;
  PlanFile::Tensor tensor;
  from.refuse_others({"name", "rows", "columns", "program", "route"});
  tensor.name = from.at("name").text();
  const auto rows = from.at("rows").count(kMostElems), cols = from.at("columns").count(kMostElems);
  if (cols > 0 && rows > kMostElems / cols) from.refuse("has 2^32 elements or more");
  tensor.rows = static_cast<std::int64_t>(rows);
  tensor.cols = static_cast<std::int64_t>(cols);
  const JsonPart program = from.at("program");
  const auto last = [](const auto& list) { return static_cast<std::uint64_t>(list.size()) - 1; };
  if (!program.value.is_null()) {
    if (file.programs.empty()) program.refuse("is of no program");
    tensor.program = static_cast<std::uint32_t>(program.count(last(file.programs)));
  }
  if (file.routes.empty()) from.refuse("has no route to take");
  tensor.route = static_cast<std::uint32_t>(from.at("route").count(last(file.routes)));
  return tensor;
}

PlanFile read_plan(const JsonPart& from) {
  PlanFile file;
  file.world = static_cast<std::uint32_t>(from.at("ranks").count(UINT32_MAX));
  file.ranks_per_machine =
      static_cast<std::uint32_t>(from.at("ranks_per_machine").count(UINT32_MAX));
  if (file.world == 0 || file.ranks_per_machine == 0) from.refuse("has no ranks");
  for (const JsonPart& part : from.at("programs").entries()) {
    const JsonPart fingerprint = part.at("fingerprint");
    try {
      file.programs.push_back({part.at("program").text(), fingerprint_of(fingerprint.text())});
    } catch (const std::invalid_argument& error) {
      fingerprint.refuse(error.what());
    }
  }
  for (const JsonPart& part : from.at("routes").entries()) file.routes.push_back(read_route(part));
  std::set<std::string> names;
  for (const JsonPart& part : from.at("tensors").entries()) {
    file.tensors.push_back(read_tensor(part, file));
    if (!names.insert(file.tensors.back().name).second) part.refuse("is there twice");
  }
  const JsonPart made_from = from.at("made_from");
  const auto digest = [&](const char* key) {
    const auto found = made_from.find(key);
    return found ? found->text() : std::string();
  };
  file.profile = digest("profile");
  file.network = digest("network");
  file.speeds = digest("speeds");
  file.predicted_seconds = from.at("predicted_seconds").number();
  return file;
}

class Comparison {
 public:
  void add(const std::string& difference) {
    constexpr std::size_t kShown = 3;
    if (++count_ <= kShown) text_ += (count_ == 1 ? "" : "; ") + difference;
  }
  Status result() const {
    if (count_ == 0) return Ok{};
    return invalid(fmt::format("the plan is for something else ({} {}): {}", count_,
                               count_ == 1 ? "difference" : "differences", text_));
  }

 private:
  std::string text_;
  std::size_t count_ = 0;
};

}  // namespace

bool is_plan_file(std::string_view plan) {
  return plan.find_first_of("./") != std::string_view::npos;
}

std::string plan_file_to_json(const PlanFile& file) {
  json programs = json::array(), routes = json::array(), tensors = json::array();
  for (const PlanFile::Program& each : file.programs) {
    programs.push_back(
        {{"program", each.program}, {"fingerprint", fingerprint_text(each.fingerprint)}});
  }
  for (const PlanRoute& route : file.routes) {
    routes.push_back({{"plan", route.plan},
                      {"piece_bytes", route.piece_bytes},
                      {"lengths", length_policy_name(route.lengths)}});
    if (route.option != usual_hierarchical_option()) {
      routes.back()["option"] = describe_option(route.option);
    }
    if (route.device == OptionDevice::Cpu) routes.back()["device"] = kOnCpus;
  }
  for (const PlanFile::Tensor& tensor : file.tensors) {
    const json program = tensor.program == kDense ? json() : json(tensor.program);
    tensors.push_back({{"name", tensor.name},
                       {"rows", tensor.rows},
                       {"columns", tensor.cols},
                       {"program", program},
                       {"route", tensor.route}});
  }
  json made_from = json::object();
  if (!file.profile.empty()) made_from["profile"] = file.profile;
  if (!file.network.empty()) made_from["network"] = file.network;
  if (!file.speeds.empty()) made_from["speeds"] = file.speeds;
  const json written = {{"file", kPlanFileKind},
                        {"format", kPlanFileFormat},
                        {"ranks", file.world},
                        {"ranks_per_machine", file.ranks_per_machine},
                        {"programs", programs},
                        {"routes", routes},
                        {"tensors", tensors},
                        {"made_from", made_from},
                        {"predicted_seconds", file.predicted_seconds}};
  return written.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

Result<PlanFile> plan_file_from_json(std::string_view text) {
  return read_json_file(text, kPlanFileKind, kPlanFileFormat, "plan", read_plan);
}

Result<PlanRequest> with_plan_file(PlanRequest request, const PlanFile& file) {
  Comparison differences;
  if (request.world != file.world) {
    differences.add(fmt::format("{} ranks, not {}", request.world, file.world));
  }
  if (request.ranks_per_machine != file.ranks_per_machine) {
    differences.add(fmt::format("{} ranks on each machine, not {}", request.ranks_per_machine,
                                file.ranks_per_machine));
  }
  std::map<std::string_view, const PlanFile::Tensor*> left;
  for (const PlanFile::Tensor& tensor : file.tensors) left.emplace(tensor.name, &tensor);
  for (const PlanTensor& tensor : request.tensors) {
    const auto found = left.find(tensor.name);
    if (found == left.end()) {
      differences.add(tensor.name + " is not in it");
      request.route_of.push_back(0);
      continue;
    }
    const PlanFile::Tensor& of = *found->second;
    left.erase(found);
    request.route_of.push_back(of.route);
    // Programs for vectors take a matrix as one column.
    const bool is_column = of.cols == 1 || tensor.cols == 1;
    if (is_column ? of.rows * of.cols != tensor.num_elems()
                  : of.rows != tensor.rows || of.cols != tensor.cols) {
      differences.add(fmt::format("{} is {} x {}, not {} x {}", tensor.name, tensor.rows,
                                  tensor.cols, of.rows, of.cols));
    }
    const bool is_dense = tensor.codec == kDense;
    const std::string given = is_dense ? "f32" : request.codecs[tensor.codec].name;
    const bool is_same = of.program == kDense
                             ? is_dense
                             : !is_dense && request.codecs[tensor.codec].fingerprint ==
                                                file.programs[of.program].fingerprint;
    if (is_same) continue;
    const std::string wanted = of.program == kDense ? "f32" : file.programs[of.program].program;
    const bool is_other_version = !is_dense && of.program != kDense;
    differences.add(is_other_version
                        ? fmt::format("{} has another program than {}, or another version of it",
                                      tensor.name, wanted)
                        : fmt::format("{} is sent as {}, not {}", tensor.name, given, wanted));
  }
  for (const auto& [name, tensor] : left) {
    differences.add(fmt::format("there is no tensor {}", name));
  }
  CINCH_TRY(differences.result());
  request.routes = file.routes;
  request.plan = file.routes.empty() ? "allgather" : file.routes.front().plan;
  return request;
}

std::string digest_text(std::string_view text) {
  return fmt::format("{:016x}", hash64(text));
}

}  // namespace cinch::rt
