// What stands behind the C API's opaque types.
#pragma once
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "runtime/c_api/cinch.h"
#include "runtime/session/loaded_program.h"
#include "runtime/session/session.h"

// Named as the C API names them.
// NOLINTBEGIN(readability-identifier-naming)
struct cinch_program {
  std::shared_ptr<const cinch::rt::LoadedProgram> loaded;
  std::string cpu;
  // Texts that infos point to.
  std::vector<std::string> parameter_types, parameter_ranges, state_types;
};

struct cinch_session {
  cinch_allocator allocator{};  // outlives the tensors
  std::vector<cinch::rt::Session> tensors;
  std::atomic<bool> cancelled{false};
};
// NOLINTEND(readability-identifier-naming)
