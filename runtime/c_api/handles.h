// What stands behind the C API's opaque types.
#pragma once
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "runtime/c_api/cinch.h"
#include "runtime/c_api/gpu_list.h"
#include "runtime/session/loaded_program.h"
#include "runtime/session/session_list.h"

namespace cinch::c_api {

// What calls on buckets make of them; kept, so that calls allocate nothing.
struct FlatArrays {
  std::vector<std::int64_t> num_elems;  // the shapes of `tensors` and `others`
  std::vector<cinch_tensor> tensors, others;
  std::vector<cinch_payload> payloads;
  std::vector<rt::TensorView> views;
  std::vector<rt::PayloadBytes> pieces;
  std::vector<std::span<std::uint8_t>> rooms;
  std::vector<std::size_t> bounds;
};

}  // namespace cinch::c_api

// Named as the C API names them.
// NOLINTBEGIN(readability-identifier-naming)
struct cinch_program {
  const cinch::rt::ProgramImage& image() const {
    return loaded != nullptr ? loaded->image() : gpu_image;
  }

  std::shared_ptr<const cinch::rt::LoadedProgram> loaded;  // null: of GPU code
  cinch::rt::ProgramImage gpu_image;
  // By the number of a GPU; loaded there by the first session.
  mutable std::mutex mutex;
  mutable std::map<std::int32_t, std::weak_ptr<const cinch::rt::GpuProgram>> on_gpus;
  std::string cpu;
  // Texts that infos point to.
  std::vector<std::string> parameter_types, parameter_ranges, state_types;
};

struct cinch_session {
  // Of all that calls change but `flat`, which calls on buckets use around others.
  mutable cinch::rt::UseFlag in_use;
  cinch::rt::UseFlag flat_in_use;
  // As it was when it was asked for last.
  mutable std::atomic<std::size_t> workspace_bytes{0};
  std::size_t state_bytes = 0;  // of a session on CPUs: states keep their sizes
  cinch_allocator allocator{};  // outlives the list
  std::atomic<bool> cancelled{false};
  // One of them.
  std::unique_ptr<cinch::rt::SessionList> list;
  std::unique_ptr<cinch::c_api::GpuList> on_gpu;

  std::size_t num_tensors() const { return list != nullptr ? list->size() : on_gpu->size(); }
  std::int64_t num_elems(std::size_t tensor) const {
    return list != nullptr ? (*list)[tensor].num_elems() : on_gpu->num_elems(tensor);
  }

  // Of the call that runs: kept, so that calls allocate nothing.
  std::vector<cinch::rt::TensorView> tensors;
  std::vector<cinch::rt::ConstTensorView> gradients;
  std::vector<std::span<float>> floats;
  std::vector<cinch::rt::PayloadSlot> slots;
  std::vector<cinch::rt::PayloadBytes> payloads;
  cinch::c_api::FlatArrays flat;
};
// NOLINTEND(readability-identifier-naming)
