// Bodies of gpu_list.h.
#include "runtime/c_api/gpu_list.h"

#include "runtime/c_api/gpu_driver.h"
#include "runtime/c_api/handles.h"

namespace cinch::c_api {
namespace {

rt::GpuAddress address_of(const void* pointer) {
  return static_cast<rt::GpuAddress>(reinterpret_cast<std::uintptr_t>(pointer));
}
rt::GpuStream stream_of(void* stream) {
  return static_cast<rt::GpuStream>(stream);
}

CallResult<rt::GpuSessionOptions> gpu_options(const cinch_session_options& options,
                                              const std::vector<rt::ListTensor>& shapes,
                                              DType dtype) {
  if (options.allocator != nullptr) {
    return fail(CINCH_INVALID_ARGUMENT, "a session on a GPU takes no allocator");
  }
  const bool has_arrays = options.largest_names != nullptr && options.largest_values != nullptr;
  if (options.num_largest > 0 && !has_arrays) {
    return fail(CINCH_INVALID_ARGUMENT, "largest_names or largest_values is null");
  }
  rt::GpuSessionOptions wanted;
  for (const rt::ListTensor& shape : shapes) {
    wanted.tensors.push_back({shape.rows, shape.cols, shape.tensor, shape.piece});
  }
  wanted.dtype = dtype;
  wanted.world = options.world == 0 ? 1 : options.world;
  wanted.worker = options.worker;
  wanted.seed = options.seed;
  for (std::size_t i = 0; i < options.num_largest; ++i) {
    if (options.largest_names[i] == nullptr) {
      return fail(CINCH_INVALID_ARGUMENT, "largest_names[" + std::to_string(i) + "] is null");
    }
    wanted.largest_parameters.emplace_back(options.largest_names[i], options.largest_values[i]);
  }
  return wanted;
}

}  // namespace

CallResult<std::shared_ptr<rt::GpuDevice>> open_gpu(std::int32_t device_number) {
  const auto driver = gpu_driver();
  if (!driver) return fail(driver.error());
  if (device_number < 0) {
    return fail(CINCH_UNAVAILABLE, "device " + std::to_string(device_number));
  }
  auto device = rt::GpuDevice::open(**driver, device_number);
  if (!device) return fail(device.error());
  return std::move(*device);
}

CallResult<std::shared_ptr<const rt::GpuProgram>> load_on_gpu(const cinch_program& program,
                                                              std::int32_t device_number) {
  if (program.loaded != nullptr) {
    return fail(CINCH_INVALID_ARGUMENT, "a program for CPUs, not for a GPU");
  }
  const std::lock_guard lock(program.mutex);
  std::weak_ptr<const rt::GpuProgram>& known = program.on_gpus[device_number];
  if (auto loaded = known.lock()) return loaded;
  const auto device = open_gpu(device_number);
  if (!device) return tl::unexpected<CallError>(device.error());
  auto loaded = rt::GpuProgram::load(*device, program.image());
  if (!loaded) return fail(loaded.error());
  known = *loaded;
  return std::move(*loaded);
}

GpuList::GpuList(rt::GpuSession session, Place place)
    : session_(std::move(session)), place_(place) {
  from_.reserve(size());
  to_.reserve(size());
  payloads_.reserve(size());
}

CallResult<std::unique_ptr<GpuList>> GpuList::open(const cinch_program& program,
                                                   const cinch_session_options& options,
                                                   const cinch_tensor* tensors,
                                                   const std::vector<rt::ListTensor>& shapes) {
  Place place{0, kF32, nullptr};
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const auto tensor = described_tensor(tensors, i, CINCH_CUDA);
    if (!tensor) return fail_at(i, tensor.error());
    const Place its{tensor->given.device_number, tensor->dtype, stream_of(tensor->given.stream)};
    if (i == 0) place = its;
    if (its.device_number != place.device_number || its.dtype != place.dtype) {
      return fail_at(
          i, {CINCH_INVALID_ARGUMENT, "tensors of a session on a GPU have one type and GPU"});
    }
  }
  const auto wanted = gpu_options(options, shapes, place.dtype);
  if (!wanted) return tl::unexpected<CallError>(wanted.error());
  const auto loaded = load_on_gpu(program, place.device_number);
  if (!loaded) return tl::unexpected<CallError>(loaded.error());
  auto session = rt::GpuSession::open(*loaded, *wanted, place.stream);
  if (!session) return fail(session.error());
  std::unique_ptr<GpuList> list(new GpuList(std::move(*session), place));
  const rt::ProgramInfo& info = list->session_.info();
  const rt::ParameterValues parameters(info);
  for (const rt::GpuTensorShape& shape : wanted->tensors) {
    const rt::TensorFacts facts =
        rt::facts_for(info, {shape.rows, shape.cols, wanted->world, wanted->worker});
    for (const rt::StateInfo& state : info.states) {
      const auto bytes = rt::state_bytes(info, state, rt::host_env(facts, parameters, 0));
      if (!bytes) return fail(bytes.error());
      list->state_bytes_ += static_cast<std::size_t>(*bytes);
    }
  }
  return list;
}

CallStatus GpuList::set_parameter(const char* name, double value) {
  return done(session_.set_parameter(name, value));
}

CallResult<std::size_t> GpuList::payload_bound(std::size_t tensor, std::uint64_t step) const {
  const auto bound = session_.payload_bound(tensor, step);
  if (!bound) return fail(bound.error());
  return static_cast<std::size_t>(*bound);
}

CallStatus GpuList::read_tensors(const cinch_tensor* from, DType dtype, bool is_first,
                                 std::vector<rt::GpuAddress>& to) {
  to.clear();
  for (std::size_t i = 0; i < size(); ++i) {
    const auto tensor = described_tensor(from, i, CINCH_CUDA);
    if (!tensor) return fail_at(i, tensor.error());
    if (tensor->dtype != dtype) {
      return fail_at(i, {CINCH_INVALID_ARGUMENT, "a tensor of " + dtype_name(tensor->dtype) + ", " +
                                                     dtype_name(dtype) + " is expected"});
    }
    if (tensor->num_elems != session_.num_elems(i)) {
      return fail_at(i,
                     {CINCH_INVALID_ARGUMENT, "a tensor of " + std::to_string(tensor->num_elems) +
                                                  " elements, the session has " +
                                                  std::to_string(session_.num_elems(i))});
    }
    if (tensor->given.device_number != place_.device_number) {
      return fail_at(i, {CINCH_INVALID_ARGUMENT,
                         "a tensor on GPU " + std::to_string(tensor->given.device_number) +
                             ", the session is on GPU " + std::to_string(place_.device_number)});
    }
    const rt::GpuStream stream = stream_of(tensor->given.stream);
    if (is_first && i == 0) place_.stream = stream;
    if (stream != place_.stream) {
      return fail_at(i, {CINCH_INVALID_ARGUMENT, "tensors of one call name different streams"});
    }
    to.push_back(address_of(tensor->given.data));
  }
  return rt::Ok{};
}

CallStatus GpuList::read_payloads(const cinch_payload* from, bool is_room) {
  payloads_.clear();
  for (std::size_t i = 0; i < size(); ++i) {
    const auto payload = read_struct(entry(from, i), sizeof *from, "payload");
    if (!payload) return fail_at(i, payload.error());
    const std::size_t size_bytes = is_room ? payload->capacity : payload->size;
    if (size_bytes > static_cast<std::size_t>(INT64_MAX)) {
      return fail_at(i, {CINCH_INVALID_ARGUMENT, "a payload of " + std::to_string(size_bytes)});
    }
    payloads_.push_back({address_of(payload->data), static_cast<std::int64_t>(size_bytes)});
  }
  return rt::Ok{};
}

CallStatus GpuList::encode(std::uint64_t step, const cinch_tensor* gradients,
                           const cinch_payload* payloads) {
  CallStatus read = read_tensors(gradients, place_.dtype, true, from_);
  if (read) read = read_payloads(payloads, true);
  if (!read) return read;
  return done(session_.encode(from_, payloads_, step, place_.stream));
}

CallStatus GpuList::decode(std::uint64_t step, const cinch_payload* payloads,
                           const cinch_tensor* outputs) {
  CallStatus read = read_tensors(outputs, place_.dtype, true, to_);
  if (read) read = read_payloads(payloads, false);
  if (!read) return read;
  return done(session_.decode(payloads_, to_, step, place_.stream));
}

CallStatus GpuList::decode_add(std::uint64_t step, const cinch_payload* payloads,
                               const cinch_tensor* outputs) {
  CallStatus read = read_tensors(outputs, kF32, true, to_);
  if (read) read = read_payloads(payloads, false);
  if (!read) return read;
  return done(session_.decode_add(payloads_, to_, step, place_.stream));
}

CallStatus GpuList::finish(std::uint64_t step, const cinch_tensor* sums,
                           const cinch_tensor* updates) {
  CallStatus read = read_tensors(sums, kF32, true, from_);
  if (read) read = read_tensors(updates, place_.dtype, false, to_);
  if (!read) return read;
  for (std::size_t i = 0; i < size(); ++i) {
    if (from_[i] == to_[i] && session_.num_elems(i) > 0) {
      return fail_at(i, {CINCH_INVALID_ARGUMENT, "on a GPU an update is not its sum's memory"});
    }
  }
  return done(session_.finish(from_, to_, step, place_.stream));
}

CallStatus GpuList::prepare(cinch_call call, std::uint64_t step, void* stream) {
  place_.stream = stream_of(stream);
  switch (call) {
    case CINCH_CALL_ENCODE:
      return done(session_.prepare(rt::EntryKind::Encode, step, place_.stream));
    case CINCH_CALL_DECODE:
      return done(session_.prepare(rt::EntryKind::Decode, step, place_.stream));
    case CINCH_CALL_DECODE_ADD:
      return done(session_.prepare(rt::EntryKind::DecodeAdd, step, place_.stream));
    case CINCH_CALL_FINISH:
      return done(session_.prepare(rt::EntryKind::Finish, step, place_.stream));
  }
  return fail(CINCH_INVALID_ARGUMENT, "call " + std::to_string(static_cast<int>(call)));
}

CallStatus GpuList::collect(void* stream, cinch_outcome* outcomes) {
  place_.stream = stream_of(stream);
  auto told = session_.collect(place_.stream);
  if (!told) return fail(told.error());
  messages_.assign(size(), {});
  for (std::size_t i = 0; i < size(); ++i) {
    const rt::GpuTensorOutcome& from = (*told)[i];
    if (!from.status) messages_[i] = from.status.error().message;
    cinch_outcome value{};
    value.status = from.status ? CINCH_OK : status_of(from.status.error().kind);
    value.is_non_finite = from.non_finite ? 1 : 0;
    value.payload_size = static_cast<std::size_t>(from.payload_bytes);
    value.message = messages_[i].c_str();
    CallStatus status = write_struct(value, entry(outcomes, i), "outcome");
    if (!status) return fail_at(i, status.error());
  }
  return rt::Ok{};
}

CallResult<std::vector<std::uint8_t>> GpuList::states(std::size_t tensor) const {
  auto bytes = session_.states_as_bytes(tensor, place_.stream);
  if (!bytes) return fail(bytes.error());
  return std::move(*bytes);
}

CallStatus GpuList::set_states(std::size_t tensor, std::span<const std::uint8_t> bytes) {
  return done(session_.set_states(tensor, bytes, place_.stream));
}

}  // namespace cinch::c_api
