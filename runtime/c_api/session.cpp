// Sessions of the C API: opened, asked, and their parameters and states.

#include "runtime/gpu/session/session.h"
#include "runtime/c_api/calls.h"
#include "runtime/call/state_file.h"
#include "runtime/core/files/file_bytes.h"
#include "runtime/session/session.h"

namespace cinch::c_api {
namespace {

cinch_memory_use use_of(rt::MemoryUse use) {
  return use == rt::MemoryUse::State ? CINCH_MEMORY_STATE : CINCH_MEMORY_WORKSPACE;
}

// Wraps the caller's functions for the runtime.
rt::MemorySource source_of(const cinch_allocator& allocator) {
  rt::MemorySource source;
  source.context = std::make_shared<cinch_allocator>(allocator);
  source.allocate = [](void* context, std::size_t size, std::size_t alignment, rt::MemoryUse use) {
    const auto& caller = *static_cast<cinch_allocator*>(context);
    return caller.allocate(caller.context, size, alignment, use_of(use));
  };
  source.release = [](void* context, void* memory, std::size_t size, rt::MemoryUse use) {
    const auto& caller = *static_cast<cinch_allocator*>(context);
    caller.release(caller.context, memory, size, use_of(use));
  };
  return source;
}

CallResult<rt::MemorySource> take_allocator(const cinch_allocator* given) {
  if (given == nullptr) return rt::MemorySource{};
  const auto allocator = TRY(read_struct(given, sizeof *given, "allocator"));
  if ((allocator.allocate == nullptr) != (allocator.release == nullptr)) {
    return invalid("an allocator has both allocate and release");
  }
  return allocator.allocate == nullptr ? rt::MemorySource{} : source_of(allocator);
}

CallResult<rt::ListTensor> list_tensor(cinch_device device, const cinch_session_options& options,
                                       const cinch_tensor* tensors, std::size_t index) {
  const auto tensor = TRY(read_struct(entry(tensors, index), sizeof *tensors, "tensor"));
  CINCH_TRY(check_device(tensor.device, device));
  const auto shape = TRY(shape_of(tensor));
  rt::ListTensor made{.rows = shape.rows,
                      .cols = shape.cols,
                      .tensor = options.tensor_numbers == nullptr
                                    ? static_cast<std::uint32_t>(index)
                                    : options.tensor_numbers[index]};
  return made;
}

// The arguments of opening a session.
struct Opening {
  const cinch_program& program;
  const cinch_session_options& options;
  rt::MemorySource memory;
  const cinch_tensor* tensors;
  std::vector<rt::ListTensor> shapes;
};

CallStatus open_on_cpu(const Opening& opening, cinch_session& to) {
  const cinch_session_options& options = opening.options;
  rt::SessionOptions common{.threads = options.threads,
                            .world = options.world == 0 ? 1 : options.world,
                            .worker = options.worker,
                            .seed = options.seed,
                            .only_decodes = options.only_decodes != 0,
                            .cancelled = &to.cancelled,
                            .memory = opening.memory};
  auto list = rt::SessionList::open(opening.program.loaded, common, opening.shapes);
  if (!list) return fail_at(list.error().place, list.error().error);
  to.list = std::make_unique<rt::SessionList>(std::move(*list));
  return rt::Ok{};
}

CallResult<rt::GpuSessionOptions> gpu_options(const Opening& opening, DType dtype) {
  const cinch_session_options& options = opening.options;
  const bool has_arrays = options.largest_names != nullptr && options.largest_values != nullptr;
  if (options.num_largest > 0 && !has_arrays) {
    return invalid("largest_names or largest_values is null");
  }
  rt::GpuSessionOptions wanted{.tensors = opening.shapes,
                               .dtype = dtype,
                               .world = options.world == 0 ? 1 : options.world,
                               .worker = options.worker,
                               .seed = options.seed,
                               .only_decodes = options.only_decodes != 0,
                               .memory = opening.memory};
  for (std::size_t i = 0; i < options.num_largest; ++i) {
    if (options.largest_names[i] == nullptr) {
      return invalid("largest_names[" + std::to_string(i) + "] is null");
    }
    wanted.largest_parameters.emplace_back(options.largest_names[i], options.largest_values[i]);
  }
  return wanted;
}

CallStatus open_on_gpu(const Opening& opening, cinch_session& to) {
  DType dtype = kF32;
  for (std::size_t i = 0; i < opening.shapes.size(); ++i) {
    const auto tensor = described_tensor(opening.tensors, i, CINCH_CUDA);
    if (!tensor) return fail_at(i, tensor.error());
    const std::int32_t number = tensor->given.device_number;
    if (i == 0) {
      dtype = tensor->dtype;
      to.device_number = number;
      to.stream = tensor->given.stream;
    }
    if (number == to.device_number && tensor->dtype == dtype) continue;
    return fail_at(i,
                   {CINCH_INVALID_ARGUMENT, "tensors of a session on a GPU have one type and GPU"});
  }
  const auto wanted = TRY(gpu_options(opening, dtype));
  const auto loaded = TRY(load_on_gpu(opening.program, to.device_number));
  auto session = TRY(rt::GpuSession::open(loaded, wanted, static_cast<rt::GpuStream>(to.stream)));
  to.list = std::make_unique<rt::GpuSession>(std::move(session));
  return rt::Ok{};
}

CallStatus open_session(const cinch_program* program, const cinch_session_options* options,
                        const cinch_tensor* tensors, std::size_t num_tensors,
                        cinch_session** session) {
  if (program == nullptr || session == nullptr) {
    return invalid("program or session is null");
  }
  if (num_tensors > 0 && tensors == nullptr) {
    return invalid("tensors is null");
  }
  cinch_session_options wanted{};
  if (options != nullptr) {
    wanted = TRY(read_struct(options, offsetof(cinch_session_options, largest_names), "options"));
  }
  CINCH_TRY(check_named_tuning());
  auto made = std::make_unique<cinch_session>();
  const auto memory = TRY(take_allocator(wanted.allocator));
  made->device = program->loaded != nullptr ? CINCH_CPU : CINCH_CUDA;
  Opening opening{*program, wanted, memory, tensors, {}};
  for (std::size_t i = 0; i < num_tensors; ++i) {
    auto tensor = list_tensor(made->device, wanted, tensors, i);
    if (!tensor) return fail_at(i, std::move(tensor.error()));
    opening.shapes.push_back(*tensor);
  }
  CINCH_TRY(made->device == CINCH_CPU ? open_on_cpu(opening, *made) : open_on_gpu(opening, *made));
  // Calls read their arguments into these arrays.
  made->tensors.reserve(num_tensors);
  made->gradients.reserve(num_tensors);
  made->floats.reserve(num_tensors);
  made->slots.reserve(num_tensors);
  made->payloads.reserve(num_tensors);
  *session = made.release();
  return rt::Ok{};
}

CallStatus check_tensor(const cinch_session* session, std::size_t tensor) {
  if (session == nullptr) return invalid("session is null");
  return check_index(tensor, session->list->size(), "tensor");
}

CallResult<std::vector<std::uint8_t>> states(const cinch_session* session, std::size_t tensor) {
  CINCH_TRY(check_tensor(session, tensor));
  return use_alone(session->in_use, [&]() -> CallResult<std::vector<std::uint8_t>> {
    return TRY(session->list->states_as_bytes(tensor));
  });
}

CallStatus set_states(cinch_session* session, std::size_t tensor,
                      std::span<const std::uint8_t> bytes) {
  CINCH_TRY(check_tensor(session, tensor));
  return use_alone(session->in_use, [&] { return done(session->list->set_states(tensor, bytes)); });
}

}  // namespace
}  // namespace cinch::c_api

using namespace cinch::c_api;
namespace rt = cinch::rt;

cinch_status cinch_session_open(const cinch_program* program, const cinch_session_options* options,
                                const cinch_tensor* tensors, size_t num_tensors,
                                cinch_session** session, cinch_error* error) {
  return guarded(error,
                 [&] { return open_session(program, options, tensors, num_tensors, session); });
}

void cinch_session_release(cinch_session* session) {
  delete session;
}

size_t cinch_session_num_tensors(const cinch_session* session) {
  return session == nullptr ? 0 : session->list->size();
}

size_t cinch_session_state_bytes(const cinch_session* session) {
  return session == nullptr ? 0 : session->list->state_bytes();
}

size_t cinch_session_workspace_bytes(const cinch_session* session) {
  if (session == nullptr) return 0;
  const rt::Use use(session->in_use, rt::UseFlag::Kind::Look);
  // A GPU session's size does not change.
  const bool can_look = use || session->device == CINCH_CUDA;
  if (can_look) session->workspace_bytes = session->list->workspace_bytes();
  return session->workspace_bytes;
}

cinch_status cinch_session_set(cinch_session* session, const char* parameter, double value,
                               cinch_error* error) {
  return guarded(error, [&]() -> CallStatus {
    if (session == nullptr || parameter == nullptr) {
      return invalid("session or parameter is null");
    }
    return use_alone(session->in_use,
                     [&] { return done(session->list->set_parameter(parameter, value)); });
  });
}

cinch_status cinch_session_set_input(cinch_session* session, size_t tensor, const char* input,
                                     const cinch_tensor* array, cinch_error* error) {
  return guarded(error, [&]() -> CallStatus {
    CINCH_TRY(check_tensor(session, tensor));
    if (input == nullptr || array == nullptr) return invalid("input or array is null");
    return use_alone(session->in_use, [&]() -> CallStatus {
      const auto view = tensor_view(array, 0, session->device);
      if (!view) {
        return fail(view.error().status,
                    std::string("input ") + input + ": " + view.error().message);
      }
      if (session->device == CINCH_CUDA) {
        session->stream = array->stream;
        session->list->use_stream(session->stream);
      }
      return done(session->list->set_input(tensor, input, *view));
    });
  });
}

void cinch_session_cancel(cinch_session* session) {
  if (session != nullptr) session->cancelled.store(true);
}

cinch_status cinch_states_save(cinch_session* session, size_t tensor, void* data, size_t* size,
                               cinch_error* error) {
  return guarded(error, [&]() -> CallStatus {
    return copy_out(TRY(states(session, tensor)), "states", data, size);
  });
}

cinch_status cinch_states_load(cinch_session* session, size_t tensor, const void* data, size_t size,
                               cinch_error* error) {
  return guarded(error, [&]() -> CallStatus {
    if (data == nullptr) return invalid("data is null");
    return set_states(session, tensor, {static_cast<const std::uint8_t*>(data), size});
  });
}

cinch_status cinch_states_save_file(cinch_session* session, size_t tensor, const char* path,
                                    cinch_error* error) {
  return guarded(error, [&]() -> CallStatus {
    const auto bytes = TRY(states(session, tensor));
    if (path == nullptr) return invalid("path is null");
    return done(rt::write_file_bytes(path, bytes));
  });
}

cinch_status cinch_states_load_file(cinch_session* session, size_t tensor, const char* path,
                                    cinch_error* error) {
  return guarded(error, [&]() -> CallStatus {
    if (path == nullptr) return invalid("path is null");
    return set_states(session, tensor, TRY(rt::read_state_file(path)));
  });
}
