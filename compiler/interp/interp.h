// The meaning of the IR: slow, obvious, sequential. Every target is compared with this, bit for
// bit. Values are whole arrays, and ops run one after another. Reductions and scans follow
// runtime/core/numbers/ordered_reduce.h, single elements runtime/core/numbers/scalar_eval.h.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "compiler/interp/array.h"
#include "compiler/interp/exchange.h"
#include "compiler/ir/ir.h"
#include "runtime/core/error.h"

namespace cinch::interp {

/// What random draws depend on besides site and index (docs/language_bits.md).
struct DrawKey {
  std::uint64_t seed = 0;
  std::uint64_t step = 0;
  std::uint32_t tensor = 0;
  std::uint32_t piece = 0;
};

/// Computes a C++ function (`extern fn`) for `num_elems` elements. There is one list for each
/// parameter, with elements as in Array.
using ExternCaller = std::function<rt::Result<std::vector<std::uint64_t>>(
    const rt::ExternInfo& function, std::span<const std::vector<std::uint64_t>> operands,
    std::size_t num_elems)>;

struct Inputs {
  /// Encode, sync: the gradient; finish: the sum. Row-major, rows * cols elements.
  std::vector<float> gradient;
  /// Sizes of the tensor; a vector of n elements is [n, 1].
  std::int64_t rows = 0, cols = 1;
  /// By parameter index; empty: all defaults.
  std::vector<double> params;
  /// By state index, with the states' types; empty: initial values.
  std::vector<Array> states;
  /// Decode: the payload.
  std::vector<Array> fields;
  std::vector<std::int64_t> counts;
  /// Decode: is the payload marked non-finite?
  bool is_non_finite = false;
  DrawKey draw;
  std::uint32_t worker = 0;
  std::uint32_t world = 1;
  /// Empty: a program that calls C++ functions is an error (Unavailable).
  ExternCaller call_extern;
};

struct Outputs {
  std::optional<Array> output;       // decode, finish, sync
  std::vector<Array> fields;         // encode
  std::vector<std::int64_t> counts;  // encode
  std::vector<Array> states;         // all but decode
  /// The gradient held a non-finite value (or the payload was marked): fields are empty, the output
  /// is NaN throughout, and states are unchanged.
  bool non_finite = false;
};

/// Inputs for a vector gradient, with defaults for everything else.
Inputs inputs_for(std::span<const float> gradient);

/// Runs one function. With world > 1, a `sync` needs `meeting` or run_ranks. Errors: CheckFailed (a
/// check or assert; names its message), InvalidArgument (inputs that do not fit), OutOfRange,
/// Overflow (sizes). An index out of bounds that no check caught is Internal.
rt::Result<Outputs> run(const ir::Program& program, ir::FunctionKind kind, const Inputs& inputs,
                        Meeting* meeting = nullptr);

/// Runs sync (or any function) on several ranks in lock step; collectives meet in rank order.
/// `ranks[w]` is for worker w, with world ranks.size(). If one rank's gradient holds a non-finite
/// value, no rank's state advances. Returns the first rank's error, if any.
rt::Result<std::vector<Outputs>> run_ranks(const ir::Program& program, ir::FunctionKind kind,
                                           std::vector<Inputs> ranks);

/// The initial value of every state for the sizes, parameters and draws of `inputs`.
rt::Result<std::vector<Array>> initial_states(const ir::Program& program, const Inputs& inputs);

/// The output of a function without inputs (constants, tables, generators of constant size).
rt::Result<Array> evaluate_constant(const ir::Program& program, const ir::Function& function);

}  // namespace cinch::interp
