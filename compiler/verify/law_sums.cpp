// What carries sums changes no algorithm: over many steps, the updates of a plan that encodes sums
// add up to the means that allgather gives. How near is a matter of the carrier's own claims.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "compiler/verify/laws.h"

namespace cinch::verify {

namespace {

using sema::ClaimKind;

constexpr std::uint64_t kSumsSteps = 30;
constexpr std::uint32_t kSumsRanks = 2;
constexpr std::size_t kSumsSeeds = 16;
// An owner draws other numbers than the ranks.
constexpr std::uint64_t kSeedOfOwner = 0x9e3779b97f4a7c15;

// Sums over the steps, by element, of what allgather gives and of what a plan makes of that.
struct Run {
  std::vector<double> means, updates, magnitudes;
  std::vector<float> residual;  // of the owner, where the carrier conserves
  double lengths = 0;           // of the means, added

  // Of all updates along all means: 1 if they are equal.
  double gain() const {
    double along = 0, length = 0;
    for (std::size_t i = 0; i < means.size(); ++i) {
      along += updates[i] * means[i];
      length += means[i] * means[i];
    }
    return length > 0 ? along / length : 1;
  }
  // What neither the updates nor the residual have.
  double lost() const {
    double squares = 0;
    for (std::size_t i = 0; i < means.size(); ++i) {
      const double d = means[i] - updates[i] - residual[i];
      squares += d * d;
    }
    return std::sqrt(squares);
  }
  double lost_of_magnitudes() const {
    double squares = 0;
    for (const double x : magnitudes) squares += x * x;
    return squares > 0 ? lost() / std::sqrt(squares) : lost();
  }
  double lost_of_lengths() const { return lengths > 0 ? lost() / lengths : lost(); }
  double largest_loss() const {
    double largest = 0;
    for (std::size_t i = 0; i < means.size(); ++i)
      largest = std::max(largest, std::abs(means[i] - updates[i]));
    return largest;
  }
};

class Plan {
 public:
  Plan(const Trial& trial, const Shape& shape, std::uint64_t seed) : trial_(trial) {
    request_ = trial.request(shape);
    request_.world = kSumsRanks;
    request_.seed = seed;
  }

  rt::Status open() {
    const Subject& subject = trial_.subject;
    for (std::uint32_t rank = 0; rank < kSumsRanks; ++rank) {
      request_.worker = rank;
      ranks_.push_back(TRY(subject.main->open(request_)));
    }
    TensorRequest owner = request_;
    owner.worker = 0;
    if (!subject.info().carrier.shares_draws) owner.seed ^= kSeedOfOwner;
    owner_ = TRY(subject.target_of_sums().open(owner));
    return rt::Ok{};
  }

  // The mean as allgather gives it, and what a plan makes of it that encodes it again.
  rt::Status step(std::span<const Input> gradients, std::uint64_t step, Run& run) {
    const std::size_t n = gradients[0].values.size();
    std::vector<float> mean(n);
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      const auto decoded = TRY(round_trip_of(*ranks_[rank], gradients[rank].values, step));
      for (std::size_t i = 0; i < n; ++i) mean[i] += decoded[i];
    }
    const std::vector<float> sum = mean;
    for (const std::unique_ptr<Tensor>& rank : ranks_) {
      mean = sum;
      CINCH_TRY(rank->finish(mean, step));
    }
    const auto update = TRY(round_trip_of(*owner_, mean, step));
    run.lengths += std::sqrt(norm_squared(mean));
    for (std::size_t i = 0; i < n; ++i) {
      run.means[i] += mean[i];
      run.updates[i] += update[i];
      run.magnitudes[i] += std::abs(mean[i]);
    }
    return rt::Ok{};
  }

  std::vector<Bytes> states_of_owner() { return owner_->states(); }

 private:
  const Trial& trial_;
  TensorRequest request_;
  std::vector<std::unique_ptr<Tensor>> ranks_;
  std::unique_ptr<Tensor> owner_;
};

rt::Result<Run> run_of(const Trial& trial, const std::vector<Input>& gradients, std::uint64_t seed,
                       const sema::Claim* conserves) {
  const std::size_t n = gradients[0].values.size();
  Run run{std::vector<double>(n), std::vector<double>(n), std::vector<double>(n),
          std::vector<float>(n)};
  Plan plan(trial, gradients[0].shape, seed);
  CINCH_TRY(plan.open());
  for (std::uint64_t step = 0; step < kSumsSteps; ++step)
    CINCH_TRY(plan.step(gradients, step, run));
  if (conserves != nullptr) {
    const Bytes state = plan.states_of_owner()[conserves->state];
    std::memcpy(run.residual.data(), state.data(), std::min(state.size(), n * sizeof(float)));
  }
  return run;
}

// The figure of an input, and what it may be.
struct Distance {
  double figure = 0, bound = 0;
  std::string unit;
};

// By one of the claims of what carries sums.
rt::Result<Distance> distance_of(const Trial& trial, const sema::Claim& claim, const Input& input) {
  const std::vector<Input> gradients = variants_of(input, kSumsRanks);
  const bool conserves = claim.kind == ClaimKind::Conserves;
  const bool draws = draws_random_numbers(*trial.subject.ir) || trial.subject.carrier != nullptr;
  const std::size_t num_seeds = draws && !conserves ? kSumsSeeds : 1;
  Moments gains, losses;
  double largest_gain = 0, largest_loss = 0;
  for (std::size_t seed = 0; seed < num_seeds; ++seed) {
    const auto run = TRY(run_of(trial, gradients, trial.seed + seed, conserves ? &claim : nullptr));
    gains.add(run.gain());
    losses.add(conserves ? run.lost_of_magnitudes() : run.lost_of_lengths());
    largest_gain = std::max(largest_gain, std::abs(run.gain()));
    largest_loss = std::max(largest_loss, run.largest_loss());
  }
  if (conserves) return Distance{losses.mean(), kRounding, "lost beside the owner's residual"};
  if (claim.kind == ClaimKind::Unbiased) {
    const bool is_rounding = std::abs(gains.mean() - 1) <= kRounding;
    // A rare, large value that no seed has shown would come in one step.
    const double rare = largest_gain / static_cast<double>(kSumsSteps);
    const double errors = is_rounding ? 0 : std::abs(standard_errors(gains, 1, rare));
    return Distance{errors, kStandardErrors, "standard errors between updates and means"};
  }
  if (claim.kind == ClaimKind::Idempotent)
    return Distance{losses.mean(), kRounding, "of the means' lengths lost"};
  const auto claimed = TRY(trial.claimed(claim.numbers[0], input.shape, true));
  if (claim.kind == ClaimKind::AbsoluteError) {
    const double allowed = claimed * static_cast<double>(kSumsSteps);
    return Distance{largest_loss, allowed * (1 + kRounding), "lost of an element, all steps"};
  }
  const double error = claim.kind == ClaimKind::Contraction ? 1 - claimed : claimed;
  return Distance{losses.mean(), std::sqrt(error) + kRounding, "of the means' lengths lost"};
}

}  // namespace

// An idempotent carrier loses nothing of what is of its form already: the elements that all ranks
// have drawn, or what `finish` has made.
const sema::Claim* claim_about_sums(const Subject& subject) {
  const sema::Claim* const idempotent = subject.find_claim_of_sums(ClaimKind::Idempotent);
  if (subject.info().carrier.shares_draws && idempotent != nullptr) return idempotent;
  for (const ClaimKind kind : {ClaimKind::Conserves, ClaimKind::Unbiased, ClaimKind::Contraction,
                               ClaimKind::Variance, ClaimKind::AbsoluteError}) {
    if (const sema::Claim* claim = subject.find_claim_of_sums(kind)) return claim;
  }
  return subject.info().has_finish ? idempotent : nullptr;
}

Finding sums(const Trial& trial, const sema::Claim& claim) {
  Finding& finding = trial.begin("sums");
  const std::vector<Input> inputs = trial.usual_inputs();
  Sweep sweep(trial, inputs.size());
  double worst = -HUGE_VAL;
  while (finding.holds && sweep.goes_on()) {
    const Input& input = inputs[sweep.done() - 1];
    const auto distance = TRY_ON(trial, input, distance_of(trial, claim, input));
    finding.holds = distance.figure <= distance.bound;
    const double excess = distance.figure - distance.bound;
    if (finding.holds && excess <= worst) continue;
    worst = excess;
    finding.bound = distance.bound;
    finding.figure = distance.figure;
    finding.detail = fmt::format("{}, by `{}`, {} steps: {}", distance.unit, claim.text, kSumsSteps,
                                 describe(input));
    if (finding.holds) continue;
    finding.counterexample = shown_by_ranks(
        trial, variants_of(input, kSumsRanks),
        "outputs by this plan and by `--plan allgather` add up to different sums over the steps",
        "two_shot");
  }
  if (finding.holds) finding.cut = sweep.cut();
  return finding;
}

}  // namespace cinch::verify
