// Which tensor is compressed how: rules, of which the first that fits a tensor decides.
//
//   {"rules": [
//     {"name": "*.bias", "use": "exact"},
//     {"min_elements": 65536, "min_dims": 2, "use": "dgc", "set": {"ratio": 0.001}},
//     {"name": "frozen.*", "use": "off"},
//     {"priority": 1}]}
#pragma once
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/error.h"

namespace cinch::rt {

enum class TensorUse : std::uint8_t {
  Compress,
  Exact,  // sent as f32
  Off     // not sent: every rank keeps its own gradient
};

struct PolicyRule {
  std::string name = "*";  // a pattern, as of shells: * ? [a-z]
  std::int64_t min_elements = 0, max_elements = std::numeric_limits<std::int64_t>::max();
  std::int64_t min_dims = 0, max_dims = std::numeric_limits<std::int64_t>::max();

  TensorUse use = TensorUse::Compress;
  std::string program;  // of Compress; empty: the one that is given beside
  // Of its constants and parameters, as bindings have them: "0.001", "gamma".
  std::map<std::string, std::string> values;
  std::int32_t priority = 0;  // higher ones are sent first
};

struct Policy {
  std::vector<PolicyRule> rules;  // a tensor that none fits is exact
};

/// Tensors of fewer elements are exact unless a policy says otherwise: a message of so little takes
/// the link's latency whatever it holds.
inline constexpr std::int64_t kSmallElements = 4096;

/// One-dimensional and small tensors exact, all others compressed.
Policy usual_policy();

/// Errors: CorruptFile (no JSON, a rule with an unknown or ill-typed entry: names rule and entry).
Result<Policy> parse_policy(std::string_view text);

struct PolicyTensor {
  std::string name;
  std::vector<std::int64_t> shape;
};

/// A program with its values: what one codec of a plan is.
struct PolicyCodec {
  std::string program;
  std::map<std::string, std::string> values;
  friend bool operator==(const PolicyCodec&, const PolicyCodec&) = default;
};

struct PolicyResult {
  std::vector<PolicyCodec> codecs;  // each once
  /// What is sent, by falling priority, else in the given order.
  struct Sent {
    std::uint32_t tensor = 0;  // of those given
    std::uint32_t codec = 0;   // or kDense
    std::int32_t priority = 0;
  };
  std::vector<Sent> sent;
  std::vector<std::uint32_t> off;  // of those given
};

PolicyResult apply_policy(const Policy& policy, std::span<const PolicyTensor> tensors);

}  // namespace cinch::rt
