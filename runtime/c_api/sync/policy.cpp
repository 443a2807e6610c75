// Policies of the C API.
#include "runtime/planner/policy.h"

#include <string>
#include <vector>

#include "runtime/c_api/cinch_sync.h"
#include "runtime/c_api/support.h"
#include "runtime/plan/plan.h"

// Named as the C API names them.
// NOLINTBEGIN(readability-identifier-naming)
struct cinch_policy {
  struct Program {
    std::string name;
    std::vector<std::string> texts;     // of bindings
    std::vector<const char*> bindings;  // the texts
  };
  std::vector<Program> programs;
  std::vector<cinch_policy_choice> choices;  // by tensor
};
// NOLINTEND(readability-identifier-naming)

namespace cinch::c_api {
namespace {

constexpr std::int32_t kMostDims = 64;

CallResult<rt::PolicyTensor> policy_tensor(const cinch_policy_tensor* tensors, std::size_t index) {
  const auto given = read_struct(entry(tensors, index), sizeof *tensors, "tensor");
  CINCH_TRY(given);
  if (given->name == nullptr) return fail(CINCH_INVALID_ARGUMENT, "a tensor has no name");
  const bool has_shape = given->num_dims == 0 || given->shape != nullptr;
  if (given->num_dims < 0 || given->num_dims > kMostDims || !has_shape) {
    return fail(CINCH_INVALID_ARGUMENT, std::string(given->name) + ": it has no shape");
  }
  std::int64_t elems = 1;
  for (std::int32_t d = 0; d < given->num_dims; ++d) {
    if (given->shape[d] < 0 || __builtin_mul_overflow(elems, given->shape[d], &elems)) {
      return fail(CINCH_INVALID_ARGUMENT, std::string(given->name) + ": dimension " +
                                              std::to_string(d) + " is " +
                                              std::to_string(given->shape[d]));
    }
  }
  return rt::PolicyTensor{given->name, {given->shape, given->shape + given->num_dims}};
}

cinch_policy::Program program_of(const rt::PolicyCodec& codec) {
  cinch_policy::Program program{codec.program, {}, {}};
  for (const auto& [name, value] : codec.values) {
    program.texts.emplace_back(name).append("=").append(value);
  }
  return program;
}

std::unique_ptr<cinch_policy> policy_of(const rt::PolicyResult& result, std::size_t num_tensors) {
  auto made = std::make_unique<cinch_policy>();
  for (const rt::PolicyCodec& codec : result.codecs) made->programs.push_back(program_of(codec));
  for (cinch_policy::Program& program : made->programs) {
    for (const std::string& text : program.texts) program.bindings.push_back(text.c_str());
  }
  made->choices.assign(num_tensors, {sizeof(cinch_policy_choice), CINCH_OFF, 0});
  for (const rt::PolicyResult::Sent& sent : result.sent) {
    const bool is_exact = sent.codec == rt::kDense;
    made->choices[sent.tensor].program =
        is_exact ? CINCH_EXACT : static_cast<std::int32_t>(sent.codec);
    made->choices[sent.tensor].priority = sent.priority;
  }
  return made;
}

CallStatus apply(const char* rules, const cinch_policy_tensor* tensors, std::size_t num_tensors,
                 cinch_policy** policy) {
  if (policy == nullptr) return fail(CINCH_INVALID_ARGUMENT, "policy is null");
  if (num_tensors > 0 && tensors == nullptr) {
    return fail(CINCH_INVALID_ARGUMENT, "tensors is null");
  }
  std::vector<rt::PolicyTensor> named;
  for (std::size_t i = 0; i < num_tensors; ++i) {
    auto tensor = policy_tensor(tensors, i);
    if (!tensor) return fail_at(i, std::move(tensor.error()));
    named.push_back(std::move(*tensor));
  }
  const auto parsed =
      rules == nullptr ? rt::Result<rt::Policy>(rt::usual_policy()) : rt::parse_policy(rules);
  if (!parsed) return fail(parsed.error());
  *policy = policy_of(rt::apply_policy(*parsed, named), num_tensors).release();
  return rt::Ok{};
}

CallStatus check_place(const cinch_policy* policy, std::size_t index, std::size_t count,
                       const char* what) {
  if (policy == nullptr) return fail(CINCH_INVALID_ARGUMENT, "policy is null");
  if (index < count) return rt::Ok{};
  return fail(CINCH_OUT_OF_RANGE,
              std::string(what) + " " + std::to_string(index) + " of " + std::to_string(count));
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
