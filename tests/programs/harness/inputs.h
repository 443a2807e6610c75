// Values for the inputs of programs besides the gradient, the same on every device.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "compiler/interp/interp.h"
#include "runtime/session/session.h"

namespace cinch::testing {

/// Weights of a tensor; they stay in place for good.
inline const std::vector<float>& made_up_weights(std::int64_t num_elems) {
  static std::mutex mutex;
  static std::map<std::int64_t, std::unique_ptr<std::vector<float>>> made;
  const std::lock_guard lock(mutex);
  auto& weights = made[num_elems];
  if (weights == nullptr) {
    weights = std::make_unique<std::vector<float>>();
    for (std::int64_t i = 0; i < num_elems; ++i)
      weights->push_back(0.25f * static_cast<float>(i * 7 % 17 - 8));
  }
  return *weights;
}

inline rt::Status give_inputs(rt::Session& session) {
  return session.make_up_inputs(made_up_weights(session.num_elems()));
}

/// In place of the initial values of states.
inline void give_inputs(const rt::ProgramInfo& info, std::vector<interp::Array>& states) {
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (info.states[i].is_input)
      states[i].bits = interp::from_floats(made_up_weights(states[i].size())).bits;
  }
}

}  // namespace cinch::testing
