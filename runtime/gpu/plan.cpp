// Body of program.h.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/core/check.h"
#include "runtime/gpu/plan.h"
#include "runtime/image/validate.h"

namespace cinch::rt {
namespace {

constexpr std::size_t kMaxLaunches = 65536;
// Limit of visited steps: loops may contain nothing that is launched.
constexpr std::size_t kMaxSteps = 16 * kMaxLaunches;

class Planner {
 public:
  Planner(const ProgramImage& image, const MostRounds& most_rounds, bool folds,
          std::vector<PlannedLaunch>& out, std::vector<PlannedBound>& bounds)
      : image_(image), most_rounds_(most_rounds), folds_(folds), out_(out), bounds_(bounds) {}

  Status add(const std::vector<Step>& steps) {
    for (const Step& step : steps) {
      CINCH_TRY(add(step));
    }
    return Ok{};
  }

 private:
  Status add(const Step& step) {
    if (++num_steps_ > kMaxSteps) return too_long();
    switch (step.kind) {
      case StepKind::Launch:
        return kernel(step.index);
      case StepKind::Zero:
        return service(GpuService::Zero, step.index);
      case StepKind::Copy:
        return service(GpuService::Copy, step.index, step.index2);
      case StepKind::CheckHost:
        if (conditions_.empty()) return Ok{};
        return service(GpuService::Check, slot(step.expr), step.index);
      case StepKind::If: {
        Status status = under({.buffer = step.index, .wanted = 1}, step.body);
        return status ? under({.buffer = step.index, .wanted = 0}, step.orelse) : status;
      }
      case StepKind::While:
        return add_while(step);
      case StepKind::For:
        return add_for(step);
      case StepKind::Collective:
        return launch({.arg0 = step.index,
                       .arg1 = step.index2,
                       .meeting = PlannedMeeting::Exchange,
                       .collective = step.collective,
                       .scalars = step.scalars,
                       .message = step.message,
                       .group = step.expr,
                       .stride = step.expr2});
    }
    CINCH_BUG("a step of an unknown kind");
  }

  tl::unexpected<Error> too_long() const {
    return fail(ErrorKind::Unavailable,
                fmt::format("{}: its loops take more than {} launches on a GPU", image_.info.name,
                            kMaxLaunches));
  }

  Status launch(PlannedLaunch made) {
    if (out_.size() >= kMaxLaunches) return too_long();
    made.conditions = conditions_;
    out_.push_back(std::move(made));
    return Ok{};
  }

  Status kernel(std::uint32_t index) {
    if (!folds_ || !image_.kernels[index].cuda.is_foldable) return launch({.index = index});
    const auto step = [&](GpuFold part) {
      return launch({.index = index, .value = static_cast<std::int64_t>(part)});
    };
    Status status = step(GpuFold::Folds);
    return status ? step(GpuFold::IsFolded) : status;
  }

  Status service(GpuService which, std::uint32_t arg0, std::uint32_t arg1 = kNoIndex,
                 std::int64_t value = 0) {
    return launch({.is_service = true,
                   .index = static_cast<std::uint32_t>(which),
                   .arg0 = arg0,
                   .arg1 = arg1,
                   .value = value});
  }

  Status under(const GpuCondition& condition, const std::vector<Step>& steps) {
    if (steps.empty()) return Ok{};
    return within(condition, [&] { return add(steps); });
  }

  template <typename Body>
  Status within(const GpuCondition& condition, const Body& body) {
    if (conditions_.size() >= kMaxGpuConditions) {
      return fail(ErrorKind::Unavailable,
                  fmt::format("{}: branches and loops {} deep in one another: on a GPU at most {}",
                              image_.info.name, conditions_.size() + 1, kMaxGpuConditions));
    }
    conditions_.push_back(condition);
    Status status = body();
    conditions_.pop_back();
    return status;
  }

  // Adds one more round of a loop.
  template <typename Body>
  Status count_round(const Body& body) {
    if (++num_steps_ > kMaxSteps) return too_long();
    return body();
  }
  template <typename Body>
  Status in_round(const GpuCondition& condition, const Body& body) {
    return count_round([&] { return within(condition, body); });
  }

  std::uint32_t slot(HostExprId expr) const {
    const auto found = std::ranges::find(image_.size_exprs, expr);
    CINCH_CHECK(found != image_.size_exprs.end(), "a loop's bound is not among the sizes");
    return static_cast<std::uint32_t>(found - image_.size_exprs.begin());
  }

  static GpuCondition round(std::int64_t i, std::uint32_t end, std::uint32_t begin = kNoIndex) {
    return {kRoundCondition, static_cast<std::uint32_t>(i), end, begin};
  }

  Result<std::int64_t> rounds_of(HostExprId begin, HostExprId end) {
    auto rounds = TRY(most_rounds_(begin, end));
    // Every round takes at least one launch.
    if (rounds > static_cast<std::int64_t>(kMaxLaunches)) {
      const auto name = [&](std::uint32_t i) { return image_.info.params[i].name; };
      return fail(
          ErrorKind::Unavailable,
          fmt::format("{}: a loop up to `{}` may have {} rounds at some step; on a GPU at "
                      "most {} are possible",
                      image_.info.name, image_.info.exprs->print(end, name), rounds, kMaxLaunches));
    }
    bounds_.push_back({begin, end, rounds});
    return rounds;
  }

  // Once the flag that the condition computes is 0 it stays 0: later rounds are skipped by it. In
  // the first round it still holds the value of an earlier loop.
  Status add_while(const Step& step) {
    const auto rounds = TRY(rounds_of({}, step.expr));
    for (std::int64_t i = 0; i < rounds; ++i) {
      const Status status = in_round(round(i, slot(step.expr)), [&] {
        Status done = i == 0 ? add(step.cond) : under({step.index, 1}, step.cond);
        return done ? under({step.index, 1}, step.body) : done;
      });
      if (!status) return status;
    }
    return Ok{};
  }

  Status add_for(const Step& step) {
    const auto rounds = TRY(rounds_of(step.expr, step.expr2));
    const std::uint32_t first = slot(step.expr);
    const auto add_round = [&](std::int64_t i) {
      Status done = service(GpuService::SetRound, step.index, first, i);
      return done ? add(step.body) : done;
    };
    const HostExprPool& pool = *image_.info.exprs;
    const bool are_fixed = pool.is_const(step.expr) && pool.is_const(step.expr2);
    for (std::int64_t i = 0; i < rounds; ++i) {
      const Status status =
          are_fixed ? count_round([&] { return add_round(i); })
                    : in_round(round(i, slot(step.expr2), first), [&] { return add_round(i); });
      if (!status) return status;
    }
    return Ok{};
  }

  const ProgramImage& image_;
  const MostRounds& most_rounds_;
  const bool folds_;
  std::vector<PlannedLaunch>& out_;
  std::vector<PlannedBound>& bounds_;
  std::vector<GpuCondition> conditions_;
  std::size_t num_steps_ = 0;  // including rounds
};

}  // namespace

Status plan_steps(const ProgramImage& image, const std::vector<Step>& steps,
                  const MostRounds& most_rounds, bool folds, std::vector<PlannedLaunch>& out,
                  std::vector<PlannedBound>& bounds) {
  return Planner(image, most_rounds, folds, out, bounds).add(steps);
}

std::vector<GpuBatch> batch_launches(const std::vector<PlannedLaunch>& steps,
                                     const std::function<bool(const PlannedLaunch&)>& is_narrow) {
  std::vector<GpuBatch> batches;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const bool narrow = is_narrow(steps[i]);
    if (narrow && !batches.empty() && batches.back().is_narrow) {
      ++batches.back().size;
    } else {
      batches.push_back({i, 1, narrow});
    }
  }
  return batches;
}

GpuStep gpu_step(const PlannedLaunch& planned) {
  GpuStep step{.value = planned.value,
               .kernel = planned.index,
               .arg0 = planned.arg0,
               .arg1 = planned.arg1,
               .is_guarded = planned.is_guarded ? 1u : 0u,
               .num_conditions = static_cast<std::uint32_t>(planned.conditions.size())};
  std::ranges::copy(planned.conditions, step.conditions);
  return step;
}

LaunchedKernel launched_kernel(const ProgramImage& image, const GpuKernels& kernels,
                               const PlannedLaunch& first, bool is_narrow) {
  if (!is_narrow && !first.is_service && !first.is_fold()) {
    const KernelInfo& kernel = image.kernels[first.index];
    return {kernels.kernel(first.index), kernel.symbol, kernel.cuda.block_threads,
            kernel.cuda.shared_bytes};
  }
  if (!is_narrow && first.is_service && is_plain_service(static_cast<GpuService>(first.index))) {
    return {kernels.serve(), kGpuServeSymbol, kGpuServiceThreads, 0};
  }
  return {kernels.steps(), kGpuStepsSymbol, image.gpu_steps_threads, image.gpu_steps_shared_bytes};
}

GpuKernels::~GpuKernels() {
  if (module_ == nullptr) return;
  const GpuDevice::Scope scope(device_);
  device_.freeing().unload(module_);
}

Status GpuKernels::find(const std::string& symbol, GpuFunction& function) const {
  const GpuCode code = device_.driver().module_function(&function, module_, symbol.c_str());
  if (code == kGpuNotFound)
    return fail(ErrorKind::CorruptFile, "image: its binary has no kernel " + symbol);
  return device_.status(code, "looking a kernel up");
}

Status GpuKernels::find_all(const ProgramImage& image) {
  for (const KernelInfo& kernel : image.kernels) {
    GpuFunction& function = kernels_.emplace_back();
    if (kernel.cuda.is_single_block) continue;
    CINCH_TRY(find(kernel.symbol, function));
  }
  CINCH_TRY(find(kGpuServeSymbol, serve_));
  return find(kGpuStepsSymbol, steps_);
}

Result<std::unique_ptr<const GpuKernels>> GpuKernels::load(const GpuDevice& device,
                                                           const ProgramImage& image) {
  std::unique_ptr<GpuKernels> kernels(new GpuKernels(device));
  const GpuDevice::Scope scope(device);
  const BesideCaptures beside(device.driver());
  const GpuCode code = device.driver().module_load(&kernels->module_, image.binary.data());
  CINCH_TRY(device.status(code, "loading kernels"));
  CINCH_TRY(kernels->find_all(image));
  return kernels;
}

GpuProgram::GpuProgram(std::shared_ptr<const GpuDevice> device, ProgramImage image)
    : device_(std::move(device)), image_(std::move(image)) {}

Result<std::shared_ptr<const GpuProgram>> GpuProgram::load(std::shared_ptr<const GpuDevice> device,
                                                           ProgramImage image,
                                                           FindBetterCode find_better) {
  CINCH_TRY(validate_image(image));
  const std::string wanted = "cuda:" + device->arch();
  if (image.target != wanted) {
    return fail(ErrorKind::Unavailable, fmt::format("an image for {}; the device {} takes {}",
                                                    image.target, device->name(), wanted));
  }
  auto kernels = TRY(GpuKernels::load(*device, image));
  std::shared_ptr<GpuProgram> program(new GpuProgram(std::move(device), std::move(image)));
  program->kernels_.push_back(std::move(kernels));
  program->search_ = BetterCodeSearch(std::move(find_better));
  return program;
}

const GpuKernels& GpuProgram::kernels() const {
  const std::lock_guard lock(mutex_);
  // Code that cannot be loaded is not an error: the present code serves.
  const auto better = search_.look(image_);
  if (better && has_object(*better)) {
    if (auto kernels = GpuKernels::load(*device_, *better)) kernels_.push_back(std::move(*kernels));
  }
  return *kernels_.back();
}

}  // namespace cinch::rt
