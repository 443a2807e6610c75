
#include <algorithm>

#include "compiler/verify/laws.h"

namespace cinch::verify {

namespace {

using Claim = sema::Claim;
using sema::ClaimKind;

struct Law {
  std::string name;
  double weight;  // of the law's share of the time
  std::function<Finding(const Trial&)> run;
};

struct ClaimedLaw {
  ClaimKind kind;
  double weight;
  Finding (*run)(const Trial&, const Claim&);
};

constexpr ClaimedLaw kClaimedLaws[] = {
    {ClaimKind::Unbiased, 6, unbiased},
    {ClaimKind::Variance, 4, relative_error},
    {ClaimKind::Contraction, 4, relative_error},
    {ClaimKind::AbsoluteError, 2, absolute_error},
    {ClaimKind::Conserves, 2, conserves},
    {ClaimKind::ScaleEquivariant, 1, equivariant},
    {ClaimKind::SignEquivariant, 1, equivariant},
    {ClaimKind::Idempotent, 1, idempotent},
    {ClaimKind::Linear, 2, [](const Trial& trial, const Claim&) { return linear(trial); }},
    {ClaimKind::Density, 3, density},
};

std::vector<Law> laws_of(const Subject& subject, Report& report) {
  std::vector<Law> laws = {
      {"threads", 2, threads}, {"vector_widths", 2, vector_widths}, {"devices", 4, devices}};
  if (subject.info().has_sync) {
    if (!subject.info().is_local) laws.push_back({"ranks", 3, protocol_ranks});
    laws.push_back({"non_finite", 1, protocol_non_finite});
  } else {
    laws.insert(laws.begin(), {{"round_trip", 1, round_trip}, {"size_bound", 1, size_bound}});
    if (!subject.info().is_local) laws.push_back({"ranks", 1, ranks});
    laws.push_back({"non_finite", 1, non_finite});
    laws.push_back({"hostile_payloads", 4, hostile_payloads});
  }
  const bool is_summed =
      !subject.info().has_sync && subject.info().aggregation != rt::Aggregation::Gather;
  // Sums of floats saturate or become infinite, which decodes.
  const bool adds_integers =
      std::ranges::any_of(subject.info().wire.fields, [](const rt::FieldInfo& field) {
        return field.sum == rt::FieldSum::Sum && !is_float(field.type.dtype);
      });
  if (is_summed && adds_integers) laws.push_back({"sums_fit", 1, sums_fit});
  for (const ClaimedLaw& law : kClaimedLaws) {
    const std::string name(sema::claim_info(law.kind).name);
    const Claim* claim = subject.find_claim(law.kind);
    if (claim != nullptr) {
      laws.push_back(
          {name, law.weight, [&law, claim](const Trial& t) { return law.run(t, *claim); }});
    } else if (law.kind == ClaimKind::Linear && is_summed) {
      laws.push_back({name, law.weight, linear});
    } else {
      report.not_claimed.push_back(name);
    }
  }
  // Behind the claims: one that is false breaks this law, too.
  // Exact sums are the means.
  const rt::CarrierKind carrier = subject.info().carrier.kind;
  const bool has_sums_again = !subject.info().has_sync && (carrier == rt::CarrierKind::Itself ||
                                                           carrier == rt::CarrierKind::Program);
  const Claim* of_sums = has_sums_again ? claim_about_sums(subject) : nullptr;
  if (of_sums != nullptr) {
    laws.push_back({"sums", 2, [of_sums](const Trial& t) { return sums(t, *of_sums); }});
  }
  return laws;
}

}  // namespace

bool Report::all_hold() const {
  return std::ranges::all_of(findings, &Finding::holds);
}

static Finding run(const Law& law, Trial& trial) {
  Finding finding;
  trial.finding = &finding;
  try {
    return law.run(trial);
  } catch (const TimeIsOver&) {
    if (finding.holds) finding.cut = "a part of an input";
    if (finding.detail.empty()) finding.detail = "a call takes too long for the budget";
    return finding;
  }
}

Report verify(const Subject& subject, const Options& options, const BeforeLaw& before) {
  Report report;
  const std::vector<Law> laws = laws_of(subject, report);
  const auto duration_of = [](double seconds) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  };
  const Clock::time_point begin = Clock::now(), end = begin + duration_of(options.seconds);
  double weight_left = 0;
  for (const Law& law : laws) weight_left += law.weight;
  Trial trial{subject, options.more_inputs, options.seed, end};
  trial.end = begin + duration_of(2 * options.seconds + options.more_seconds);
  for (const Law& law : laws) {
    if (!before(law.name, report.findings.size(), laws.size())) break;
    // Time that earlier laws did not need is divided among the remaining ones.
    const Clock::time_point now = Clock::now();
    const std::chrono::duration<double> left = std::max(end - now, Clock::duration{});
    trial.deadline =
        now + std::chrono::duration_cast<Clock::duration>(left * law.weight / weight_left);
    weight_left -= law.weight;
    report.findings.push_back(run(law, trial));
  }
  return report;
}

}  // namespace cinch::verify
