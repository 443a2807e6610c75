// The meaning of the IR: slow, obvious, sequential. Every target is compared with this, bit for
// bit. Values are whole arrays, and ops run one after another. Reductions and scans follow
// runtime/core/numbers/ordered_reduce.h, single elements runtime/core/numbers/scalar_eval.h.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "compiler/ir/ir.h"
#include "runtime/core/error.h"
#include "runtime/core/numbers/dtype.h"

namespace cinch::interp {
// Arrays of the interpreter: a type, concrete sizes, and exact element values.

/// Row-major. Each entry of `bits` is one element, encoded as in
/// runtime/core/numbers/scalar_eval.h: integers extended to 64 bits, floats as their own bits in
/// the low end.
struct Array {
  DType dtype = kF32;
  std::uint8_t rank = 0;
  std::int64_t dims[2] = {1, 1};  // dimensions beyond the rank are 1
  std::vector<std::uint64_t> bits;

  std::int64_t size() const { return dims[0] * dims[1]; }
  /// For a matrix; a vector is one row, a scalar one element.
  std::int64_t rows() const { return rank == 2 ? dims[0] : 1; }
  std::int64_t cols() const { return rank == 2 ? dims[1] : dims[0]; }
  friend bool operator==(const Array&, const Array&) = default;
};

Array make_scalar(DType dtype, std::uint64_t element);
/// `size` elements whose bits are all zero.
Array make_vector(DType dtype, std::int64_t size);
Array make_matrix(DType dtype, std::int64_t rows, std::int64_t cols);

/// Converts f32 values to an array and back (`to_floats` takes only f32 arrays: checked).
Array from_floats(std::span<const float> values);
std::vector<float> to_floats(const Array& array);

// How the ranks of a sync meet: every collective exchanges arrays once.

/// All ranks call `meet` equally often and in the same order, each on a thread of its own.
class Meeting {
 public:
  Meeting() = default;
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;
  virtual ~Meeting() = default;

  /// Returns all ranks' arrays in rank order when every rank has arrived. Empty if a rank has left:
  /// the others can never meet again.
  virtual std::vector<Array> meet(std::size_t rank, Array array) = 0;
};

/// For ranks that are threads.
class Exchange : public Meeting {
 public:
  explicit Exchange(std::size_t num_ranks) : arrived_(num_ranks), num_left_(num_ranks) {}

  std::vector<Array> meet(std::size_t rank, Array array) override;
  /// A rank leaves (it has ended or failed).
  void leave();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Array> arrived_, complete_;
  std::size_t num_arrived_ = 0;
  std::size_t num_left_;
  std::size_t round_ = 0;
};

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
  std::uint32_t machine_ranks = 0;  // on each machine; 0: all ranks are on one
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
