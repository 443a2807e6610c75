// What every law is given: the subject, the inputs, the seed, and how long it may take.
#pragma once
#include <chrono>
#include <functional>
#include <string>

#include "compiler/verify/finding.h"
#include "compiler/verify/subject.h"

namespace cinch::verify {

using Clock = std::chrono::steady_clock;

struct Trial {
  const Subject& subject;
  std::vector<Input> more_inputs;  // the user's, tried beside those that are made up
  std::uint64_t seed = 0;
  Clock::time_point deadline;  // of the law that runs

  bool has_time() const { return Clock::now() < deadline; }
  /// Made-up inputs at these shapes, then the user's.
  std::vector<Input> inputs(std::span<const Shape> shapes) const;
  /// The same at the shapes that laws about values use: small and middling.
  std::vector<Input> usual_inputs() const;
  TensorRequest request(const Shape& shape) const { return {shape, seed, 0, 1}; }
  /// What a claim's expression is for a tensor. Throws nothing: errors are of the expression.
  rt::Result<double> claimed(HostExprId number, const Shape& shape) const;
};

/// Goes through inputs as long as there is time, at least through the first; says what was left
/// out.
class Sweep {
 public:
  Sweep(const Trial& trial, std::size_t planned) : trial_(trial), planned_(planned) {}
  bool goes_on();
  /// "" or "12 of 49 inputs".
  std::string cut(const char* of_what = "inputs") const;
  std::size_t done() const { return done_; }

 private:
  const Trial& trial_;
  std::size_t planned_, done_ = 0;
};

/// What one `cinch run` of these steps shows, with the trial's seed.
Counterexample shown_by(const Trial& trial, std::vector<Input> steps, std::string shows);

/// A law that could not be tried: the call that failed, on what.
Finding failed_call(std::string law, const Trial& trial, const Input& input,
                    const rt::Error& error);

}  // namespace cinch::verify
