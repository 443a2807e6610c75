// The computing tasks of one rank on its device: for each codec and site a list of sessions. On a
// GPU all work goes on one stream, and a task ends when its work is on the stream. The host waits
// only for what it must know or have: payloads that are sent from its memory, and lengths that are
// known late. On a host tasks of both lanes run at once, so a protocol uses nothing that tasks
// share.
#pragma once
#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <vector>

#include "runtime/device/compute_device.h"
#include "runtime/sync/device/device_memory.h"
#include "runtime/sync/device/device_sums.h"
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
  static constexpr std::uint32_t kNoEntry = UINT32_MAX;
  // The sessions of one codec at one site. On a host a list has all pieces there. On a GPU, where
  // one launch serves a list, it has the pieces of a group, or one piece that meets other ranks.
  struct List {
    PieceList pieces;                    // by entry
    std::vector<std::uint32_t> entries;  // by piece; kNoEntry: none
    std::vector<std::uint64_t> bounds;   // by entry: the largest payload in this step
    std::unique_ptr<ListSession> sessions;
    std::vector<const Task*> begun;  // tasks whose calls were begun and not yet collected

    std::size_t entry_of(std::uint32_t piece) const { return entries[piece]; }
    bool has(std::uint32_t piece) const {
      return piece < entries.size() && entries[piece] != kNoEntry;
    }
  };
  // Codec, site, and on a GPU the first piece.
  using ListKey = std::tuple<std::uint32_t, Site, std::uint32_t>;
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
  void need_lists(const Task& task);
  Status open_list(std::uint32_t codec, Site site, List& list);
  const ProgramInfo& info_of(std::uint32_t codec) const { return device_->info(codec); }
  ListKey key_of(std::uint32_t codec, Site site, std::uint32_t first_piece) const {
    return {codec, site, device_->is_host() ? 0 : first_piece};
  }
  /// The list of the pieces of one of the task's groups.
  List& list_of(const Task& task, Site site, std::uint32_t first_piece) {
    return lists_.at(key_of(codec_of(plan_, task), site, first_piece));
  }
  /// Calls on_list(list, pieces, place) for each list that has pieces of the task. The pieces of a
  /// list are consecutive in the task, from `place` on.
  template <typename OnList>
  Status for_lists(const Task& task, Site site, const OnList& on_list);
  /// Names the piece at fault.
  Status named(const ListStatus& status, const PieceList& pieces) const;
  ListCall call_on(const List& list, const PieceList& pieces);
  /// Waits for the stream and sets outcomes_. Errors: those of the pieces' last calls, named.
  Status collect(List& list);
  /// Checks how a call of the task went: now, or at the step's end if the wire is the device's.
  Status check(List& list, const Task& task);
  Status check_lists(const Task& task, Site site);
  Status collect_begun(List& list);

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
  std::uint64_t room_bytes(const List& list, std::uint32_t piece, std::uint32_t slot) const;
  /// Do payloads follow one another without gaps, so that the message is no longer than they are?
  bool is_packed(std::uint32_t slot) const { return own_.slots[slot].length != kNoSlot; }
  bool has_known_sizes(std::uint32_t codec) const { return info_of(codec).wire.counts.empty(); }
  Status encode_dense(const Task& task, PieceMemory& memory);
  Status decode(const Task& task, PieceMemory& memory);
  /// Adds a message's payloads on the device to payloads_.
  Status find_payloads(const Task& task, std::size_t index, Site site, PieceMemory& memory);
  /// Splits a message by the payloads' headers.
  Status split_payloads(std::uint32_t slot, const PieceList& pieces, std::uint64_t used,
                        PieceMemory& memory);
  Status decode_dense(const Task& task, PieceMemory& memory);
  Status add_gradient(const Task& task, PieceMemory& memory);
  Status finish(const Task& task, PieceMemory& memory);
  Status finish_by_list(const Task& task, PieceMemory& memory);
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

  // ---- device_tensors.cpp: the user's tensors ----
  std::span<float> sum_of(std::uint32_t piece) const;
  ConstTensorView value_of(std::uint32_t piece, Value which, PieceMemory& memory) const;
  /// The value in a form that lists take.
  Result<ConstTensorView> source(std::uint32_t piece, Value which, PieceMemory& memory);
  /// The value as f32, copied and converted if need be.
  Result<const std::uint8_t*> f32_source(std::uint32_t piece, Value which, PieceMemory& memory);
  Status copy_values(std::uint32_t piece, ConstTensorView view);
  /// Sets outputs_ to the arrays to which lists write a value of each piece.
  Status find_targets(const PieceList& pieces, Value which, PieceMemory& memory);
  Result<TensorView> target(std::uint32_t piece, Value which, PieceMemory& memory);
  /// Copies updates from `from`, by piece, to the user's tensors, which hold them when the step
  /// ends.
  Status give_updates(std::span<const std::uint32_t> pieces, std::span<const TensorView> from,
                      PieceMemory& memory);
  Status narrow_updates(std::span<const std::uint32_t> pieces, std::span<const TensorView> from,
                        DType dtype, PieceMemory& memory);
  Status give_update(std::uint32_t piece, const TensorView& from, PieceMemory& memory);
  /// `which`: twice the piece, plus one for its update.
  Status check_user(const void* data, std::size_t which);
  std::int64_t num_elems(std::uint32_t piece) const { return plan_.pieces[piece].num_elems; }
  std::size_t f32_bytes(std::uint32_t piece) const {
    return static_cast<std::size_t>(num_elems(piece)) * 4;
  }
  TensorView f32_view(std::uint8_t* data, std::uint32_t piece) const {
    return {data, kF32, num_elems(piece)};
  }

  const Plan& plan_;
  const std::unique_ptr<ComputeDevice> device_;
  DeviceTaskOptions options_;
  const RankPlan& own_;
  std::map<ListKey, List> lists_;
  std::unique_ptr<DeviceMemory> memory_;
  std::unique_ptr<DeviceWire> wire_;                 // null: on a host
  PinnedMemory pinned_;                              // messages in host memory
  std::vector<std::optional<SummedArrays>> summed_;  // by codec; none: its payloads cannot be added
  std::unique_ptr<DeviceSums> sums_;  // of payloads that stay on a GPU; null if there are none
  ProtocolParts protocols_;
  std::uint64_t step_ = 0;
  std::vector<bool> has_gradient_;  // by piece: has this step made its f32?
  // By check_user's number: the last address that was the device's
  std::vector<const void*> checked_;

  // Data of the running task; the vectors keep their memory.
  PieceList pieces_, synchronised_;
  std::vector<std::size_t> which_;
  std::vector<ConstTensorView> inputs_;
  std::vector<TensorView> outputs_;
  std::vector<std::span<float>> floats_;
  std::vector<PayloadSlot> payload_slots_;
  std::vector<PayloadBytes> payloads_;
  std::vector<TensorOutcome> outcomes_;
  std::vector<ArrayPair> pairs_;
  std::vector<std::size_t> offsets_, sizes_;
  std::vector<DeviceSum> sums_found_;
  std::vector<SumArray> wanted_;
  std::vector<std::span<const std::uint8_t>> joined_;
  std::vector<std::uint64_t> array_ends_;  // by array: where the next piece begins
};

}  // namespace cinch::rt
