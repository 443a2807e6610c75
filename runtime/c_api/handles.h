// What stands behind the C API's opaque types.
#pragma once
#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/c_api/cinch.h"
#include "runtime/session/loaded_program.h"
#include "runtime/session/session_list.h"

// Named as the C API names them.
// NOLINTBEGIN(readability-identifier-naming)
struct cinch_program {
  std::shared_ptr<const cinch::rt::LoadedProgram> loaded;
  std::string cpu;
  // Texts that infos point to.
  std::vector<std::string> parameter_types, parameter_ranges, state_types;
};

struct cinch_session {
  cinch_allocator allocator{};  // outlives the list
  std::atomic<bool> cancelled{false};
  std::unique_ptr<cinch::rt::SessionList> list;
  // Of the call that runs: kept, so that calls allocate nothing.
  std::vector<cinch::rt::TensorView> tensors;
  std::vector<cinch::rt::ConstTensorView> gradients;
  std::vector<std::span<float>> floats;
  std::vector<cinch::rt::PayloadSlot> slots;
  std::vector<cinch::rt::PayloadBytes> payloads;
};
// NOLINTEND(readability-identifier-naming)
