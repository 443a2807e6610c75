// Bodies of rank_runs.h.
#include "tests/programs/harness/rank_runs.h"
#include "tests/programs/harness/inputs.h"

#include <fmt/format.h>

#include <mutex>

#include "codegen/jit/library.h"
#include "compiler/interp/interp.h"
#include "runtime/call/payload_assembly.h"
#include "runtime/collective/rank_meeting.h"
#include "runtime/core/numbers/floats.h"

namespace cinch::testing {
namespace {

std::string text_of(const rt::Error& error) {
  return fmt::format("{}: {}", rt::error_kind_name(error.kind), error.message);
}

// A session holds no inputs.
std::vector<std::vector<std::uint8_t>> packed(const rt::ProgramInfo& info,
                                              const std::vector<interp::Array>& states) {
  std::vector<std::vector<std::uint8_t>> bytes;
  bytes.reserve(states.size());
  for (std::size_t i = 0; i < states.size(); ++i) {
    bytes.emplace_back();
    if (!info.states[i].is_input) bytes.back() = rt::pack_elements(states[i].dtype, states[i].bits);
  }
  return bytes;
}

interp::Inputs inputs_of(const rt::SessionOptions& options, std::uint32_t rank,
                         std::uint64_t step) {
  interp::Inputs inputs;
  inputs.call_extern = codegen::call_extern;
  inputs.rows = options.rows;
  inputs.cols = options.cols;
  inputs.draw = {options.seed, step, options.tensor, options.piece};
  inputs.worker = rank;
  inputs.world = options.world;
  inputs.machine_ranks = options.machine_ranks;
  return inputs;
}

rt::SessionOptions options_of(const RankCase& one_case, std::uint32_t rank) {
  rt::SessionOptions options = one_case.options;
  options.worker = rank;
  return options;
}

}  // namespace

RankResults interpret_ranks(const ir::Program& program, const RankCase& one_case) {
  const std::uint32_t world = one_case.options.world;
  std::vector<std::vector<interp::Array>> states(world);
  for (std::uint32_t rank = 0; rank < world; ++rank) {
    states[rank] = interp::initial_states(program, inputs_of(one_case.options, rank, 0)).value();
    give_inputs(program.info, states[rank]);
  }
  RankResults results;
  for (std::uint64_t step = 0; step < one_case.gradients.size(); ++step) {
    std::vector<interp::Inputs> inputs;
    for (std::uint32_t rank = 0; rank < world; ++rank) {
      inputs.push_back(inputs_of(one_case.options, rank, step));
      inputs.back().gradient = one_case.gradients[step][rank];
      inputs.back().states = states[rank];
    }
    const auto outputs = interp::run_ranks(program, ir::FunctionKind::Sync, std::move(inputs));
    std::vector<RankResult>& of_step = results.emplace_back(world);
    for (std::uint32_t rank = 0; rank < world; ++rank) {
      if (outputs) {
        of_step[rank].update = interp::to_floats(*(*outputs)[rank].output);
        if (!(*outputs)[rank].non_finite) states[rank] = (*outputs)[rank].states;
      } else {
        of_step[rank].error = text_of(outputs.error());
      }
      of_step[rank].states = packed(program.info, states[rank]);
    }
  }
  return results;
}

RankResults run_ranks_on_cpu(const std::shared_ptr<const rt::LoadedProgram>& program,
                             const RankCase& one_case) {
  const std::uint32_t world = one_case.options.world;
  std::vector<rt::Session> sessions;
  for (std::uint32_t rank = 0; rank < world; ++rank) {
    sessions.push_back(rt::Session::open(program, options_of(one_case, rank)).value());
  }
  RankResults results;
  for (std::uint64_t step = 0; step < one_case.gradients.size(); ++step) {
    std::vector<RankResult>& of_step = results.emplace_back(world);
    rt::run_rank_threads(world, nullptr, [&](std::uint32_t rank, rt::RankExchange& ranks) {
      RankResult& result = of_step[rank];
      const std::vector<float>& gradient = one_case.gradients[step][rank];
      result.update.assign(gradient.size(), -1234.5f);
      give_inputs(sessions[rank]).value();
      const auto status = sessions[rank].sync(gradient, result.update, step, ranks);
      if (!status) {
        result.error = text_of(status.error());
        result.update.clear();
      }
      for (std::uint32_t i = 0; i < sessions[rank].info().states.size(); ++i) {
        const auto state = sessions[rank].state(i).value();
        result.states.emplace_back(state.begin(), state.end());
      }
    });
  }
  return results;
}

namespace {

// A rank's session on the GPU, with memory of its own.
class GpuRank {
 public:
  GpuRank(const std::shared_ptr<const rt::GpuProgram>& program, const rt::SessionOptions& options,
          const std::optional<rt::GpuTuning>& tuning)
      : device_(program->device()), session_(open(program, options, tuning)) {
    const auto bytes =
        static_cast<std::size_t>(std::max<std::int64_t>(session_.num_elems(0), 1)) * 4;
    gradient_ = rt::GpuMemory::allocate(device_, bytes).value();
    update_ = rt::GpuMemory::allocate(device_, bytes).value();
    weights_ = rt::GpuMemory::allocate(device_, bytes).value();
  }

  RankResult step(const std::vector<float>& gradient, std::uint64_t step, rt::RankExchange& ranks) {
    RankResult result;
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(gradient.data());
    device_->write(gradient_.address(), {bytes, gradient.size() * 4}, nullptr).value();
    const auto elems = static_cast<std::int64_t>(gradient.size());
    give_inputs(elems);
    const auto pointer = [](rt::GpuAddress address) {
      return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr)
    };
    const rt::GpuAddress to = update_.address();
    const auto status = session_.sync(0, {pointer(gradient_.address()), kF32, elems},
                                      {pointer(to), kF32, elems}, step, ranks);
    if (status) {
      result.update.resize(gradient.size());
      auto* out = reinterpret_cast<std::uint8_t*>(result.update.data());
      device_->read({out, gradient.size() * 4}, to, nullptr).value();
    } else {
      result.error = text_of(status.error());
    }
    result.states = session_.states(0, nullptr).value();
    for (std::size_t i = 0; i < result.states.size(); ++i) {
      if (session_.info().states[i].is_input) result.states[i].clear();
    }
    return result;
  }

 private:
  void give_inputs(std::int64_t elems) {
    const std::vector<float>& weights = made_up_weights(elems);
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(weights.data());
    device_->write(weights_.address(), {bytes, weights.size() * 4}, nullptr).value();
    const void* const at =
        reinterpret_cast<void*>(weights_.address());  // NOLINT(performance-no-int-to-ptr)
    session_.make_up_inputs(0, {at, kF32, elems}).value();
  }

  static rt::GpuSession open(const std::shared_ptr<const rt::GpuProgram>& program,
                             const rt::SessionOptions& given,
                             const std::optional<rt::GpuTuning>& tuning) {
    rt::GpuSessionOptions options;
    options.tuning = tuning;
    options.tensors = {{given.rows, given.cols, given.tensor, given.piece}};
    options.world = given.world;
    options.machine_ranks = given.machine_ranks;
    options.worker = given.worker;
    options.seed = given.seed;
    return rt::GpuSession::open(program, options).value();
  }

  std::shared_ptr<const rt::GpuDevice> device_;
  rt::GpuSession session_;
  rt::GpuMemory gradient_, update_, weights_;
};

}  // namespace

RankResults run_ranks_on_gpu(const std::shared_ptr<const rt::GpuProgram>& program,
                             const RankCase& one_case, const std::optional<rt::GpuTuning>& tuning) {
  const std::uint32_t world = one_case.options.world;
  std::vector<std::unique_ptr<GpuRank>> sessions;
  for (std::uint32_t rank = 0; rank < world; ++rank) {
    sessions.push_back(std::make_unique<GpuRank>(program, options_of(one_case, rank), tuning));
  }
  RankResults results;
  std::mutex device;
  for (std::uint64_t step = 0; step < one_case.gradients.size(); ++step) {
    std::vector<RankResult>& of_step = results.emplace_back(world);
    rt::run_rank_threads(world, nullptr, [&](std::uint32_t rank, rt::RankExchange& ranks) {
      rt::RankTurn turn(ranks, device);
      of_step[rank] = sessions[rank]->step(one_case.gradients[step][rank], step, turn);
    });
  }
  return results;
}

std::string compare(const RankResults& expected, const RankResults& found) {
  for (std::size_t step = 0; step < expected.size(); ++step) {
    for (std::size_t rank = 0; rank < expected[step].size(); ++rank) {
      const RankResult &a = expected[step][rank], &b = found[step][rank];
      const std::string place = fmt::format("step {}, rank {}: ", step, rank);
      if (a.error.empty() != b.error.empty()) {
        return fmt::format("{}error '{}' and '{}'", place, a.error, b.error);
      }
      if (!same_bits(a.update, b.update)) return place + "another update";
      if (a.states != b.states) return place + "other states";
    }
  }
  return {};
}

std::string find_disagreement(const RankResults& results) {
  for (std::size_t step = 0; step < results.size(); ++step) {
    for (const RankResult& rank : results[step]) {
      if (rank.error.empty() != results[step][0].error.empty() ||
          !same_bits(rank.update, results[step][0].update)) {
        return fmt::format("step {}: ranks differ", step);
      }
    }
  }
  return {};
}

}  // namespace cinch::testing
