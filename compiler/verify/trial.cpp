#include "compiler/verify/trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "compiler/verify/trace.h"

namespace cinch::verify {

static const sema::Claim* claim_of(const sema::CheckedProgram& program, sema::ClaimKind kind) {
  const auto found = std::ranges::find(program.claims, kind, &sema::Claim::kind);
  return found == program.claims.end() ? nullptr : &*found;
}

const sema::Claim* Subject::find_claim(sema::ClaimKind kind) const {
  return claim_of(*checked, kind);
}

const sema::Claim* Subject::find_claim_of_sums(sema::ClaimKind kind) const {
  return claim_of(carrier != nullptr ? *carrier : *checked, kind);
}

TensorRequest Trial::request(const Shape& shape) const {
  const TensorRequest request{shape, seed, 0, 1, end};
  request.require_time();
  return request;
}

Finding& Trial::begin(std::string law) const {
  *finding = Finding{.law = std::move(law)};
  return *finding;
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

static rt::Result<double> value_of(const rt::ProgramInfo& info, HostExprId number,
                                   const Shape& shape) {
  const rt::ParameterValues parameters(info);
  const rt::Result<HostValue> value = info.exprs.eval(number, env_of(shape, 1, parameters));
  CINCH_TRY(value);
  return value->to_double();
}

rt::Result<double> Trial::claimed(HostExprId number, const Shape& shape) const {
  return value_of(subject.info(), number, shape);
}

rt::Result<double> Trial::claimed_of_sums(HostExprId number, const Shape& shape) const {
  const sema::CheckedProgram* carrier = subject.carrier;
  return value_of(carrier != nullptr ? carrier->info : subject.info(), number, shape);
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
