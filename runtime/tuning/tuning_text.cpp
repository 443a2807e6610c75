// Tables as JSON. Everything in a file is checked before any of it is used.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/core/json.h"
#include "runtime/tuning/tuning.h"

namespace cinch::rt {
namespace {

using nlohmann::json;

constexpr std::uint64_t kFormat = 1;
constexpr std::string_view kCpuArchitectures[] = {"x86-64", "x86-64-v3", "x86-64-v4", "aarch64"};

tl::unexpected<Error> corrupt(std::string message) {
  return fail(ErrorKind::CorruptFile, std::move(message));
}

bool is_gpu_architecture(std::string_view name) {
  constexpr std::string_view kPrefix = "sm_";
  if (name == "emulated") return true;
  if (!name.starts_with(kPrefix)) return false;
  const std::string_view digits = name.substr(kPrefix.size());
  return !digits.empty() &&
         std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; });
}

const json* member(const json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() ? nullptr : &*found;
}

// The text of a member of an object; null if it is not a text.
const std::string* text_of(const json& object, const char* name) {
  const json* value = member(object, name);
  return value == nullptr ? nullptr : value->get_ptr<const std::string*>();
}

template <typename Tuning>
Status read_number(const std::string& name, const json& value, Tuning& numbers) {
  for (const TuningNumber<Tuning>& number : tuning_numbers<Tuning>()) {
    if (name != number.name) continue;
    const bool fits =
        value.is_number_integer() && !(value.is_number_unsigned() && value > INT64_MAX);
    const std::int64_t given = fits ? value.get<std::int64_t>() : -1;
    const bool is_power = !number.is_power_of_two || (given & (given - 1)) == 0;
    if (!fits || given < number.least || given > number.most || !is_power) {
      return corrupt(fmt::format("{} is {}; it is {} from {} to {}", name, value.dump(),
                                 number.is_power_of_two ? "a power of two" : "a whole number",
                                 number.least, number.most));
    }
    numbers.*number.member = given;
    return Ok{};
  }
  return corrupt(fmt::format("there is no number '{}'", name));
}

template <typename Tuning>
Status read_numbers(const json& object, const TuningEntry* base, TuningEntry& entry) {
  const auto* begin = base == nullptr ? nullptr : std::get_if<Tuning>(&base->numbers);
  Tuning numbers = begin == nullptr ? Tuning{} : *begin;
  for (const auto& [name, value] : object.items()) {
    CINCH_TRY(read_number(name, value, numbers));
  }
  entry.numbers = numbers;
  return Ok{};
}

Status read_measured(const json& value, TuningEntry& entry) {
  if (value.is_null()) return Ok{};
  const bool is_object = value.is_object();
  const std::string* machine = is_object ? text_of(value, "machine") : nullptr;
  const std::string* date = is_object ? text_of(value, "date") : nullptr;
  const std::string* benchmark = is_object ? text_of(value, "benchmark") : nullptr;
  if (machine == nullptr || date == nullptr || benchmark == nullptr) {
    return corrupt("\"measured\" is null, or has the texts machine, date and benchmark");
  }
  entry.measured = {*machine, *date, *benchmark};
  return Ok{};
}

Status read_entry(const json& object, const TuningTable& base, TuningEntry& entry) {
  const std::string* name = object.is_object() ? text_of(object, "architecture") : nullptr;
  if (name == nullptr) return corrupt("an entry without an architecture");
  const bool is_gpu = is_gpu_architecture(*name);
  if (!is_gpu && std::ranges::find(kCpuArchitectures, *name) == std::end(kCpuArchitectures)) {
    return corrupt(fmt::format("there is no architecture '{}'", *name));
  }
  entry.architecture = *name;
  const json *numbers = member(object, "numbers"), *measured = member(object, "measured");
  if (numbers == nullptr || !numbers->is_object() || measured == nullptr) {
    return corrupt(*name + R"(: an entry has "numbers" and "measured")");
  }
  const TuningEntry* below = base.find(*name);
  Status status = is_gpu ? read_numbers<GpuTuning>(*numbers, below, entry)
                         : read_numbers<CpuTuning>(*numbers, below, entry);
  if (status) status = read_measured(*measured, entry);
  if (!status) status.error().message = *name + ": " + status.error().message;
  return status;
}

std::string quoted(const std::string& text) {
  return json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

template <typename Tuning>
std::string print_numbers(const Tuning& numbers) {
  std::string text;
  for (const TuningNumber<Tuning>& number : tuning_numbers<Tuning>()) {
    text +=
        fmt::format("{}\"{}\": {}", text.empty() ? "" : ", ", number.name, numbers.*number.member);
  }
  return text;
}

}  // namespace

Result<TuningTable> parse_tuning(std::string_view text, const TuningTable& base) {
  JsonTree tree;
  if (const std::string problem = tree.parse_user(text); !problem.empty()) return corrupt(problem);
  if (!tree.root().is_object()) return corrupt("not a JSON object");
  const json& root = tree.root();
  const json *format = member(root, "format"), *entries = member(root, "entries");
  if (format == nullptr || !format->is_number_unsigned()) return corrupt("there is no format");
  if (*format != kFormat) {
    return fail(ErrorKind::VersionMismatch,
                fmt::format("format {}; this version reads format {}", format->dump(), kFormat));
  }
  if (entries == nullptr || !entries->is_array()) return corrupt("there are no entries");
  TuningTable table;
  for (const json& object : *entries) {
    TuningEntry entry;
    CINCH_TRY(read_entry(object, base, entry));
    table.put(std::move(entry));
  }
  return table;
}

std::string print_tuning(const TuningTable& table) {
  std::string text = fmt::format(R"({{"format": {}, "entries": [)", kFormat);
  const char* separator = "\n";
  for (const TuningEntry& entry : table.entries) {
    const std::string numbers =
        std::visit([](const auto& held) { return print_numbers(held); }, entry.numbers);
    text += fmt::format("{}  {{\"architecture\": {},\n   \"numbers\": {{{}}},\n   \"measured\": ",
                        separator, quoted(entry.architecture), numbers);
    if (!entry.measured) {
      text += "null}";
    } else {
      text += fmt::format("{{\"machine\": {},\n                \"date\": {}, \"benchmark\": {}}}}}",
                          quoted(entry.measured->machine), quoted(entry.measured->date),
                          quoted(entry.measured->benchmark));
    }
    separator = ",\n";
  }
  return text + "\n]}\n";
}

}  // namespace cinch::rt
