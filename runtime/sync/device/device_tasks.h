// The computing tasks of one rank on its device: for each codec and site a list of sessions. On a
// GPU all work goes on one stream, and a task ends when its work is on the stream. The host waits
// only for what it must know or have: payloads that are sent from its memory, and lengths that are
// known late. On a host tasks of both lanes run at once, so a protocol uses nothing that tasks
// share.
#pragma once

#include <tuple>

#include "runtime/gpu/device.h"
#include "runtime/sync/device/device_sums.h"
#include "runtime/sync/plan_runner.h"

namespace cinch::rt {
// Memory of a step's values on a device: the wire, sums, and f32 copies of the user's tensors if
// these lie elsewhere or have another type.

struct DeviceMemoryNeeds {
  DevicePart part = DevicePart::All;
  PieceList apart;                   // pieces whose result may not overwrite its input
  std::uint64_t gathered_bytes = 0;  // size of gathering()
  std::span<std::uint8_t> wire;      // the wire of a host, which has no other; outlives the memory
};

class DeviceMemory {
 public:
  /// `plan` and `device` outlive this. Errors: OutOfMemory, Device.
  static Result<DeviceMemory> make(const Plan& plan, std::uint32_t rank, ComputeDevice& device,
                                   const DeviceMemoryNeeds& needs);

  std::span<std::uint8_t> wire() const { return wire_; }
  /// Place of payloads before they are joined.
  std::uint8_t* gathering() const { return gathering_; }

  std::uint8_t* slot(std::uint32_t slot) const { return wire_.data() + own_->slots[slot].offset; }
  /// f32; null if no task of this rank adds up the piece, or if it has no elements.
  std::uint8_t* sum(std::uint32_t piece) const { return sums_[piece]; }
  std::uint8_t* apart(std::uint32_t piece) const { return apart_[piece]; }
  /// f32 of the gradient, later of the update: a plan reads no gradient after it wrote the update.
  /// On a GPU the first call makes memory for all pieces. Errors: OutOfMemory, Device.
  Result<std::uint8_t*> values(std::uint32_t piece) { return copy_of(values_, piece); }
  /// The same as f16 or bf16.
  Result<std::uint8_t*> halves(std::uint32_t piece) { return copy_of(halves_, piece); }
  /// f32 of an input, on its way to the sessions.
  Result<std::uint8_t*> input(std::uint32_t piece) { return copy_of(inputs_, piece); }

 private:
  // Memory that the first request makes.
  struct Copies {
    std::int64_t element_bytes = 0;
    std::vector<std::uint8_t*> pieces;
    std::vector<MemoryPieces> memory;
  };
  DeviceMemory(const Plan& plan, std::uint32_t rank, ComputeDevice& device, DevicePart part);
  Result<std::uint8_t*> copy_of(Copies& copies, std::uint32_t piece);

  const Plan* plan_;
  const RankPlan* own_;
  ComputeDevice* device_;
  DevicePart part_;
  MemoryPieces memory_;
  std::span<std::uint8_t> wire_;
  std::uint8_t* gathering_ = nullptr;
  std::vector<std::uint8_t*> sums_, apart_;  // by piece
  Copies values_, halves_, inputs_;
};

// The sessions of a rank on its device: a list for each codec and site.

/// The sessions of one codec at one site. On a host a list has all pieces there. On a GPU, where
/// one launch serves a list, it has the pieces of a group, or one piece that meets other ranks.
struct DeviceList {
  static constexpr std::uint32_t kNoEntry = UINT32_MAX;

  PieceList pieces;                      // by entry
  std::vector<std::uint32_t> entries;    // by piece; kNoEntry: none
  std::vector<std::uint64_t> bounds;     // by entry: the largest payload in this step
  std::vector<std::uint8_t> has_inputs;  // by entry: in this step
  bool only_decodes = false;             // holds no states
  std::unique_ptr<ListSession> sessions;
  std::vector<const Task*> begun;  // tasks whose calls were begun and not yet collected

  std::size_t entry_of(std::uint32_t piece) const { return entries[piece]; }
  bool has(std::uint32_t piece) const {
    return piece < entries.size() && entries[piece] != kNoEntry;
  }
  /// Adds a piece that it does not have.
  void add(std::uint32_t piece);
};

class DeviceLists {
 public:
  // Codec, site, and on a GPU the first piece.
  using Key = std::tuple<std::uint32_t, Site, std::uint32_t>;
  /// What sessions are told of their rank.
  struct Rank {
    std::uint32_t world = 1, rank = 0;
    std::uint32_t machine_ranks = 0;  // SessionOptions::machine_ranks
    std::uint64_t seed = 0;
  };

  /// `plan` and `device` outlive this.
  DeviceLists(const Plan& plan, ComputeDevice& device, const Rank& rank)
      : plan_(plan), device_(device), rank_(rank) {
    for (std::uint32_t codec = 0; codec < device.num_programs(); ++codec)
      carried_.push_back(codec_carried_by(plan, codec));
  }

  /// Notes the sessions that a task needs; `open` then opens them all.
  void need(const Task& task);
  Status open();
  Status open(std::uint32_t codec, Site site, DeviceList& list);
  void close() { lists_.clear(); }
  bool is_carrier(std::uint32_t codec) const { return carried_[codec].has_value(); }

  std::map<Key, DeviceList>& all() { return lists_; }
  const std::map<Key, DeviceList>& all() const { return lists_; }
  /// The list of the pieces of one of the task's groups.
  DeviceList& of(const Task& task, Site site, std::uint32_t first_piece) {
    return lists_.at(key_of(codec_of(plan_, task), site, first_piece));
  }

  /// Calls on_list(list, pieces, place) for each list that has pieces of the task. The pieces of a
  /// list are consecutive in the task, from `place` on.
  template <typename OnList>
  Status for_each(const Task& task, Site site, const OnList& on_list);

  /// Names the piece at fault.
  Status named(const ListStatus& status, const PieceList& pieces) const;
  /// Valid until the next call.
  ListCall call_on(const DeviceList& list, const PieceList& pieces, std::uint64_t step);
  /// Waits for the stream and sets outcomes(). Errors: those of the pieces' last calls, named.
  Status collect(DeviceList& list);
  /// By entry of the list that was collected last.
  const std::vector<TensorOutcome>& outcomes() const { return outcomes_; }
  /// Checks how a call of the task, or all of them, went: now, or at the step's end if
  /// `is_deferred`.
  Status check(DeviceList& list, const Task& task, bool is_deferred);
  Status check(const Task& task, Site site, bool is_deferred);
  /// Checks those that were deferred.
  Status collect_begun();

 private:
  Key key_of(std::uint32_t codec, Site site, std::uint32_t first_piece) const {
    return {codec, site, device_.is_host() ? 0 : first_piece};
  }
  Status collect_begun(DeviceList& list);

  const Plan& plan_;
  ComputeDevice& device_;
  Rank rank_;
  std::map<Key, DeviceList> lists_;
  // By codec: the codec whose sums it carries, if any
  std::vector<std::optional<std::uint32_t>> carried_;
  // Data of the running call; the vectors keep their memory.
  PieceList pieces_;
  std::vector<std::size_t> which_;
  std::vector<TensorOutcome> outcomes_;
};

template <typename OnList>
Status DeviceLists::for_each(const Task& task, Site site, const OnList& on_list) {
  const std::size_t num_groups = task.groups.size(), count = device_.is_host() ? num_groups : 1;
  std::size_t place = 0;
  for (std::size_t begin = 0; begin < num_groups; begin += count) {
    if (device_.is_host()) list_pieces(plan_, task, pieces_);
    const PieceList& pieces = device_.is_host() ? pieces_ : plan_.groups[task.groups[begin]].pieces;
    if (pieces.empty()) continue;
    CINCH_TRY(on_list(of(task, site, pieces[0]), pieces, place));
    place += pieces.size();
  }
  return Ok{};
}

// The user's tensors of a rank, and the sums that its tasks make, as lists of sessions take them.
// The tensors lie in memory of the host or of the device, as f32 or narrower.

class DeviceTensors {
 public:
  struct Options {
    bool has_tensors = true;   // as in DeviceTaskOptions
    bool is_deferred = false;  // does a task end when its work is on the stream?
  };
  /// All outlive this.
  DeviceTensors(const Plan& plan, ComputeDevice& device, DeviceMemory& memory, Options options);

  /// Forgets what the step before has made of the gradients.
  void begin_step() { has_gradient_.assign(plan_.pieces.size(), false); }

  std::int64_t num_elems(std::uint32_t piece) const { return plan_.pieces[piece].num_elems; }
  std::size_t f32_bytes(std::uint32_t piece) const {
    return static_cast<std::size_t>(num_elems(piece)) * 4;
  }
  TensorView f32_view(std::uint8_t* data, std::uint32_t piece) const {
    return {data, kF32, num_elems(piece)};
  }

  std::span<float> sum_of(std::uint32_t piece) const;
  ConstTensorView value_of(std::uint32_t piece, Value which, PieceMemory& memory) const;
  /// The value in a form that lists take.
  Result<ConstTensorView> source(std::uint32_t piece, Value which, PieceMemory& memory);
  /// The piece's part of an input, in a form that lists take.
  Result<ConstTensorView> input(std::uint32_t piece, std::string_view name,
                                const PieceMemory& memory);
  /// The value as f32, copied and converted if need be.
  Result<const std::uint8_t*> f32_source(std::uint32_t piece, Value which, PieceMemory& memory);
  /// Sets `targets` to the arrays to which lists write a value of each piece.
  Status find_targets(const PieceList& pieces, Value which, PieceMemory& memory,
                      std::vector<TensorView>& targets);
  /// Copies updates from `from`, by piece, to the user's tensors, which hold them when the step
  /// ends.
  Status give_updates(std::span<const std::uint32_t> pieces, std::span<const TensorView> from,
                      PieceMemory& memory);

 private:
  Status copy_values(std::uint32_t piece, ConstTensorView view);
  Result<TensorView> target(std::uint32_t piece, Value which, PieceMemory& memory);
  Status narrow_updates(std::span<const std::uint32_t> pieces, std::span<const TensorView> from,
                        DType dtype, PieceMemory& memory);
  Status give_update(std::uint32_t piece, const TensorView& from, PieceMemory& memory);
  /// `which`: twice the piece, plus one for its update.
  Status check_user(const void* data, std::size_t which);

  const Plan& plan_;
  ComputeDevice& device_;
  DeviceMemory& memory_;
  Options options_;
  std::vector<bool> has_gradient_;  // by piece: has this step made its f32?
  // By check_user's number: the last address that was the device's
  std::vector<const void*> checked_;
  std::vector<ArrayPair> pairs_;  // of the running call; keeps its memory
};

// The part of a rank's wire that stays on its device. Exchanges use it there, after tasks that may
// only have been put on the stream. The rest of the wire lies on the host: lengths, outcomes of
// `sync` calls, exchanges of kinds that the transport does not take from a device, payloads that
// the CPUs encode, and payloads that the host adds up (Spread, Join). If the transport does not
// take the device's memory at all, all of the wire lies on the host.

class DeviceWire {
 public:
  /// Opens the wire. `plan` and `transport` outlive this; destroy it before the memory. Whoever
  /// opens or ends it holds the device's turn. `adds_there`: by codec, whether its payloads are
  /// added on the device. Errors: OutOfMemory, Device.
  static Result<std::unique_ptr<DeviceWire>> open(const Plan& plan, const LentMemory& wire,
                                                  GpuStream stream, Transport& transport,
                                                  const std::vector<bool>& adds_there);
  ~DeviceWire();
  DeviceWire(const DeviceWire&) = delete;
  DeviceWire& operator=(const DeviceWire&) = delete;

  /// Does any part of the wire lie on the device?
  bool is_used() const { return is_used_; }
  bool has(std::uint32_t slot) const { return is_used_ && !is_on_host_[slot]; }

  /// Records the end of the task's work on the stream. Call it in the device's turn.
  Status mark_end(const Task& task);
  /// The place for an exchange; all tasks before it must have been marked.
  Result<WirePlace> place_of(const Task& exchange, PieceMemory& memory);

 private:
  DeviceWire(const Plan& plan, LentMemory wire, GpuStream stream, Transport& transport);
  Status make_events();
  bool has_slots_of(const Task& exchange) const;
  std::size_t index_of(const Task& task) const {
    return static_cast<std::size_t>(&task - own_.tasks.data());
  }

  const RankPlan& own_;
  const LentMemory wire_;
  const GpuDevice* device_;
  GpuStream stream_;
  Transport& transport_;
  bool is_used_ = false;
  std::vector<bool> is_on_host_;  // by slot
  std::vector<GpuEvent> ends_;    // by task: an event at its end; null: no exchange waits for it
  // A stream that has only the waits of exchanges, so that an exchange does not wait for later work
  // on the rank's stream.
  GpuStream order_ = nullptr;
};

struct DeviceTaskOptions {
  std::uint32_t world = 1, rank = 0;
  std::uint32_t machine_ranks = 0;  // SessionOptions::machine_ranks
  std::uint64_t seed = 0;
  /// Do gradients and updates lie in the device's memory (as on a host)? Otherwise they are copied
  /// there and back.
  bool has_tensors = true;
  Transport* transport = nullptr;
  std::span<std::uint8_t> host_wire = {};  // of the PieceMemory of all tasks; outlives them
  DevicePart part = DevicePart::All;       // of the tasks; another device has the others
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
  bool takes(const Task& task) const { return is_part(options_.part, task.on_cpus); }

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
  /// Hands the program's arrays of this step to the sessions of these pieces, once.
  Status give_inputs(DeviceList& list, std::span<const std::uint32_t> pieces,
                     const PieceMemory& memory);
  Status encode(const Task& task, PieceMemory& memory);
  /// Adds to inputs_ and payload_slots_.
  Status make_rooms(const Task& task, std::size_t index, PieceMemory& memory);
  /// `first`: index of the group's payloads in payload_slots_.
  Status close_message(const Task& task, std::size_t index, std::size_t first, PieceMemory& memory);
  void close_in_place(std::uint32_t slot, std::span<const PayloadSlot> payloads,
                      PieceMemory& memory);
  /// Are payloads copied to the slot after encoding? False: they were encoded in place.
  bool is_gathered(const Task& task, std::size_t index) const;
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

  // ---- device_memory.cpp ----
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
