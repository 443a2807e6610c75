// The computing tasks of one rank on its device: for each codec and site a list of sessions. On a
// GPU all work goes on one stream, and a task ends when its work is on the stream. The host waits
// only for what it must know or have: payloads that are sent from its memory, and lengths that are
// known late. On a host tasks of both lanes run at once, so a protocol uses nothing that tasks
// share.
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "runtime/device/compute_device.h"
#include "runtime/sync/device/device_lists.h"
#include "runtime/sync/device/device_memory.h"
#include "runtime/sync/device/device_sums.h"
#include "runtime/sync/device/device_tensors.h"
#include "runtime/sync/device/device_wire.h"
#include "runtime/sync/protocol_parts.h"
#include "runtime/sync/rank_tasks.h"
#include "runtime/sync/task_facts.h"

namespace cinch::rt {

struct DeviceTaskOptions {
  std::uint32_t world = 1, rank = 0;
  std::uint64_t seed = 0;
  /// Do gradients and updates lie in the device's memory (as on a host)? Otherwise they are copied
  /// there and back.
  bool has_tensors = true;
  Transport* transport = nullptr;
  std::span<std::uint8_t> host_wire = {};  // of the PieceMemory of all tasks; outlives them
};

class DeviceTasks : public RankTasks {
 public:
  /// `plan` outlives this. Errors: those of ComputeDevice::open.
  static Result<std::unique_ptr<RankTasks>> open(const Plan& plan,
                                                 std::unique_ptr<ComputeDevice> device,
                                                 const DeviceTaskOptions& options);
  ~DeviceTasks() override;

  Status set_parameter(std::uint32_t codec, std::string_view name, double value) override;
  Status begin_step(std::uint64_t step) override;
  Status run(const Task& task, PieceMemory& memory) override;
  Result<WirePlace> wire_of(const Task& exchange, PieceMemory& memory) override;
  Status synchronise(const Task& task, PieceMemory& memory, RankExchange& ranks) override;
  const ProtocolParts& protocols() const override { return protocols_; }
  Status end_step() override;
  void take_back_step() override;
  void take_back(std::uint32_t piece) override;
  Status fill_update(std::uint32_t piece, Fill with, PieceMemory& memory) override;
  Status reset_states(std::uint32_t piece) override;
  SyncMemory memory_use() const override;
  void visit_states(const SiteVisitor& visit) override;

 private:
  class Body;

  DeviceTasks(const Plan& plan, std::unique_ptr<ComputeDevice> device,
              const DeviceTaskOptions& options);

  // ---- device_tasks.cpp ----
  Status start();
  Status open_wire();
  std::uint64_t gathered_bytes() const;
  std::uint64_t gathering_room(std::uint32_t slot) const {
    return round_up_to_arena(own_.slots[slot].capacity);
  }
  PieceList pieces_apart() const;
  const ProgramInfo& info_of(std::uint32_t codec) const { return device_->info(codec); }

  // ---- device_run_tasks.cpp ----
  Status run_task(const Task& task, PieceMemory& memory);
  /// The task's pieces, valid until the next task runs.
  const PieceList& listed(const Task& task);
  /// Does the message lie in the device's own memory? Otherwise it is in host memory, copied there
  /// when it is encoded, and to the device before it is decoded.
  bool stays(std::uint32_t slot) const { return wire_ == nullptr || wire_->has(slot); }
  /// Do exchanges use the device's memory, after tasks that have only been put on the stream?
  bool is_deferred() const { return wire_ != nullptr && wire_->is_used(); }
  /// Waits until messages in host memory are copied; they may change after this.
  Status wait_for_copies(std::span<const std::uint32_t> slots);
  Status clear(const Task& task);
  Status encode(const Task& task, PieceMemory& memory);
  /// Adds to inputs_ and payload_slots_.
  Status make_rooms(const Task& task, std::size_t index, PieceMemory& memory);
  /// `first`: index of the group's payloads in payload_slots_.
  Status close_message(const Task& task, std::size_t index, std::size_t first, PieceMemory& memory);
  void close_in_place(std::uint32_t slot, std::span<const PayloadSlot> payloads,
                      PieceMemory& memory);
  /// Are payloads copied to the slot after encoding? False: they were encoded in place.
  bool is_gathered(const Task& task, std::size_t index) const;
  std::uint8_t* encoding_room(const Task& task, std::size_t index) const;
  /// Room of a payload in a message: its largest size, or its real size if payloads are packed and
  /// sizes do not depend on contents.
  std::uint64_t room_bytes(const DeviceList& list, const Group& group, std::uint32_t piece,
                           std::uint32_t slot) const;
  /// Do payloads follow one another without gaps, so that the message is no longer than they are?
  bool is_packed(std::uint32_t slot) const { return own_.slots[slot].length != kNoSlot; }
  bool has_known_sizes(std::uint32_t codec) const { return info_of(codec).wire.counts.empty(); }
  Status encode_dense(const Task& task, PieceMemory& memory);
  Status decode(const Task& task, PieceMemory& memory);
  /// Adds a message's payloads on the device to payloads_.
  Status find_payloads(const Task& task, std::size_t index, Site site, PieceMemory& memory);
  /// Splits a message by the payloads' headers.
  Status split_payloads(std::uint32_t slot, const Group& group, std::uint64_t used,
                        PieceMemory& memory);
  Status decode_dense(const Task& task, PieceMemory& memory);
  Status add_gradient(const Task& task, PieceMemory& memory);
  Status scale(const Task& task);
  Status finish(const Task& task, PieceMemory& memory);
  Status finish_by_list(const Task& task, PieceMemory& memory);

  // ---- device_meetings.cpp ----
  Status run_part(const Task& task, PieceMemory& memory);
  Status synchronise_pieces(const Task& task, PieceMemory& memory, RankExchange& ranks);

  // ---- device_sum_tasks.cpp ----
  /// By codec: can its payloads be added up on a GPU?
  std::vector<bool> codecs_added_here() const;
  Status open_sums();
  Status spread(const Task& task, PieceMemory& memory);
  Status join(const Task& task, PieceMemory& memory);
  Result<const SummedArrays*> summed_of(const Task& task) const;
  bool is_added_on_host(std::uint32_t slot) const { return device_->is_host() || !stays(slot); }
  std::uint8_t* slot_at(std::uint32_t slot, PieceMemory& memory) const {
    return stays(slot) ? memory_->slot(slot) : memory.bytes_of(slot).data();
  }
  /// Sets sums_found_ to the task's payloads; `slots` hold their arrays.
  Status find_sums(const Task& task, const SummedArrays& summed,
                   std::span<const std::uint32_t> slots, PieceMemory& memory);
  Status find_arrays(const SummedArrays& summed, std::uint32_t piece,
                     std::span<const std::uint32_t> slots, PieceMemory& memory, DeviceSum& sum);
  Status join_on_host(const SummedArrays& summed, const PieceList& pieces);

  const Plan& plan_;
  const std::unique_ptr<ComputeDevice> device_;
  DeviceTaskOptions options_;
  const RankPlan& own_;
  DeviceLists lists_;
  std::unique_ptr<DeviceMemory> memory_;
  std::unique_ptr<DeviceTensors> tensors_;
  std::unique_ptr<DeviceWire> wire_;                 // null: on a host
  PinnedMemory pinned_;                              // messages in host memory
  std::vector<std::optional<SummedArrays>> summed_;  // by codec; none: its payloads cannot be added
  std::unique_ptr<DeviceSums> sums_;  // of payloads that stay on a GPU; null if there are none
  ProtocolParts protocols_;
  std::uint64_t step_ = 0;

  // Data of the running task; the vectors keep their memory.
  PieceList pieces_, synchronised_;
  std::vector<ConstTensorView> inputs_;
  std::vector<TensorView> outputs_;
  std::vector<std::span<float>> floats_;
  std::vector<PayloadSlot> payload_slots_;
  std::vector<PayloadBytes> payloads_;
  std::vector<ArrayPair> pairs_;
  std::vector<std::size_t> offsets_, sizes_;
  std::vector<DeviceSum> sums_found_;
  std::vector<SumArray> wanted_;
  std::vector<std::span<const std::uint8_t>> joined_;
  std::vector<std::uint64_t> array_ends_;  // by array: where the next piece begins
};

}  // namespace cinch::rt
