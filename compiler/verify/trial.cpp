#include "compiler/verify/trial.h"

#include <fmt/format.h>

#include <array>

#include "compiler/verify/trace.h"

namespace cinch::verify {

const sema::Claim* Subject::find_claim(sema::ClaimKind kind) const {
  for (const sema::Claim& claim : checked->claims) {
    if (claim.kind == kind) return &claim;
  }
  return nullptr;
}

std::vector<Input> Trial::inputs(std::span<const Shape> shapes) const {
  std::vector<Input> all = made_up_inputs(shapes);
  all.insert(all.end(), more_inputs.begin(), more_inputs.end());
  return all;
}

std::vector<Input> Trial::usual_inputs() const {
  const bool is_matrix = subject.info().is_matrix;
  const std::array<Shape, 2> shapes =
      is_matrix ? std::array<Shape, 2>{{{40, 25}, {7, 3}}} : std::array<Shape, 2>{{{1000}, {7}}};
  return inputs(shapes);
}

rt::Result<double> Trial::claimed(HostExprId number, const Shape& shape) const {
  const rt::ParameterValues parameters(subject.info());
  const rt::Result<HostValue> value =
      subject.info().exprs.eval(number, env_of(shape, 1, parameters));
  CINCH_TRY(value);
  return value->to_double();
}

bool Sweep::goes_on() {
  if (done_ == planned_ || (done_ > 0 && !trial_.has_time())) return false;
  ++done_;
  return true;
}

std::string Sweep::cut(const char* of_what) const {
  if (done_ == planned_) return "";
  return fmt::format("{} of {} {}", done_, planned_, of_what);
}

std::string Sweep::inputs() const {
  return fmt::format("{} input{}", done_, done_ == 1 ? "" : "s");
}

Counterexample shown_by(const Trial& trial, std::vector<Input> steps, std::string shows) {
  return {std::move(steps), {}, false, trial.seed, 0, {""}, std::move(shows)};
}

Finding failed_call(std::string law, const Trial& trial, const Input& input,
                    const rt::Error& error) {
  Finding finding;
  finding.law = std::move(law);
  finding.holds = false;
  finding.figure = 1;
  finding.detail = describe(input) + ": " + error.message;
  finding.counterexample = shown_by(trial, {input}, "the call fails: " + error.message);
  return finding;
}

}  // namespace cinch::verify
