#include "compiler/driver/report/explain.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "compiler/driver/report/text.h"

namespace cinch::driver {

namespace {

using nlohmann::json;

// For a packed field: its type in the program, and its words on the wire.
std::string field_type(const json& field) {
  const auto type = field["type"].get<std::string>();
  return field["packs"].is_null() ? type : field["packs"].get<std::string>() + ", in " + type;
}

void print_payload(const json& payload) {
  fmt::print("payload   {} bytes at most: {}\n", payload["bound_bytes"].get<std::int64_t>(),
             payload["bound"].get<std::string>());
  fmt::print("  header  {} bytes\n", payload["header_bytes"].get<std::int64_t>());
  for (const json& count : payload["counts"]) {
    fmt::print("  count   {} <= {}\n", count["name"].get<std::string>(),
               count["bound"].get<std::string>());
  }
  for (const json& field : payload["fields"]) {
    fmt::print("  field   {}: {}  {} bytes at {}{}\n", field["name"].get<std::string>(),
               field_type(field), field["bytes"].get<std::int64_t>(),
               field["offset"].get<std::int64_t>(),
               field["by"].is_null() ? "" : ", by " + field["by"].get<std::string>());
  }
}

// Data decides how many bytes a predicated access or a loop moves.
const char* at_most(const json& is_exact) {
  return is_exact.get<bool>() ? "" : "at most ";
}

void print_kernel(const json& kernel) {
  fmt::print("    {:<28} {}reads {}{}, writes {}{}\n", kernel["name"].get<std::string>(),
             kernel["role"] == "finish" ? "(finish) " : "", at_most(kernel["bytes_read_exact"]),
             kernel["bytes_read"].get<std::string>(), at_most(kernel["bytes_written_exact"]),
             kernel["bytes_written"].get<std::string>());
  std::string fused;
  for (const json& op : kernel["fused"]) {
    fused += (fused.empty() ? "" : " ") + op.get<std::string>();
  }
  if (!fused.empty()) fmt::print("      {}\n", fused);
}

void print_move(const json& move) {
  std::string from;
  for (const json& read : move["reads"]) from = " from " + read["name"].get<std::string>();
  fmt::print("    {:<28} {}{}: reads {}, writes {}\n", move["does"].get<std::string>(),
             move["writes"][0]["name"].get<std::string>(), from,
             move["read_most"].get<std::int64_t>(), move["written_most"].get<std::int64_t>());
}

std::string sweeps(const json& number) {
  return plainly_counted(number.get<std::uint64_t>(), "sweep");
}

// Printed if branches decide how often memory is swept.
void print_worst_case(const json& entry) {
  const auto print = [&](const char* name, const char* end) {
    const std::string suffix = std::string("_per_element") + end;
    fmt::print("  {:<10}  {}, {:.3f} B read and {:.3f} B written per element\n", name,
               sweeps(entry[*end == '\0' ? "sweeps_most" : "sweeps_least"]),
               entry["read" + suffix].get<double>(), entry["written" + suffix].get<double>());
  };
  print("best case", "_least");
  print("worst case", "");
}

// The bytes that no fusion can save; `cinch bench` measures how long they take.
void print_floor(const json& entry) {
  const double words = entry["random_words_per_element"].get<double>();
  fmt::print("  {:<10}  {}, {:.3f} B read and {:.3f} B written per element{}\n", "floor",
             sweeps(entry["floor_sweeps"]), entry["floor_read_per_element"].get<double>(),
             entry["floor_written_per_element"].get<double>(),
             words == 0 ? "" : fmt::format(", {:.3f} random words", words));
}

void print_entry(const std::string& name, const json& entry) {
  const std::string range = entry["sweeps_least"] == entry["sweeps_most"]
                                ? ""
                                : fmt::format("{} to ", entry["sweeps_least"].dump());
  fmt::print("{:<9} {}, {}{} over memory; per element {}{:.3f} B read, {}{:.3f} B written\n", name,
             plainly_counted(entry["kernels"].get<std::uint64_t>(), "kernel"), range,
             sweeps(entry["sweeps_most"]),
             at_most(entry["bytes_read"] == entry["bytes_read_least"]),
             entry["read_per_element"].get<double>(),
             at_most(entry["bytes_written"] == entry["bytes_written_least"]),
             entry["written_per_element"].get<double>());
  if (entry["sweeps_least"] != entry["sweeps_most"]) print_worst_case(entry);
  print_floor(entry);
  for (const json& kernel : entry["kernel_list"]) print_kernel(kernel);
  for (const json& move : entry["move_list"]) print_move(move);
}

// "packed: 2 ranks 80000 bytes (6.4 bits an element), 4 ranks …"
void print_packed(const json& packed) {
  std::vector<std::string> worlds;
  for (const json& each : packed) {
    worlds.push_back(fmt::format("{} ranks {} bytes ({:.3g} bits an element)",
                                 each["ranks"].get<int>(), each["bytes"].get<std::int64_t>(),
                                 each["bits_per_element"].get<double>()));
  }
  fmt::print("packed: {}\n", fmt::join(worlds, ", "));
}

void print_protocol(const json& collectives) {
  fmt::print("protocol  {} collectives\n", collectives.size());
  for (const json& each : collectives) {
    const auto type = each["type"].get<std::string>();
    fmt::print("  {:<20} {}, ", each["name"].get<std::string>(), type);
    if (each.contains("packed")) {
      print_packed(each["packed"]);
    } else {
      fmt::print("{}{} bytes\n", each.contains("is_most") ? "at most " : "",
                 each["bytes"].get<std::int64_t>());
    }
  }
}

void print_entries(const json& report) {
  for (const char* name : {"encode", "decode", "decode_add", "finish", "sync"}) {
    if (report.contains(name)) print_entry(name, report[name]);
  }
  fmt::print("workspace {} bytes: {}\n", report["workspace_bytes"].get<std::int64_t>(),
             report["workspace"].get<std::string>());
}

void print_fusion(const json& fusion) {
  for (const json& pair : fusion["apart"]) {
    const std::string at = pair["at"].is_null() ? "" : " (" + pair["at"].get<std::string>() + ")";
    fmt::print("apart     {} and {}: {}{}\n", pair["first"].get<std::string>(),
               pair["second"].get<std::string>(), pair["why"].get<std::string>(), at);
  }
  if (fusion["apart"].empty()) fmt::print("apart     no sweep follows another\n");
  fmt::print("steps     {} rewrites and fusion steps (--pass-limit)\n",
             fusion["steps"].get<std::int64_t>());
}

}  // namespace

void print_formulas(const json& report, bool with_fusion) {
  const auto elements = report["elements"].get<std::int64_t>();
  fmt::print("{}, {}", report["compressor"].get<std::string>(),
             plainly_counted(static_cast<std::uint64_t>(elements), "element"));
  if (report.contains("columns")) {
    const auto columns = report["columns"].get<std::int64_t>();
    fmt::print(", {} x {}", elements / columns, columns);
  }
  fmt::print("\n");
  if (report.contains("collectives")) {
    print_protocol(report["collectives"]);
  } else {
    print_payload(report["payload"]);
  }
  print_entries(report);
  if (with_fusion) print_fusion(report["fusion"]);
  for (const json& state : report["states"]) {
    fmt::print("state     {}: {}, {} bytes, {}\n", state["name"].get<std::string>(),
               state["type"].get<std::string>(), state["bytes"].get<std::int64_t>(),
               state["in_place"].get<bool>() ? "updated in place" : "and a second buffer");
  }
  if (report.contains("aggregation")) {
    fmt::print("adds up   {}\n", report["aggregation"].get<std::string>());
    if (!report.value("finish_is_linear", true)) {
      fmt::print("plans     those that decode every rank's payload: finish is not linear\n");
    }
  }
  for (const json& fact : report["safety"]) {
    fmt::print("safe      {}: {} {}: {}\n", fact["in"].get<std::string>(),
               fact["what"].get<std::string>(), fact["property"].get<std::string>(),
               fact["how"].get<std::string>());
  }
  for (const json& check : report["checks"]) {
    fmt::print("checked   {}\n", check.get<std::string>());
  }
  if (report["checks"].empty()) fmt::print("checked   nothing while running: all is proved\n");
}

}  // namespace cinch::driver
