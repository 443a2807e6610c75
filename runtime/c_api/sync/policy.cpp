// Policies of the C API.
#include <deque>
#include <random>
#include <thread>

#include "runtime/c_api/calls.h"
#include "runtime/c_api/sync/sync_handles.h"
#include "runtime/plan/plan.h"
#include "runtime/planner/policy.h"

// Named as the C API names them.
// NOLINTBEGIN(readability-identifier-naming)
struct cinch_policy {
  struct Program {
    std::string name;
    std::vector<std::string> texts;     // of bindings
    std::vector<const char*> bindings;  // the texts
  };
  std::vector<Program> programs;
  std::deque<std::string> plans;             // texts of choices
  std::vector<cinch_policy_choice> choices;  // by tensor
};
// NOLINTEND(readability-identifier-naming)

namespace cinch::c_api {
namespace {

constexpr std::int32_t kMostDims = 64;

CallResult<rt::PolicyTensor> policy_tensor(const cinch_policy_tensor* tensors, std::size_t index) {
  const auto given = TRY(read_struct(entry(tensors, index), sizeof *tensors, "tensor"));
  if (given.name == nullptr) return invalid("a tensor has no name");
  const bool has_shape = given.num_dims == 0 || given.shape != nullptr;
  if (given.num_dims < 0 || given.num_dims > kMostDims || !has_shape) {
    return invalid(std::string(given.name) + ": it has no shape");
  }
  std::int64_t elems = 1;
  for (std::int32_t d = 0; d < given.num_dims; ++d) {
    if (given.shape[d] < 0 || __builtin_mul_overflow(elems, given.shape[d], &elems)) {
      return invalid(std::string(given.name) + ": dimension " + std::to_string(d) + " is " +
                     std::to_string(given.shape[d]));
    }
  }
  return rt::PolicyTensor{given.name, {given.shape, given.shape + given.num_dims}};
}

std::unique_ptr<cinch_policy> policy_of(const rt::PolicyResult& result, std::size_t num_tensors) {
  auto made = std::make_unique<cinch_policy>();
  for (const rt::PolicyCodec& codec : result.codecs) {
    cinch_policy::Program& program = made->programs.emplace_back();
    program.name = codec.program;
    for (const auto& [name, value] : codec.values)
      program.texts.emplace_back(name).append("=").append(value);
  }
  for (cinch_policy::Program& program : made->programs) {
    for (const std::string& text : program.texts) program.bindings.push_back(text.c_str());
  }
  made->choices.assign(num_tensors,
                       {sizeof(cinch_policy_choice), CINCH_OFF, 0, nullptr, std::uint64_t{0}});
  for (const rt::PolicyRoute& route : result.routes) made->plans.push_back(route.plan);
  for (const rt::PolicyResult::Sent& sent : result.sent) {
    const bool is_exact = sent.codec == rt::kDense;
    made->choices[sent.tensor].program =
        is_exact ? CINCH_EXACT : static_cast<std::int32_t>(sent.codec);
    made->choices[sent.tensor].priority = sent.priority;
    const std::string& plan = made->plans[sent.route];
    if (!plan.empty()) made->choices[sent.tensor].plan = plan.c_str();
    made->choices[sent.tensor].piece_bytes = result.routes[sent.route].piece_bytes;
  }
  return made;
}

CallStatus apply(const char* rules, const cinch_policy_tensor* tensors, std::size_t num_tensors,
                 cinch_policy** policy) {
  if (policy == nullptr) return invalid("policy is null");
  if (num_tensors > 0 && tensors == nullptr) {
    return invalid("tensors is null");
  }
  std::vector<rt::PolicyTensor> named;
  for (std::size_t i = 0; i < num_tensors; ++i) {
    auto tensor = policy_tensor(tensors, i);
    if (!tensor) return fail_at(i, std::move(tensor.error()));
    named.push_back(std::move(*tensor));
  }
  const auto parsed =
      TRY(rules == nullptr ? rt::Result<rt::Policy>(rt::usual_policy()) : rt::parse_policy(rules));
  *policy = policy_of(rt::apply_policy(parsed, named), num_tensors).release();
  return rt::Ok{};
}

CallStatus check_place(const cinch_policy* policy, std::size_t index, std::size_t count,
                       const char* what) {
  if (policy == nullptr) return invalid("policy is null");
  return check_index(index, count, what);
}

}  // namespace
}  // namespace cinch::c_api

using namespace cinch::c_api;

cinch_status cinch_policy_apply(const char* rules, const cinch_policy_tensor* tensors,
                                size_t num_tensors, cinch_policy** policy, cinch_error* error) {
  return guarded(error, [&] { return apply(rules, tensors, num_tensors, policy); });
}

void cinch_policy_release(cinch_policy* policy) {
  delete policy;
}

size_t cinch_policy_num_programs(const cinch_policy* policy) {
  return policy == nullptr ? 0 : policy->programs.size();
}

cinch_status cinch_policy_get_program(const cinch_policy* policy, size_t index,
                                      cinch_policy_program* program, cinch_error* error) {
  return guarded(error, [&]() -> CallStatus {
    const std::size_t count = cinch_policy_num_programs(policy);
    CINCH_TRY(check_place(policy, index, count, "program"));
    const cinch_policy::Program& of = policy->programs[index];
    const cinch_policy_program told{sizeof told, of.name.c_str(), of.bindings.data(),
                                    of.bindings.size()};
    return write_struct(told, program, "program");
  });
}

cinch_status cinch_policy_get_choice(const cinch_policy* policy, size_t tensor,
                                     cinch_policy_choice* choice, cinch_error* error) {
  return guarded(error, [&]() -> CallStatus {
    const std::size_t count = policy == nullptr ? 0 : policy->choices.size();
    CINCH_TRY(check_place(policy, tensor, count, "tensor"));
    return write_struct(policy->choices[tensor], choice, "choice");
  });
}

namespace cinch::c_api {
// The programs of one rank; see sync_handles.h.

namespace {

// For ranks on an emulated GPU, which only one of them may use at a time.
std::mutex& emulated_turns() {
  static auto* const kTurns = new std::mutex;
  return *kTurns;
}

CallStatus add_on_cpu(const cinch_program& program, RankPrograms& to) {
  if (program.loaded == nullptr) {
    return invalid("a program for a GPU, the rank computes on the CPU");
  }
  to.on_cpu.push_back(program.loaded);
  to.images.emplace_back(program.loaded, &program.loaded->image());
  return rt::Ok{};
}

CallStatus add_on_gpu(const cinch_program& program, std::int32_t device_number,
                      rt::SyncDevice& device, RankPrograms& to) {
  std::unique_lock<std::mutex> turn;
  if (device.turns != nullptr) turn = std::unique_lock(*device.turns);
  auto loaded = TRY(load_on_gpu(program, device_number));
  to.images.emplace_back(loaded, &loaded->image());
  device.programs.push_back(std::move(loaded));
  return rt::Ok{};
}

CallResult<RankPrograms> programs_on_gpu(const cinch_program* const* given, std::size_t count,
                                         const cinch_sync_options& options) {
  const auto device = TRY(open_gpu(options.device_number));
  RankPrograms programs;
  rt::SyncDevice& made = programs.device.emplace();
  made.stream = static_cast<rt::GpuStream>(options.stream);
  made.has_tensors = true;
  if (device->driver().allocates_apart) made.turns = &emulated_turns();
  for (std::size_t i = 0; i < count; ++i) {
    CINCH_TRY(add_on_gpu(*given[i], options.device_number, made, programs));
  }
  if (count > 0) made.plain = made.programs[0];
  if (count > 0 || options.plain == nullptr) return programs;
  std::unique_lock<std::mutex> turn;
  if (made.turns != nullptr) turn = std::unique_lock(*made.turns);
  made.plain = TRY(load_on_gpu(*options.plain, options.device_number));
  return programs;
}

using Samples = std::vector<rt::ConstTensorView>;

CallResult<Samples> read_samples(const cinch_tensor* given, const rt::PlanRequest& request,
                                 const std::vector<std::size_t>& places) {
  Samples samples;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const auto view = tensor_view(given, places[i]);
    if (!view) return fail_at(places[i], view.error());
    if (view->num_elems != request.tensors[i].num_elems()) {
      return fail_at(places[i],
                     {CINCH_INVALID_ARGUMENT, "a sample of another size than its tensor"});
    }
    samples.emplace_back(view->data, view->dtype, view->num_elems);
  }
  return samples;
}

}  // namespace

CallResult<RankPrograms> rank_programs(const cinch_program* const* given, std::size_t count,
                                       const cinch_sync_options& options) {
  if (count > 0 && given == nullptr) return invalid("programs is null");
  for (std::size_t i = 0; i < count; ++i) {
    if (given[i] == nullptr) return invalid("a program is null");
  }
  if (options.device == CINCH_CUDA) return programs_on_gpu(given, count, options);
  if (options.device != CINCH_CPU) {
    return fail(CINCH_UNAVAILABLE, "device " + std::to_string(options.device));
  }
  RankPrograms programs;
  for (std::size_t i = 0; i < count; ++i) {
    CINCH_TRY(add_on_cpu(*given[i], programs));
  }
  return programs;
}

CallStatus add_carrier(const cinch_program& program, const cinch_sync_options& options,
                       RankPrograms& to) {
  const auto carrier = TRY(carrier_of(program));
  if (to.device) return add_on_gpu(*carrier, options.device_number, *to.device, to);
  return add_on_cpu(*carrier, to);
}

// Plan "auto" of the C API; see sync_handles.h.

constexpr double kMostReadySeconds = 3600;

CallResult<rt::AutoPlan> choose_plan(const cinch_sync_options& options, rt::PlanRequest request,
                                     const std::vector<std::size_t>& given, rt::SyncOptions session,
                                     rt::Transport& transport) {
  rt::AutoPlanInputs inputs;
  std::vector<std::vector<float>> memory;
  if (options.samples == nullptr) {
    // Their distribution affects only the measurements.
    std::minstd_rand random(1);
    std::normal_distribution<float> normal;
    for (const rt::PlanTensor& tensor : request.tensors) {
      auto& values = memory.emplace_back(static_cast<std::size_t>(tensor.num_elems()));
      std::ranges::generate(values, [&] { return normal(random); });
    }
    inputs.gradients = {memory.begin(), memory.end()};
  } else {
    inputs.gradients = TRY(read_samples(options.samples, request, given));
  }
  if (options.piece_bytes > 0) inputs.space.piece_bytes = {options.piece_bytes};
  if (request.lengths != rt::LengthPolicy::Auto) inputs.space.lengths = {request.lengths};
  inputs.request = std::move(request);
  inputs.session = std::move(session);
  if (inputs.session.device) inputs.session.device->has_tensors = false;  // samples are not there
  inputs.step = options.first_step;
  for (const std::size_t place : given) {
    if (options.ready_seconds == nullptr) break;
    const double ready = options.ready_seconds[place];
    const bool is_time = ready >= 0 && ready <= kMostReadySeconds;
    if (!is_time) {
      return fail_at(place, {CINCH_INVALID_ARGUMENT,
                             "a tensor is ready 0 to 3600 seconds behind a step's begin"});
    }
    inputs.ready_seconds.push_back(ready);
  }
  if (inputs.session.threads == 0) {
    inputs.session.threads = std::max(1U, std::thread::hardware_concurrency());
  }
  return TRY(rt::choose_auto_plan(inputs, transport));
}

}  // namespace cinch::c_api
