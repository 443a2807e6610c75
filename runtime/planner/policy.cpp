#include "runtime/planner/policy.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "runtime/core/json.h"
#include "runtime/plan/plan.h"
#include "runtime/planner/planner.h"

namespace cinch::rt {
namespace {

using nlohmann::json;

void read_use(const json& value, PolicyRule& rule) {
  const auto use = value.get<std::string>();
  if (use == "exact") {
    rule.use = TensorUse::Exact;
  } else if (use == "off") {
    rule.use = TensorUse::Off;
  } else {
    rule.program = use;
  }
}

void read_priority(const json& value, PolicyRule& rule) {
  using Limits = std::numeric_limits<std::int32_t>;
  const bool is_whole = value.is_number_integer() && value.get<double>() >= Limits::min() &&
                        value.get<double>() <= Limits::max();
  if (!is_whole) throw std::invalid_argument("not a whole number of 32 bits");
  value.get_to(rule.priority);
}

// The shortest text that parses to the same number.
std::string value_text(const json& value) {
  if (value.is_boolean()) return value.get<bool>() ? "true" : "false";
  if (!value.is_string()) return fmt::format("{}", value.get<double>());
  auto word = value.get<std::string>();
  const bool is_word =
      !word.empty() && std::isdigit(static_cast<unsigned char>(word[0])) == 0 &&
      std::ranges::all_of(word, [](unsigned char c) { return c == '_' || std::isalnum(c) != 0; });
  if (!is_word) throw std::invalid_argument("'" + word + "' is neither a number nor a word");
  return word;
}

void read_entry(const std::string& key, const json& value, PolicyRule& rule) {
  const auto read_limit = [&](std::int64_t& to) {
    constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > kMost) {
      throw std::invalid_argument("not a whole number of at least 0");
    }
    value.get_to(to);
  };
  if (key == "name") return value.get_to(rule.name), void();
  if (key == "use") return read_use(value, rule);
  if (key == "set") {
    for (const auto& [param, given] : value.get<std::map<std::string, json>>())
      rule.values[param] = value_text(given);
    return;
  }
  if (key == "priority") return read_priority(value, rule);
  if (key == "plan") {
    value.get_to(rule.plan);
    const auto names = plan_names();
    if (std::ranges::find(names, rule.plan) != names.end()) return;
    throw std::invalid_argument(fmt::format("there is no plan {} for some tensors; there are {}",
                                            value.dump(), fmt::join(names, ", ")));
  }
  if (key == "piece_bytes") {
    std::int64_t bytes = 0;
    read_limit(bytes);
    if (bytes < 4) throw std::invalid_argument("a piece has 4 bytes or more");
    rule.piece_bytes = static_cast<std::uint64_t>(bytes);
    return;
  }
  if (key == "min_elements") return read_limit(rule.min_elements);
  if (key == "max_elements") return read_limit(rule.max_elements);
  if (key == "min_dims") return read_limit(rule.min_dims);
  if (key == "max_dims") return read_limit(rule.max_dims);
  throw std::invalid_argument(
      "unknown; there are name, use, set, priority, plan, piece_bytes, min_elements, "
      "max_elements, min_dims, max_dims");
}

Result<PolicyRule> read_rule(const json& from, std::size_t number) {
  const auto wrong = [number](const std::string& what) {
    return fail(ErrorKind::CorruptFile, fmt::format("policy: rule {}: {}", number, what));
  };
  if (!from.is_object()) return wrong("not an object");
  PolicyRule rule;
  for (const auto& [key, value] : from.items()) {
    try {
      read_entry(key, value, rule);
    } catch (const json::exception&) {
      return wrong(fmt::format("{}: {} is of another type", key, value.dump()));
    } catch (const std::invalid_argument& error) {
      return wrong(fmt::format("{}: {}", key, error.what()));
    }
  }
  if (rule.use != TensorUse::Compress && !rule.values.empty()) {
    return wrong("set: there is no program");
  }
  if (rule.use == TensorUse::Off && (!rule.plan.empty() || rule.piece_bytes > 0)) {
    return wrong("plan: the tensors are not sent");
  }
  return rule;
}

bool fits(const PolicyRule& rule, const PolicyTensor& tensor) {
  std::int64_t elements = 1;
  for (const std::int64_t dim : tensor.shape) elements *= dim;
  const auto dims = static_cast<std::int64_t>(tensor.shape.size());
  return rule.min_elements <= elements && elements <= rule.max_elements && rule.min_dims <= dims &&
         dims <= rule.max_dims && fnmatch(rule.name.c_str(), tensor.name.c_str(), 0) == 0;
}

}  // namespace

Policy usual_policy() {
  PolicyRule flat, small, other;
  flat.max_dims = 1;
  flat.use = TensorUse::Exact;
  small.max_elements = kSmallElements - 1;
  small.use = TensorUse::Exact;
  return {{flat, small, other}};
}

Result<Policy> parse_policy(std::string_view text) {
  Policy policy;
  json from;
  try {
    from = parse_user_json(text);
  } catch (const std::invalid_argument& error) {
    return fail(ErrorKind::CorruptFile, std::string("policy: ") + error.what());
  }
  const bool is_list =
      from.is_object() && from.size() == 1 && from.contains("rules") && from.at("rules").is_array();
  if (!is_list) return fail(ErrorKind::CorruptFile, R"(policy: {"rules": […]} expected)");
  for (const json& rule : from.at("rules")) {
    auto read = TRY(read_rule(rule, policy.rules.size() + 1));
    policy.rules.push_back(std::move(read));
  }
  return policy;
}

namespace {

// The place of `wanted` in a list that has each once.
template <typename T>
std::uint32_t place_in(std::vector<T>& list, const T& wanted) {
  const auto found = std::ranges::find(list, wanted);
  const auto place = static_cast<std::uint32_t>(found - list.begin());
  if (found == list.end()) list.push_back(wanted);
  return place;
}

}  // namespace

std::string exact_pattern(std::string_view name) {
  std::string pattern;
  for (const char c : name) {
    const bool is_special = c == '*' || c == '?' || c == '[';
    pattern += is_special ? fmt::format("[{}]", c) : c == '\\' ? "\\\\" : std::string(1, c);
  }
  return pattern;
}

bool has_routes(const Policy& policy) {
  return std::ranges::any_of(policy.rules, [](const PolicyRule& rule) {
    return !rule.plan.empty() || rule.piece_bytes > 0;
  });
}

PolicyResult apply_policy(const Policy& policy, std::span<const PolicyTensor> tensors) {
  PolicyResult result;
  for (std::uint32_t t = 0; t < tensors.size(); ++t) {
    const auto rule = std::ranges::find_if(
        policy.rules, [&](const PolicyRule& each) { return fits(each, tensors[t]); });
    if (rule == policy.rules.end()) {
      result.sent.push_back({t, kDense, 0, place_in(result.routes, PolicyRoute{})});
    } else if (rule->use == TensorUse::Off) {
      result.off.push_back(t);
    } else {
      const bool is_exact = rule->use == TensorUse::Exact;
      const std::uint32_t codec =
          is_exact ? kDense : place_in(result.codecs, PolicyCodec{rule->program, rule->values});
      const std::uint32_t route =
          place_in(result.routes, PolicyRoute{rule->plan, rule->piece_bytes});
      result.sent.push_back({t, codec, rule->priority, route});
    }
  }
  std::ranges::stable_sort(result.sent, std::greater<>(), &PolicyResult::Sent::priority);
  return result;
}

}  // namespace cinch::rt
