// Facts about a program as a whole: parameters, sizes, states, counts and the wire. Plain data that
// the checked tree, the IR, the kernel program and the image share, so that no stage renames it.
#pragma once
#include <algorithm>
#include <array>

#include "runtime/core/numbers/dtype.h"
#include "runtime/core/sizes/host_expr_id.h"

namespace cinch::rt {

// Rank 0 (scalar), 1 or 2; dims[i] are element counts as host expressions.
struct ArrayType {
  DType dtype;
  std::uint8_t rank = 0;
  HostExprId dims[2];
};

// An interval for a parameter's value; a missing side is unbounded.
struct ParamRange {
  std::optional<double> low, high;
  bool low_open = false, high_open = false;
};

// A run-time parameter (constant parameters are bound when the program is compiled and listed in
// ProgramInfo::constants).
struct ParamInfo {
  std::string name;
  DType dtype;
  double default_value = 0;  // integers are exact below 2^53
  std::optional<ParamRange> range;
  std::vector<std::string> words;  // names of the values 0, 1, …, if they have names
  // An `input`: its value comes with each call. The default then only stands for one where nobody
  // calls, as in measurements. No size depends on it.
  bool is_input = false;
};

struct ConstantInfo {
  std::string name;
  double value = 0;
};

// A named host size (`size k = …`), for explain.
struct SizeInfo {
  std::string name;
  HostExprId value;
};

struct StateInfo {
  std::string name;  // inner compressors prefix theirs: "inner.residual"
  ArrayType type;
  // An `input`, such as weights: an array of the tensor's shape that comes with each call. Kernels
  // only read it, and it is not saved.
  bool is_input = false;
};

// A length that is known only after encoding. The HostExpr node Count(i) refers to entry i of the
// function's or wire's list.
struct CountInfo {
  std::string name;  // "m"
  HostExprId bound;  // in n and constants only
};

enum class FieldSum : std::uint8_t { None, Sum, Min, Max };

struct FieldInfo {
  std::string name;
  ArrayType type;  // dims may be Count(i) with i < WireInfo::counts.size()
  FieldSum sum = FieldSum::None;
  bool ascending = false;  // strictly ascending indices, which the reader of a payload checks
  std::optional<HostExprId>
      index_limit;  // decode uses it as an index below this, which the reader checks
  // For words that hold packed numbers: the type in the program's own text. The element type above
  // is that of the words.
  std::string packing = {};
};

struct WireInfo {
  std::vector<CountInfo> counts;
  std::vector<FieldInfo> fields;
};

// A C++ function that programs apply to elements (`extern fn`).
struct ExternInfo {
  std::string name;
  std::vector<DType> params;  // is_cpp_type, like the result
  DType result;
  std::uint64_t work = 0;  // the most operations of a call
  std::string source;      // defines `call` over the language's own functions; images leave it out
  std::array<std::uint64_t, 2> digest{};  // of the source
};

enum class Aggregation : std::uint8_t { Gather, SumProved, SumToTest };

/// What carries the sum of all ranks where a plan encodes it again (docs/sync.md, Carriers).
enum class CarrierKind : std::uint8_t {
  Itself,   // the program, with residuals of the owner's own
  Exact,    // nothing: the sum travels as f32
  Program,  // another program, which is compiled when a plan needs it
  None      // the program takes no plan that encodes sums
};

struct SumCarrier {
  CarrierKind kind = CarrierKind::Itself;
  /// Program: the compressor, as in the language. None: why there is none.
  std::string text;
  /// Program: it draws the numbers that ranks drew for their own gradients.
  bool shares_draws = false;
  friend bool operator==(const SumCarrier&, const SumCarrier&) = default;
};

struct ProgramInfo {
  std::string name;    // compressor's name
  std::string source;  // file name, for people
  std::string doc;     // `///` text
  HostExprs exprs;     // all HostExprIds of the program refer to this pool
  std::vector<ConstantInfo> constants;
  std::vector<ParamInfo> params;
  std::vector<SizeInfo> sizes;
  std::vector<StateInfo> states;
  WireInfo wire;
  std::vector<CountInfo>
      counts;  // all data-dependent counts; entries [0, wire.counts.size()) are the wire's own
  std::vector<ExternInfo> externs;
  bool is_matrix = false;     // the gradient is [f32; r, c]
  bool decode_draws = false;  // decode depends on seed and step
  bool decode_world = false;  // decode uses the number of ranks as a value or size
  bool decode_step = false;   // decode uses the step as a value or size
  bool has_finish = false;
  bool is_finish_linear = false;  // proved: the update and the states that finish leaves are linear
                                  // in the sum and in the states before
  bool has_sync = false;
  bool is_local = false;  // claimed: each rank has an update of its own
  Aggregation aggregation = Aggregation::Gather;
  bool is_linear = false;  // proved: all fields add up, and encode and decode are linear but for
                           // rounding
  SumCarrier carrier;

  /// Does a call take inputs besides the gradient?
  bool has_inputs() const {
    return std::ranges::any_of(params, &ParamInfo::is_input) ||
           std::ranges::any_of(states, &StateInfo::is_input);
  }
  /// Has it states that are kept from call to call?
  bool has_states() const { return !std::ranges::all_of(states, &StateInfo::is_input); }
  /// May partial sums be encoded and decoded again on the way to the whole sum? A finish that is
  /// not linear (a vote) would then compute something else.
  bool takes_partial_sums() const { return has_sync || !has_finish || is_finish_linear; }
};

/// The name of the program that carries the sums of this one.
inline std::string carrier_name(const ProgramInfo& info) {
  return info.name + ".again";
}

}  // namespace cinch::rt
