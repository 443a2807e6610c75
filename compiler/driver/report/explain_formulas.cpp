#include "compiler/driver/report/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <sstream>

#include "compiler/driver/report/text.h"
#include "compiler/service/library_list.h"

namespace cinch::driver {

namespace {

using nlohmann::json;

template <typename... Args>
void add(std::string& out, fmt::format_string<Args...> format, Args&&... args) {
  fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
}

// Breaks lines that are longer than `width`; what follows is indented more than what it belongs to.
std::string in_lines(const std::string& text, std::size_t width) {
  constexpr std::size_t kIndentMore = 4;
  std::istringstream whole(text);
  std::string lines;
  for (std::string line; std::getline(whole, line);) {
    if (num_characters(line) > width) {
      const std::size_t indent = line.find_first_not_of(' ');
      // Where the text begins that is aligned behind the line's first word; 0 if there is none, or
      // if little room is left for it.
      const std::size_t gap = line.find("  ", indent), begin = line.find_first_not_of(' ', gap);
      const std::size_t aligned = gap == std::string::npos || begin > width / 2 ? 0 : begin;
      const std::size_t kept = std::max(indent, aligned);
      line = line.substr(0, kept) +
             wrapped(line.substr(kept), aligned > 0 ? aligned : indent + kIndentMore, width);
    }
    lines += line + "\n";
  }
  return lines;
}

void add_payload(std::string& out, const json& payload) {
  add(out, "payload   {} bytes at most: {}\n", payload["bound_bytes"].get<std::int64_t>(),
      payload["bound"].get<std::string>());
  add(out, "  header  {} bytes\n", payload["header_bytes"].get<std::int64_t>());
  for (const json& count : payload["counts"]) {
    add(out, "  count   {} <= {}\n", count["name"].get<std::string>(),
        count["bound"].get<std::string>());
  }
  for (const json& field : payload["fields"]) {
    // For a packed field: its type in the program, and its words on the wire.
    auto type = field["type"].get<std::string>();
    if (!field["packs"].is_null())
      type = fmt::format("{}, in {}", field["packs"].get<std::string>(), type);
    add(out, "  field   {}: {}  {} bytes at {}{}\n", field["name"].get<std::string>(), type,
        field["bytes"].get<std::int64_t>(), field["offset"].get<std::int64_t>(),
        field["by"].is_null() ? "" : ", by " + field["by"].get<std::string>());
  }
}

// Data decides how many bytes a predicated access or a loop moves.
const char* at_most(const json& is_exact) {
  return is_exact.get<bool>() ? "" : "at most ";
}

void add_kernel(std::string& out, const json& kernel) {
  add(out, "    {:<28} {}reads {}{}, writes {}{}\n", kernel["name"].get<std::string>(),
      kernel["role"] == "finish" ? "(finish) " : "", at_most(kernel["bytes_read_exact"]),
      kernel["bytes_read"].get<std::string>(), at_most(kernel["bytes_written_exact"]),
      kernel["bytes_written"].get<std::string>());
  std::string fused;
  for (const json& op : kernel["fused"]) {
    fused += (fused.empty() ? "" : " ") + op.get<std::string>();
  }
  if (!fused.empty()) add(out, "      {}\n", fused);
}

std::string sweeps(const json& number) {
  return plainly_counted(number.get<std::uint64_t>(), "sweep");
}

// Printed if branches decide how often memory is swept.
void add_worst_case(std::string& out, const json& entry) {
  const auto print = [&](const char* name, const char* end) {
    const std::string suffix = std::string("_per_element") + end;
    add(out, "  {:<10}  {}, {:.3f} B read and {:.3f} B written per element\n", name,
        sweeps(entry[*end == '\0' ? "sweeps_most" : "sweeps_least"]),
        entry["read" + suffix].get<double>(), entry["written" + suffix].get<double>());
  };
  print("best case", "_least");
  print("worst case", "");
}

void add_entry(std::string& out, const std::string& name, const json& entry) {
  const std::string range = entry["sweeps_least"] == entry["sweeps_most"]
                                ? ""
                                : fmt::format("{} to ", entry["sweeps_least"].dump());
  add(out, "{:<9} {}, {}{} over memory; per element {}{:.3f} B read, {}{:.3f} B written\n", name,
      plainly_counted(entry["kernels"].get<std::uint64_t>(), "kernel"), range,
      sweeps(entry["sweeps_most"]), at_most(entry["bytes_read"] == entry["bytes_read_least"]),
      entry["read_per_element"].get<double>(),
      at_most(entry["bytes_written"] == entry["bytes_written_least"]),
      entry["written_per_element"].get<double>());
  if (entry["sweeps_least"] != entry["sweeps_most"]) add_worst_case(out, entry);
  // The bytes that no fusion can save; `cinch bench` measures how long they take.
  const double words = entry["random_words_per_element"].get<double>();
  add(out, "  {:<10}  {}, {:.3f} B read and {:.3f} B written per element{}\n", "floor",
      sweeps(entry["floor_sweeps"]), entry["floor_read_per_element"].get<double>(),
      entry["floor_written_per_element"].get<double>(),
      words == 0 ? "" : fmt::format(", {:.3f} random words", words));
  for (const json& kernel : entry["kernel_list"]) add_kernel(out, kernel);
  for (const json& move : entry["move_list"]) {
    std::string from;
    for (const json& read : move["reads"]) from = " from " + read["name"].get<std::string>();
    add(out, "    {:<28} {}{}: reads {}, writes {}\n", move["does"].get<std::string>(),
        move["writes"][0]["name"].get<std::string>(), from, move["read_most"].get<std::int64_t>(),
        move["written_most"].get<std::int64_t>());
  }
}

void add_protocol(std::string& out, const json& collectives) {
  add(out, "protocol  {} collectives\n", collectives.size());
  for (const json& each : collectives) {
    const auto type = each["type"].get<std::string>();
    add(out, "  {:<20} {}, ", each["name"].get<std::string>(), type);
    if (each.contains("packed")) {
      std::vector<std::string> worlds;
      for (const json& packed : each["packed"]) {
        worlds.push_back(fmt::format(
            "{} ranks {} bytes ({:.3g} bits an element)", packed["ranks"].get<int>(),
            packed["bytes"].get<std::int64_t>(), packed["bits_per_element"].get<double>()));
      }
      add(out, "packed: {}\n", fmt::join(worlds, ", "));
    } else {
      add(out, "{}{} bytes\n", each.contains("is_most") ? "at most " : "",
          each["bytes"].get<std::int64_t>());
    }
  }
}

void add_entries(std::string& out, const json& report) {
  for (const char* name : {"encode", "decode", "decode_add", "finish", "sync"}) {
    if (report.contains(name)) add_entry(out, name, report[name]);
  }
  add(out, "workspace {} bytes: {}\n", report["workspace_bytes"].get<std::int64_t>(),
      report["workspace"].get<std::string>());
}

void add_fusion(std::string& out, const json& fusion) {
  for (const json& pair : fusion["apart"]) {
    const std::string at = pair["at"].is_null() ? "" : " (" + pair["at"].get<std::string>() + ")";
    add(out, "apart     {} and {}: {}{}\n", pair["first"].get<std::string>(),
        pair["second"].get<std::string>(), pair["why"].get<std::string>(), at);
  }
  if (fusion["apart"].empty()) add(out, "apart     no sweep follows another\n");
  add(out, "steps     {} rewrites and fusion steps (--pass-limit)\n",
      fusion["steps"].get<std::int64_t>());
}

}  // namespace

std::string formulas_text(const json& report, bool with_fusion, std::size_t width) {
  std::string out;
  const auto elements = report["elements"].get<std::int64_t>();
  add(out, "{}, {}", report["compressor"].get<std::string>(),
      plainly_counted(static_cast<std::uint64_t>(elements), "element"));
  if (report.contains("columns")) {
    const auto columns = report["columns"].get<std::int64_t>();
    add(out, ", {} x {}", elements / columns, columns);
  }
  add(out, "\n");
  if (report.contains("collectives")) {
    add_protocol(out, report["collectives"]);
  } else {
    add_payload(out, report["payload"]);
  }
  add_entries(out, report);
  if (with_fusion) add_fusion(out, report["fusion"]);
  for (const json& state : report["states"]) {
    add(out, "state     {}: {}, {} bytes, {}\n", state["name"].get<std::string>(),
        state["type"].get<std::string>(), state["bytes"].get<std::int64_t>(),
        state["in_place"].get<bool>() ? "updated in place" : "and a second buffer");
  }
  if (report.contains("aggregation")) {
    add(out, "adds up   {}\n", report["aggregation"].get<std::string>());
    if (!report.value("finish_is_linear", true)) {
      add(out, "plans     those that decode every rank's payload: finish is not linear\n");
    }
  }
  add(out, "sums      carries sums by {}\n", report["carries_sums"].get<std::string>());
  for (const json& fact : report["safety"]) {
    add(out, "safe      {}: {} {}: {}\n", fact["in"].get<std::string>(),
        fact["what"].get<std::string>(), fact["property"].get<std::string>(),
        fact["how"].get<std::string>());
  }
  for (const json& check : report["checks"]) {
    add(out, "checked   {}\n", check.get<std::string>());
  }
  if (report["checks"].empty()) add(out, "checked   nothing while running: all is proved\n");
  // Sizes by their names, and what they are.
  std::string named;
  for (const json& size : report["sizes"]) {
    const auto name = size["name"].get<std::string>(), formula = size["formula"].get<std::string>();
    if (!service::name_size(out, formula, name)) continue;
    add(named, "size      {} = {}, {} here\n", name, formula, size["value"].get<std::int64_t>());
  }
  return in_lines(out + named, width);
}

}  // namespace cinch::driver
