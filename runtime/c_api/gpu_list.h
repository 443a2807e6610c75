// Sessions of the C API whose tensors are on a GPU: descriptors in device memory, calls that only
// enqueue, outcomes told later.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "runtime/c_api/support.h"
#include "runtime/c_api/tensors.h"
#include "runtime/gpu/session.h"
#include "runtime/session/session_list.h"

namespace cinch::c_api {

/// The GPU with this number. Errors: UNAVAILABLE (no driver, no such GPU), DEVICE.
CallResult<std::shared_ptr<rt::GpuDevice>> open_gpu(std::int32_t device_number);

/// The program on a GPU, which sessions share as long as there are any. Errors: as above,
/// INVALID_ARGUMENT (a program for CPUs), those of GpuProgram::load.
CallResult<std::shared_ptr<const rt::GpuProgram>> load_on_gpu(const cinch_program& program,
                                                              std::int32_t device_number);

class GpuList {
 public:
  /// `tensors` are the caller's, `shapes` what they say. Errors: as of cinch_session_open.
  static CallResult<std::unique_ptr<GpuList>> open(const cinch_program& program,
                                                   const cinch_session_options& options,
                                                   const cinch_tensor* tensors,
                                                   const std::vector<rt::ListTensor>& shapes);

  std::size_t size() const { return session_.num_tensors(); }
  std::int64_t num_elems(std::size_t tensor) const { return session_.num_elems(tensor); }
  std::size_t state_bytes() const { return state_bytes_; }
  std::size_t memory_bytes() const { return session_.memory_bytes(); }

  CallStatus set_parameter(const char* name, double value);
  CallResult<std::size_t> payload_bound(std::size_t tensor, std::uint64_t step) const;

  /// Calls on all tensors, of which arrays have an entry each.
  CallStatus encode(std::uint64_t step, const cinch_tensor* gradients,
                    const cinch_payload* payloads);
  CallStatus decode(std::uint64_t step, const cinch_payload* payloads, const cinch_tensor* outputs);
  CallStatus decode_add(std::uint64_t step, const cinch_payload* payloads,
                        const cinch_tensor* outputs);
  CallStatus finish(std::uint64_t step, const cinch_tensor* sums, const cinch_tensor* updates);
  CallStatus prepare(cinch_call call, std::uint64_t step, void* stream);
  CallStatus collect(void* stream, cinch_outcome* outcomes);

  CallResult<std::vector<std::uint8_t>> states(std::size_t tensor) const;
  CallStatus set_states(std::size_t tensor, std::span<const std::uint8_t> bytes);

 private:
  // Where a call finds its tensors.
  struct Place {
    std::int32_t device_number;
    DType dtype;  // of gradients and outputs
    rt::GpuStream stream;
  };

  GpuList(rt::GpuSession session, Place place);
  /// Addresses of a call's tensors; `stream` becomes theirs where it is the call's first array.
  CallStatus read_tensors(const cinch_tensor* from, DType dtype, bool is_first,
                          std::vector<rt::GpuAddress>& to);
  /// `is_room`: payloads are written.
  CallStatus read_payloads(const cinch_payload* from, bool is_room);

  rt::GpuSession session_;
  Place place_;  // the stream: of the last call
  std::size_t state_bytes_ = 0;
  // Of the call that is made: kept, so that calls allocate nothing.
  std::vector<rt::GpuAddress> from_, to_;
  std::vector<rt::GpuPayload> payloads_;
  std::vector<std::string> messages_;  // of the last outcomes
};

}  // namespace cinch::c_api
