// Values that the host computes with: typed scalars, and what the leaves of host expressions stand
// for.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace cinch {

enum class HostType : std::uint8_t { Int, F32, F64, Bool };

/// "int", "f32", "f64", "bool".
const char* host_type_name(HostType type);
std::optional<HostType> find_host_type(std::string_view name);

/// A typed scalar. `bits` holds an i64, the bits of an f32 (low half) or f64, or 0 / 1. NaN is
/// canonical, so equal values have equal bits (-0 and +0 differ).
struct HostValue {
  HostType type = HostType::Int;
  std::uint64_t bits = 0;

  static HostValue from_int(std::int64_t value);
  static HostValue from_f32(float value);
  static HostValue from_f64(double value);
  static HostValue from_bool(bool value);
  /// Each may be called only for its own type (checked).
  std::int64_t as_int() const;
  float as_f32() const;
  double as_f64() const;
  bool as_bool() const;
  /// Of any type, as the nearest double; false is 0, true 1.
  double to_double() const;

  friend bool operator==(const HostValue&, const HostValue&) = default;
};

class HostMemo;

/// Values for the leaves of host expressions. rows and cols are those of a matrix gradient ([n, 1]
/// for a vector). params are by parameter index, each of the type of its Param node. counts are by
/// count index, and needed only for expressions with Count nodes.
struct HostEnv {
  std::int64_t n = 0;
  std::int64_t rows = 0;
  std::int64_t cols = 1;
  std::int64_t world = 1;
  std::int64_t step = 0;
  std::int64_t worker = 0;
  std::int64_t machine_ranks = 0;  // on each machine; 0: all ranks are on one
  std::span<const HostValue> params = {};
  std::span<const std::int64_t> counts = {};
  /// Known values for this env (host_memo.h), or null. The memo must be bound to this env; only
  /// counts may have changed since.
  HostMemo* memo = nullptr;
};

/// "n = 40"; for a matrix "r = 5, c = 8"; with several ranks "n = 40, world = 3".
inline std::string shape_text(const HostEnv& env) {
  const std::string world = env.world > 1 ? ", world = " + std::to_string(env.world) : "";
  if (env.cols == 1) return "n = " + std::to_string(env.n) + world;
  return "r = " + std::to_string(env.rows) + ", c = " + std::to_string(env.cols) + world;
}

}  // namespace cinch
