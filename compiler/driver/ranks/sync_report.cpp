#include "compiler/driver/ranks/sync_rank.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "compiler/driver/process/terminal.h"
#include "compiler/driver/report/text.h"

namespace cinch::driver {

namespace {

using nlohmann::json;

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// Time until the last tensor of the slowest rank is ready.
double backward_ms(const std::vector<rt::TaskTimes>& by_rank) {
  double longest = 0;
  for (const rt::TaskTimes& times : by_rank) {
    for (const double ready : times.ready) longest = std::max(longest, ready - times.begin);
  }
  return longest * 1e3;
}

// For each tensor its program's name, or f32.
json tensors_json(const SyncSubject& subject, const rt::Plan& plan) {
  json list = json::array();
  for (const rt::PlanTensor& tensor : plan.tensors) {
    const bool is_exact = tensor.codec == rt::kDense;
    list.push_back({{"name", tensor.name},
                    {"elements", tensor.num_elems()},
                    {"sent_as", is_exact ? "f32" : subject.programs[tensor.codec]->info().name}});
  }
  return list;
}

json restored_json(const rt::RestoreReport& report) {
  return {{"next_step", report.next_step},
          {"kept", report.num_kept},
          {"joined", report.num_joined},
          {"reset", report.num_reset},
          {"notes", report.notes}};
}

// What the plan sent: "topk", or "topk and uncompressed" if some tensors were sent as f32.
std::string programs_text(const json& tensors) {
  std::set<std::string> names;
  for (const json& tensor : tensors) {
    const auto name = tensor["sent_as"].get<std::string>();
    names.insert(name == "f32" ? "uncompressed" : name);
  }
  return names.empty() ? "no tensors" : fmt::format("{}", fmt::join(names, " and "));
}

std::string title(const json& r) {
  const std::size_t tensors = r["tensors"].size();
  return fmt::format("sync: {}, plan {}, {} over {}, {}{}, {}", programs_text(r["tensors"]),
                     r["plan"].get<std::string>(),
                     plainly_counted(r["ranks"].get<std::uint32_t>(), "rank"),
                     r["transport"].get<std::string>(),
                     plainly_counted(r["elements"].get<std::size_t>(), "element"),
                     tensors > 1 ? fmt::format(" in {} tensors", tensors) : "",
                     plainly_counted(r["steps"].get<std::size_t>(), "step"));
}

void print_phases(const json& phases) {
  print_text("phases of rank 0 in the last step (they overlap)\n");
  TextTable table({{"", "phase", true}, {"", "tasks"}, {"", "ms"}, {"", "bytes sent"}});
  for (const json& phase : phases) {
    table.add({phase["phase"].get<std::string>(),
               std::to_string(phase["tasks"].get<std::uint64_t>()),
               cell_in_milliseconds(phase["ms"].get<double>()),
               std::to_string(phase["sent_bytes"].get<std::uint64_t>())});
  }
  print_text("{}", table.text(text_width()));
}

// A single tensor is in the title already.
void print_tensors(const json& tensors) {
  if (tensors.size() < 2) return;
  std::map<std::string, std::pair<std::size_t, std::int64_t>> by_use;
  for (const json& tensor : tensors) {
    auto& [num, elements] = by_use[tensor["sent_as"].get<std::string>()];
    ++num;
    elements += tensor["elements"].get<std::int64_t>();
  }
  for (const auto& [use, of] : by_use) {
    print_text("sent as {:<7} {}, {}\n", use, plainly_counted(of.first, "tensor"),
               plainly_counted(static_cast<std::uint64_t>(of.second), "element"));
  }
}

void print_restored(const json& restored) {
  print_text("states          {} as saved before step {}, {} put together anew, {} new\n",
             restored["kept"].get<std::size_t>(), restored["next_step"].get<std::uint64_t>(),
             restored["joined"].get<std::size_t>(), restored["reset"].get<std::size_t>());
  for (const json& note : restored["notes"]) print_text("  {}\n", note.get<std::string>());
}

}  // namespace

json report_of(const SyncCommandOptions& options, const SyncSubject& subject, const rt::Plan& plan,
               const SyncReport& report) {
  const double error = report.relative_error;
  std::size_t elements = 0;
  for (const auto& update : report.updates) elements += update.size();
  json written = {{"compressor", options.program.program},
                  {"plan", plan.name},
                  {"transport", options.transport},
                  {"ranks", plan.world()},
                  {"elements", elements},
                  {"steps", report.step_ms.size()},
                  {"step_ms", median(report.step_ms)},
                  {"all_step_ms", report.step_ms},
                  {"bytes_sent", *std::ranges::max_element(report.sent_bytes)},
                  {"relative_error", std::isfinite(error) ? json(error) : json()},
                  {"same_bits", report.same_bits},
                  {"tensors", tensors_json(subject, plan)},
                  {"phases", rt::phases_json(plan.ranks[0], report.times[0])}};
  if (report.times[0].is_in_parts) written["backward_ms"] = backward_ms(report.times);
  if (report.restored) written["restored"] = restored_json(*report.restored);
  return written;
}

void print_sync_report(const json& r) {
  constexpr std::size_t kIndent = 16;
  print_text("{}\n", wrapped(title(r), 0, sentence_width()));
  if (r.contains("auto")) {
    print_text("auto            {}\n",
               wrapped(r["auto"]["reason"].get<std::string>(), kIndent, sentence_width()));
  }
  print_text("step            {} (median, of the slowest rank)\n",
             in_milliseconds(r["step_ms"].get<double>()));
  if (r.contains("backward_ms")) {
    const double backward = r["backward_ms"].get<double>();
    const double last = r["all_step_ms"].back().get<double>();
    print_text("backward pass   {}; the last step ends {} behind it\n", in_milliseconds(backward),
               in_milliseconds(last - backward));
  }
  print_text("sent by a rank  {} bytes (at most)\n", r["bytes_sent"].get<std::uint64_t>());
  if (r["relative_error"].is_number()) {
    print_text("relative error  {:.4g} (to the mean, last step)\n",
               r["relative_error"].get<double>());
  } else {
    print_text("relative error  - (the mean is zero, or not finite)\n");
  }
  print_tensors(r["tensors"]);
  if (r.contains("restored")) print_restored(r["restored"]);
  print_text("all ranks hold the same bits: {}\n", r["same_bits"].get<bool>() ? "yes" : "NO");
  print_phases(r["phases"]);
}

}  // namespace cinch::driver
