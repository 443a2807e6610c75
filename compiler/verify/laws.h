// The laws, in groups of one file each. Laws that every program must keep take a trial; laws that
// test a claim also take the claim.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compiler/interp/interp.h"
#include "compiler/verify/subject.h"
#include "compiler/verify/verify.h"
#include "runtime/call/parameters.h"

namespace cinch::verify {

/// The most that rounding of f32 adds to a relative error.
inline constexpr double kRounding = 1e-5;

// The arguments of every law: the subject, the inputs, the seed, and the time limit.

struct Trial {
  const Subject& subject;
  std::vector<Input> more_inputs;  // the user's, tried after the synthetic ones
  std::uint64_t seed = 0;
  Clock::time_point deadline;  // of the running law
  Clock::time_point end;       // of all laws, in the midst of an input
  Finding* finding = nullptr;  // of the running law, so far

  bool has_time() const { return Clock::now() < deadline; }
  /// Synthetic inputs at these shapes, then the user's.
  std::vector<Input> inputs(std::span<const Shape> shapes) const;
  /// The same at the shapes for laws about values: small and medium.
  std::vector<Input> usual_inputs() const;
  /// Throws TimeIsOver.
  TensorRequest request(const Shape& shape) const;
  /// What a law finds. It is kept if the time is over in the midst of an input.
  Finding& begin(std::string law) const;
  /// The value of the expression of a claim, or of one of what carries sums, for a tensor. Throws
  /// nothing; errors are those of the expression.
  rt::Result<double> claimed(HostExprId number, const Shape& shape, bool is_of_sums = false) const;
};

/// Goes through inputs while there is time, at least through the first, and reports what was left
/// out.
class Sweep {
 public:
  Sweep(const Trial& trial, std::size_t planned) : trial_(trial), planned_(planned) {}
  bool goes_on();
  /// "" or "12 of 49 inputs".
  std::string cut(const char* of_what = "inputs") const;
  std::size_t done() const { return done_; }
  /// "1 input", "12 inputs".
  std::string inputs() const;

 private:
  const Trial& trial_;
  std::size_t planned_, done_ = 0;
};

/// The `cinch run` of these steps, with the trial's seed, that shows a finding.
Counterexample shown_by(const Trial& trial, std::vector<Input> steps, std::string shows);
/// The same of inputs by rank. `plan`: that of `cinch sync`; empty: they only decode.
Counterexample shown_by_ranks(const Trial& trial, std::vector<Input> inputs, std::string shows,
                              std::string plan = "");

/// The finding of a law that could not be tried: the call that failed, and its input.
Finding failed_call(const Trial& trial, const Input& input, const rt::Error& error);

/// The value of a call on an input; an error ends the law: const auto sum = TRY_ON(trial, input,
/// sum_of(input));
#define TRY_ON(trial, input, ...)                                                  \
  ({                                                                               \
    auto&& tried_result = (__VA_ARGS__);                                           \
    if (!tried_result) return failed_call((trial), (input), tried_result.error()); \
    *std::forward<decltype(tried_result)>(tried_result);                           \
  })

// Means over seeds, and a test whether one is too far from a claim to be chance.

/// A larger distance, in standard errors, is not chance.
inline constexpr double kStandardErrors = 5;

/// Running mean and variance (Welford).
class Moments {
 public:
  void add(double x) {
    ++count_;
    const double from_mean = x - mean_;
    mean_ += from_mean / static_cast<double>(count_);
    squares_ += from_mean * (x - mean_);
  }
  double mean() const { return mean_; }
  std::size_t count() const { return count_; }
  double variance() const { return count_ < 2 ? 0 : squares_ / static_cast<double>(count_ - 1); }

 private:
  std::size_t count_ = 0;
  double mean_ = 0, squares_ = 0;
};

/// How many standard errors the mean is above `expected` (negative: below). `largest`: the most
/// that one sample can add. A rare, large value may be missing from the samples, which then vary
/// less than the quantity does. So the variance is taken to be at least that of the rare event that
/// would make up for the distance.
double standard_errors(const Moments& samples, double expected, double largest);

/// Does any function of the program draw random numbers? If not, one sample is enough.
bool draws_random_numbers(const ir::Program& program);

/// Receives what one sample decoded to.
using Sampled = std::function<void(const std::vector<float>& decoded)>;

/// Decodes the input's payload once for each of up to `wanted` seeds, with a new tensor for each,
/// while this share of the law's time lasts. Returns the number of samples.
rt::Result<std::size_t> sample_seeds(const Trial& trial, const Input& input, std::size_t wanted,
                                     Clock::time_point until, const Sampled& sampled);

/// The deadline of input `index` of `count`, given the time that the inputs before it took.
Clock::time_point share_of_time(const Trial& trial, std::size_t index, std::size_t count);

double norm_squared(std::span<const float> x);
double distance_squared(std::span<const float> x, std::span<const float> y);

// Results of a program: all of them in a few steps, for comparing bit by bit, and the fields of one
// payload, for adding up those of ranks.

struct Trace {
  std::vector<Bytes> payloads;
  std::vector<std::vector<float>> decoded, updates;  // one for every step
  std::vector<Bytes> states;                         // after the last step
};

/// Runs steps 0, 1 … of a new tensor: encode, decode and finish.
rt::Result<Trace> trace_of(const Target& target, const TensorRequest& request,
                           std::span<const Input> steps);
/// The first difference: "the payload of step 1", or nothing.
std::optional<std::string> find_difference(const Trace& a, const Trace& b);

/// decode(encode(gradient)), as a new vector.
rt::Result<std::vector<float>> round_trip_of(Tensor& tensor, std::span<const float> gradient,
                                             std::uint64_t step);
/// The same, with a new tensor.
rt::Result<std::vector<float>> round_trip_of(const Target& target, const TensorRequest& request,
                                             std::span<const float> gradient);

/// The fields of a payload, with elements as in the interpreter.
using Fields = std::vector<interp::Array>;

/// What formulas see of a tensor.
HostEnv env_of(const Shape& shape, std::uint32_t world, const rt::ParameterValues& parameters);

/// Errors: those of formulas.
rt::Result<Fields> fields_of(const rt::ProgramInfo& info, const Bytes& payload, const HostEnv& env);

/// The payload of a new tensor, and what it decodes to (unless null).
rt::Result<Bytes> encode_on(const Trial& trial, const Shape& shape, std::uint32_t rank,
                            std::uint32_t world, const std::vector<float>& gradient,
                            std::vector<float>* decoded);

// law_round_trip.cpp
Finding round_trip(const Trial& trial);
Finding size_bound(const Trial& trial);
Finding non_finite(const Trial& trial);
// law_same_bits.cpp
Finding threads(const Trial& trial);
Finding vector_widths(const Trial& trial);
Finding devices(const Trial& trial);
Finding ranks(const Trial& trial);
// law_same_bits.cpp: for programs with a `sync` body, instead of `ranks` and `non_finite`.
Finding protocol_ranks(const Trial& trial);
Finding protocol_non_finite(const Trial& trial);
// law_hostile.cpp
Finding hostile_payloads(const Trial& trial);
// law_mean.cpp
Finding unbiased(const Trial& trial, const sema::Claim& claim);
Finding relative_error(const Trial& trial, const sema::Claim& claim);  // variance, contraction
Finding absolute_error(const Trial& trial, const sema::Claim& claim);
Finding density(const Trial& trial, const sema::Claim& claim);
// law_linear.cpp
Finding conserves(const Trial& trial, const sema::Claim& claim);
// law_round_trip.cpp
Finding equivariant(const Trial& trial, const sema::Claim& claim);  // in scale or sign
Finding idempotent(const Trial& trial, const sema::Claim& claim);
// law_linear.cpp: for programs whose payloads are summed field by field, claimed or not.
Finding linear(const Trial& trial);
// law_sums_fit.cpp: for the same programs.
Finding sums_fit(const Trial& trial);
// law_sums.cpp: for programs whose sums are encoded again, by themselves or by another program,
// which claims how near it comes.
Finding sums(const Trial& trial, const sema::Claim& claim);
/// The strongest such claim; null: none.
const sema::Claim* claim_about_sums(const Subject& subject);

}  // namespace cinch::verify
