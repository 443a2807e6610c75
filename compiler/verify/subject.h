// The subject of verification: a program that can run on several targets, and its claims. The maker
// of a Subject decides what runs behind it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compiler/interp/interp.h"
#include "compiler/ir/ir.h"
#include "dsl/sema/checked.h"
#include "dsl/source/source.h"
#include "runtime/core/error.h"

namespace cinch::verify {
/// Rows and columns of a tensor; a vector of n elements is [n, 1].
struct Shape {
  std::int64_t rows = 0, cols = 1;
  std::int64_t num_elems() const { return rows * cols; }
};

using Clock = std::chrono::steady_clock;

/// Ends a law in the midst of an input: the budget is long over.
struct TimeIsOver {};

struct TensorRequest {
  Shape shape;
  std::uint64_t seed = 0;
  std::uint32_t worker = 0, world = 1;
  Clock::time_point end = Clock::time_point::max();  // of all laws

  /// Called before each call. Throws TimeIsOver.
  void require_time() const {
    if (Clock::now() >= end) throw TimeIsOver{};
  }
};

using Bytes = std::vector<std::uint8_t>;

/// One tensor of one rank; errors are those of rt::Session. Calls of tensors and ranks may throw
/// TimeIsOver.
class Tensor {
 public:
  virtual ~Tensor() = default;
  virtual rt::Result<Bytes> encode(std::span<const float> gradient, std::uint64_t step) = 0;
  virtual rt::Status decode(std::span<const std::uint8_t> payload, std::span<float> out,
                            std::uint64_t step) = 0;
  /// Turns the sum over ranks into the update, in place.
  virtual rt::Status finish(std::span<float> sum, std::uint64_t step) = 0;
  virtual rt::Result<std::int64_t> payload_bound(std::uint64_t step) = 0;
  /// The stored bytes of each state, by index of ProgramInfo::states.
  virtual std::vector<Bytes> states() = 0;
};

/// The ranks of one tensor of a program with a `sync` body.
class Ranks {
 public:
  virtual ~Ranks() = default;
  /// Gradients and updates by rank. Errors: as rt::Session::sync, from the first rank at fault.
  virtual rt::Result<std::vector<std::vector<float>>> sync(
      std::span<const std::vector<float>> gradients, std::uint64_t step) = 0;
  /// By rank, then by index of ProgramInfo::states.
  virtual std::vector<std::vector<Bytes>> states() = 0;
};

/// A place where the program runs.
struct Target {
  virtual ~Target() = default;
  /// For a program with a `sync` body: a world of one rank, whose update is used as its payload.
  virtual rt::Result<std::unique_ptr<Tensor>> open(const TensorRequest& request) const = 0;
  /// Opens the request's world of ranks; only for programs with a `sync` body.
  virtual rt::Result<std::unique_ptr<Ranks>> open_ranks(const TensorRequest&) const {
    return rt::fail(rt::ErrorKind::InvalidArgument, "no ranks");
  }
  std::string name;                // "cpu x86-64-v3", for people
  std::string arguments;           // arguments of `cinch run` that select it: "--cpu x86-64-v3"
  std::int64_t most_elements = 0;  // larger tensors take too long; 0: no limit
};

using Targets = std::vector<std::unique_ptr<const Target>>;

struct Subject {
  const sema::CheckedProgram* checked = nullptr;
  const ir::Program* ir = nullptr;
  const dsl::SourceSet* sources = nullptr;  // of `ir`; or null
  interp::ExternCaller call_extern;         // for the interpreter
  std::unique_ptr<const Target> main;       // where all laws run
  Targets threads, vector_widths, devices;  // targets that must produce the same bits as `main`

  // What carries sums of the program (rt::SumCarrier), where that is another program; else null.
  const sema::CheckedProgram* carrier = nullptr;
  std::unique_ptr<const Target> carrier_target;

  const rt::ProgramInfo& info() const { return checked->info; }
  /// Where sums are encoded again.
  const Target& target_of_sums() const { return carrier_target ? *carrier_target : *main; }
  /// A claim of what carries sums.
  const sema::Claim* find_claim_of_sums(sema::ClaimKind kind) const;
  const sema::Claim* find_claim(sema::ClaimKind kind) const;
};

// The gradients on which laws are tried: seven families, and an eighth for matrices, at sizes at
// the edges of words, tiles and buckets. Always the same.

enum class Family : std::uint8_t {
  Normal,  // with deviation 0.01, like the next ones except for their tails
  Laplace,
  HeavyTailed,  // Student's t with 4 degrees of freedom
  Sparse,       // one element in 50 is not 0, and at least one
  Constant,
  Outlier,  // normal, one element 10000 times as large
  Zeros,
  LowRank,  // only matrices: a product of one column and one row, or the sum of two such
};
inline constexpr Family kFamilies[] = {Family::Normal, Family::Laplace,  Family::HeavyTailed,
                                       Family::Sparse, Family::Constant, Family::Outlier,
                                       Family::Zeros,  Family::LowRank};
const char* family_name(Family family);

struct Input {
  std::string name;  // "normal", or a file's
  Shape shape;
  std::vector<float> values;
  bool is_ordinary = false;  // spread as gradients usually are, neither constant nor mostly zeros
};

/// "normal, 33 elements" or "normal, 7 x 3".
std::string describe(const Input& input);

/// `variant` numbers gradients of one family and shape, for steps or ranks.
Input make_input(Family family, Shape shape, std::uint32_t variant = 0);
/// The same family in another draw; a file's own values are rotated by `variant` elements.
Input variant_of(const Input& input, std::uint32_t variant);

/// Variants 0, 1 … of an input.
std::vector<Input> variants_of(const Input& input, std::uint32_t count);
/// The input for one rank, its negative for the next, zeros for the third, and so on: a condition
/// that differs between ranks goes both ways.
std::vector<Input> opposed_to(const Input& input, std::uint32_t count);

/// Small shapes that are not multiples of anything, and some that are.
std::vector<Shape> edge_shapes(bool is_matrix);
/// Every family that a shape has, at every shape.
std::vector<Input> made_up_inputs(std::span<const Shape> shapes);

}  // namespace cinch::verify
