#include "runtime/planner/speeds.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "runtime/core/json.h"

namespace cinch::rt {
namespace {

using nlohmann::json;

constexpr const char* kSpeedsKind = "cinch speeds";
constexpr int kSpeedsFormat = 1;

// The curves of a speed, and their names in the file.
constexpr std::array kCurves = {
    std::pair{"encode", &CodecSpeed::encode},         std::pair{"decode", &CodecSpeed::decode},
    std::pair{"decode_add", &CodecSpeed::decode_add}, std::pair{"finish", &CodecSpeed::finish},
    std::pair{"spread", &CodecSpeed::spread},         std::pair{"join", &CodecSpeed::join}};

json curve_json(const CostCurve& curve) {
  json samples = json::array();
  for (const Sample& sample : curve.samples) samples.push_back({sample.size, sample.seconds});
  return samples;
}

json speed_json(const CodecSpeed& speed) {
  json written = {{"used_share", speed.used_share}};
  for (const auto& [name, member] : kCurves) written[name] = curve_json(speed.*member);
  json parts = json::array();
  for (const CostCurve& part : speed.parts) parts.push_back(curve_json(part));
  written["parts"] = std::move(parts);
  return written;
}

CostCurve read_curve(const JsonPart& from) {
  constexpr double kMostElems = 1e12;
  CostCurve curve;
  for (const JsonPart& part : from.entries()) {
    const std::vector<JsonPart> pair = part.entries();
    if (pair.size() != 2) part.refuse("is not a number of elements and seconds");
    const json& size = pair[0].value;
    const bool is_size =
        size.is_number() && size.get<double>() >= 0 && size.get<double>() <= kMostElems;
    if (!is_size) pair[0].refuse("is not a number of elements: " + size.dump());
    curve.samples.push_back({size.get<double>(), pair[1].number()});
  }
  const auto does_not_grow = [](const Sample& a, const Sample& b) { return a.size >= b.size; };
  if (std::ranges::adjacent_find(curve.samples, does_not_grow) != curve.samples.end()) {
    from.refuse("has no sizes that grow");
  }
  return curve;
}

CodecSpeed read_speed(const JsonPart& from) {
  CodecSpeed speed;
  for (const auto& [name, member] : kCurves) speed.*member = read_curve(from.at(name));
  for (const JsonPart& part : from.at("parts").entries()) speed.parts.push_back(read_curve(part));
  const JsonPart share = from.at("used_share");
  speed.used_share = share.number();
  if (speed.used_share > 1) share.refuse("is more than all of a payload");
  return speed;
}

CpuSpeeds read_cpus(const JsonPart& from) {
  CpuSpeeds cpus;
  cpus.threads = static_cast<double>(from.at("threads").count(UINT32_MAX));
  cpus.dense = read_speed(from.at("f32"));
  cpus.clear = read_curve(from.at("clear"));
  cpus.copy_out = read_curve(from.at("copy_out"));
  cpus.copy_in = read_curve(from.at("copy_in"));
  if (cpus.threads == 0) from.refuse("has no threads");
  return cpus;
}

json cpus_json(const CpuSpeeds& cpus) {
  return {{"threads", static_cast<std::uint32_t>(cpus.threads)},
          {"f32", speed_json(cpus.dense)},
          {"clear", curve_json(cpus.clear)},
          {"copy_out", curve_json(cpus.copy_out)},
          {"copy_in", curve_json(cpus.copy_in)}};
}

SpeedTable read_table(const JsonPart& file) {
  SpeedTable table;
  table.device = file.at("device").text();
  table.threads = static_cast<std::uint32_t>(file.at("threads").count(UINT32_MAX));
  table.copies = static_cast<std::uint32_t>(file.at("ranks_at_once").count(UINT32_MAX));
  table.cores = file.at("cores").number();
  if (table.threads == 0 || table.cores < 1) file.refuse("a machine has threads and cores");
  table.dense = read_speed(file.at("f32"));
  if (table.dense.encode.samples.empty()) file.at("f32").refuse("has no times");
  table.clear = read_curve(file.at("clear"));
  if (const auto cpus = file.find("cpus")) table.cpus = read_cpus(*cpus);
  for (const JsonPart& part : file.at("programs").entries()) {
    ProgramSpeed& to = table.programs.emplace_back();
    to.program = part.at("program").text();
    to.is_carrier = part.at("carries_sums").count(1) == 1;
    const JsonPart fingerprint = part.at("fingerprint");
    try {
      to.fingerprint = fingerprint_of(fingerprint.text());
    } catch (const std::invalid_argument& error) {
      fingerprint.refuse(error.what());
    }
    to.speed = read_speed(part);
    if (table.cpus) to.on_cpus = read_speed(part.at("on_cpus"));
    // The parts of a `sync` stand for its calls.
    if (to.speed.encode.samples.empty() && to.speed.parts.empty()) part.refuse("has no times");
  }
  return table;
}

}  // namespace

const ProgramSpeed* SpeedTable::find(std::string_view program, bool is_carrier) const {
  const auto found = std::ranges::find_if(programs, [&](const ProgramSpeed& each) {
    return each.program == program && each.is_carrier == is_carrier;
  });
  return found == programs.end() ? nullptr : &*found;
}

std::string speeds_to_json(const SpeedTable& table) {
  json programs = json::array();
  for (const ProgramSpeed& each : table.programs) {
    json& entry = programs.emplace_back(speed_json(each.speed));
    entry["program"] = each.program;
    entry["carries_sums"] = each.is_carrier ? 1 : 0;
    entry["fingerprint"] = fingerprint_text(each.fingerprint);
    if (table.cpus) entry["on_cpus"] = speed_json(each.on_cpus);
  }
  json written = {{"file", kSpeedsKind},
                  {"format", kSpeedsFormat},
                  {"device", table.device},
                  {"threads", table.threads},
                  {"cores", table.cores},
                  {"ranks_at_once", table.copies},
                  {"f32", speed_json(table.dense)},
                  {"clear", curve_json(table.clear)},
                  {"programs", std::move(programs)}};
  if (table.cpus) written["cpus"] = cpus_json(*table.cpus);
  return written.dump(1) + "\n";
}

Result<SpeedTable> speeds_from_json(std::string_view text) {
  return read_json_file(text, kSpeedsKind, kSpeedsFormat, "speeds", read_table);
}

std::string fingerprint_text(const std::array<std::uint64_t, 2>& fingerprint) {
  return fmt::format("{:016x}{:016x}", fingerprint[1], fingerprint[0]);
}

std::array<std::uint64_t, 2> fingerprint_of(std::string_view text) {
  constexpr std::size_t kDigits = 16;
  std::array<std::uint64_t, 2> words{};
  bool is_whole = text.size() == kDigits * words.size();
  for (std::size_t i = 0; i < words.size() && is_whole; ++i) {
    const char* const begin = text.data() + i * kDigits;
    const auto [end, error] =
        std::from_chars(begin, begin + kDigits, words[words.size() - 1 - i], 16);
    is_whole = error == std::errc() && end == begin + kDigits;
  }
  if (!is_whole) throw std::invalid_argument("is not 32 hexadecimal digits");
  return words;
}

}  // namespace cinch::rt
