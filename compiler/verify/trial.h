// The arguments of every law: the subject, the inputs, the seed, and the time limit.
#pragma once
#include <functional>
#include <string>

#include "compiler/verify/subject.h"
#include "compiler/verify/verify.h"

namespace cinch::verify {

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
  /// The value of a claim's expression for a tensor. Throws nothing; errors are those of the
  /// expression.
  rt::Result<double> claimed(HostExprId number, const Shape& shape) const;
  /// The same of a claim of what carries sums.
  rt::Result<double> claimed_of_sums(HostExprId number, const Shape& shape) const;
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

/// The finding of a law that could not be tried: the call that failed, and its input.
Finding failed_call(std::string law, const Trial& trial, const Input& input,
                    const rt::Error& error);

}  // namespace cinch::verify
