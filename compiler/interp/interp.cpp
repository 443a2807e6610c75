// Public functions of the interpreter: check inputs, change states all or not at all, mark
// non-finite gradients.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "compiler/interp/evaluator.h"
#include "runtime/core/mapped.h"
#include "runtime/core/numbers/scalar_eval.h"

namespace cinch::interp {
namespace {

using ir::FunctionKind;

bool is_non_finite(FunctionKind kind, const Inputs& inputs) {
  if (kind == FunctionKind::Decode) return inputs.is_non_finite;
  return std::any_of(inputs.gradient.begin(), inputs.gradient.end(),
                     [](float x) { return !std::isfinite(x); });
}

void require(bool holds, const char* message) {
  if (!holds) stop(rt::ErrorKind::InvalidArgument, message);
}

const ir::Function& find(const ir::Program& program, FunctionKind kind) {
  const ir::Function* function = program.find(kind);
  if (!function) {
    stop(rt::ErrorKind::InvalidArgument,
         fmt::format("the program has no {}", ir::function_kind_name(kind)));
  }
  return *function;
}

Array run_alone(const ir::Program& program, const ir::Function& function, const Inputs& inputs) {
  CallContext call(program, inputs);
  Evaluator evaluator(call, function, nullptr);
  evaluator.run();
  return evaluator.value(function.results.output);
}

std::vector<Array> run_inits(const ir::Program& program, const Inputs& inputs) {
  return mapped<Array>(program.state_inits,
                       [&](const ir::Function& init) { return run_alone(program, init, inputs); });
}

// Inputs with states given and shapes checked.
Inputs complete(const ir::Program& program, FunctionKind kind, Inputs inputs) {
  const rt::ProgramInfo& info = program.info;
  require(inputs.rows >= 0 && inputs.cols >= 0, "negative sizes");
  require(info.is_matrix || inputs.cols == 1, "a vector is [n, 1]");
  require(inputs.world >= 1 && inputs.worker < inputs.world, "worker is not below world");
  if (kind == FunctionKind::Decode) {
    if (inputs.is_non_finite) return inputs;
    require(inputs.fields.size() == info.wire.fields.size(), "not one array for each field");
    require(inputs.counts.size() == info.wire.counts.size(), "not one number for each count");
    return inputs;
  }
  require(static_cast<std::int64_t>(inputs.gradient.size()) == inputs.rows * inputs.cols,
          "the gradient has not rows * cols elements");
  if (inputs.states.empty()) inputs.states = run_inits(program, inputs);
  require(inputs.states.size() == info.states.size(), "not one array for each state");
  return inputs;
}

Outputs non_finite_outputs(const ir::Program& program, FunctionKind kind, const Inputs& inputs) {
  Outputs outputs{.states = inputs.states, .non_finite = true};
  if (kind == FunctionKind::Encode) return outputs;
  outputs.output = program.info.is_matrix ? make_matrix(kF32, inputs.rows, inputs.cols)
                                          : make_vector(kF32, inputs.rows * inputs.cols);
  for (std::uint64_t& x : outputs.output->bits) x = element_of_f32(std::nanf(""));
  return outputs;
}

Array stored(Array array) {
  for (std::uint64_t& x : array.bits) x = canonical_element(array.dtype, x);
  return array;
}

Outputs run_function(const ir::Program& program, FunctionKind kind, const Inputs& inputs,
                     Meeting* exchange, const Observer* observer = nullptr) {
  const ir::Function& function = find(program, kind);
  CallContext call(program, inputs);
  Evaluator evaluator(call, function, exchange);
  if (observer != nullptr) evaluator.show_to(*observer);
  evaluator.run();
  const ir::Results& results = function.results;
  Outputs outputs;
  if (results.output.is_valid()) outputs.output = stored(evaluator.value(results.output));
  for (ir::ValueId field : results.fields) outputs.fields.push_back(stored(evaluator.value(field)));
  for (ir::ValueId count : results.counts) {
    outputs.counts.push_back(static_cast<std::int64_t>(evaluator.value(count).bits[0]));
  }
  for (ir::ValueId state : results.states) outputs.states.push_back(stored(evaluator.value(state)));
  return outputs;
}

template <typename Body>
auto guarded(Body&& body) -> rt::Result<decltype(body())> {
  try {
    return body();
  } catch (const RunFailure& failure) {
    return tl::unexpected<rt::Error>(failure.error);
  }
}

}  // namespace

Inputs inputs_for(std::span<const float> gradient) {
  Inputs inputs;
  inputs.gradient.assign(gradient.begin(), gradient.end());
  inputs.rows = static_cast<std::int64_t>(gradient.size());
  return inputs;
}

rt::Result<Outputs> run(const ir::Program& program, FunctionKind kind, const Inputs& inputs,
                        Meeting* meeting) {
  return guarded([&] {
    const Inputs all = complete(program, kind, inputs);
    if (is_non_finite(kind, all)) return non_finite_outputs(program, kind, all);
    return run_function(program, kind, all, meeting);
  });
}

rt::Result<Outputs> run_observed(const ir::Program& program, FunctionKind kind,
                                 const Inputs& inputs, const Observer& observer) {
  return guarded([&] {
    const Inputs all = complete(program, kind, inputs);
    if (is_non_finite(kind, all)) return non_finite_outputs(program, kind, all);
    return run_function(program, kind, all, nullptr, &observer);
  });
}

rt::Result<std::vector<Outputs>> run_ranks(const ir::Program& program, FunctionKind kind,
                                           std::vector<Inputs> ranks) {
  Exchange exchange(ranks.size());
  for (std::size_t w = 0; w < ranks.size(); ++w) {
    ranks[w].worker = static_cast<std::uint32_t>(w);
    ranks[w].world = static_cast<std::uint32_t>(ranks.size());
  }
  const bool is_bad = std::any_of(ranks.begin(), ranks.end(),
                                  [&](const Inputs& r) { return is_non_finite(kind, r); });
  std::vector<rt::Result<Outputs>> results(ranks.size(), Outputs{});
  std::vector<std::thread> threads;
  threads.reserve(ranks.size());
  for (std::size_t w = 0; w < ranks.size(); ++w) {
    threads.emplace_back([&, w] {
      results[w] = guarded([&] {
        const Inputs all = complete(program, kind, ranks[w]);
        if (is_bad) return non_finite_outputs(program, kind, all);
        return run_function(program, kind, all, &exchange);
      });
      exchange.leave();
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<Outputs> outputs;
  std::optional<rt::Error> error;
  for (rt::Result<Outputs>& result : results) {
    // An error of a rank that only lost the others is not the cause.
    if (!result && (!error || error->kind == rt::ErrorKind::Cancelled)) error = result.error();
    if (result) outputs.push_back(std::move(*result));
  }
  if (error) return tl::unexpected<rt::Error>(*error);
  return outputs;
}

rt::Result<std::vector<Array>> initial_states(const ir::Program& program, const Inputs& inputs) {
  return guarded([&] { return run_inits(program, inputs); });
}

rt::Result<Array> evaluate_constant(const ir::Program& program, const ir::Function& function) {
  return guarded([&] { return run_alone(program, function, {}); });
}

}  // namespace cinch::interp
