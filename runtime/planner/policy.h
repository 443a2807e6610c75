// Chooses how each tensor is compressed, by rules. The first rule that matches a tensor decides.
//
//   {"rules": [
//     {"name": "*.bias", "use": "exact"},
//     {"min_elements": 65536, "min_dims": 2, "use": "dgc", "set": {"ratio": 0.001}},
//     {"name": "frozen.*", "use": "off"},
//     {"name": "*.weight", "plan": "two_shot", "piece_bytes": 1048576},
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
  std::string name = "*";  // a shell pattern: * ? [a-z]
  std::int64_t min_elements = 0, max_elements = std::numeric_limits<std::int64_t>::max();
  std::int64_t min_dims = 0, max_dims = std::numeric_limits<std::int64_t>::max();

  TensorUse use = TensorUse::Compress;
  std::string program;  // for Compress; empty: the program that the caller gives
  // Values of its constants and parameters, as bindings have them: "0.001", "gamma".
  std::map<std::string, std::string> values;
  std::int32_t priority = 0;  // higher ones are sent first
  /// How tensors are exchanged. Empty and 0: as the caller says.
  std::string plan;
  std::uint64_t piece_bytes = 0;
};

struct Policy {
  std::vector<PolicyRule> rules;  // a tensor that no rule matches is exact
};

/// Tensors with fewer elements are exact unless a policy says otherwise: a message this small takes
/// the link's latency, whatever it holds.
inline constexpr std::int64_t kSmallElements = 4096;

/// The default policy: one-dimensional and small tensors exact, all others compressed.
Policy usual_policy();

/// Errors: CorruptFile (not JSON, or a rule with an unknown or ill-typed entry: names rule and
/// entry).
Result<Policy> parse_policy(std::string_view text);

/// A pattern of PolicyRule::name that this name alone matches.
std::string exact_pattern(std::string_view name);

struct PolicyTensor {
  std::string name;
  std::vector<std::int64_t> shape;
};

/// A program with its values. Each makes one codec of a plan.
struct PolicyCodec {
  std::string program;
  std::map<std::string, std::string> values;
  friend bool operator==(const PolicyCodec&, const PolicyCodec&) = default;
};

/// As PlanRoute; empty and 0: as the caller says.
struct PolicyRoute {
  std::string plan;
  std::uint64_t piece_bytes = 0;
  friend bool operator==(const PolicyRoute&, const PolicyRoute&) = default;
};

struct PolicyResult {
  std::vector<PolicyCodec> codecs;  // each once
  std::vector<PolicyRoute> routes;  // each once
  /// The tensors to send, by falling priority, else in the given order.
  struct Sent {
    std::uint32_t tensor = 0;  // index in the given tensors
    std::uint32_t codec = 0;   // or kDense
    std::int32_t priority = 0;
    std::uint32_t route = 0;
  };
  std::vector<Sent> sent;
  std::vector<std::uint32_t> off;  // indices in the given tensors
};

/// Does some rule say how tensors are exchanged?
bool has_routes(const Policy& policy);

PolicyResult apply_policy(const Policy& policy, std::span<const PolicyTensor> tensors);

}  // namespace cinch::rt
