// The tasks of one rank that compute, on a GPU: a session for each group of pieces and each site.
// All work goes on one stream. A task ends when it is on the stream; waited for is only what the
// host must know or have: payloads that are sent from its memory, and lengths that are known late.
#pragma once
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "runtime/gpu/arrays.h"
#include "runtime/gpu/session.h"
#include "runtime/sync/device_memory.h"
#include "runtime/sync/device_sums.h"
#include "runtime/sync/device_wire.h"
#include "runtime/sync/protocol_parts.h"
#include "runtime/sync/rank_tasks.h"
#include "runtime/sync/sum_tasks.h"
#include "runtime/sync/sync_device.h"

namespace cinch::rt {

struct DeviceTaskOptions {
  SyncDevice device;
  std::uint32_t world = 1, rank = 0;
  std::uint64_t seed = 0;
  Transport* transport = nullptr;
  std::span<std::uint8_t> host_wire = {};  // of the PieceMemory of all tasks; outlives them
};

class DeviceTasks : public RankTasks {
 public:
  /// `plan` outlives this. Errors: InvalidArgument (no program for the device), those of
  /// GpuSession::open.
  static Result<std::unique_ptr<RankTasks>> open(const Plan& plan,
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
  Status make_nan(std::uint32_t piece, PieceMemory& memory) override;
  void visit_states(const SiteVisitor& visit) override;

 private:
  // What one call takes: the pieces of a group, or, where ranks meet within it, each by itself.
  struct Unit {
    std::uint32_t codec = 0;
    Site site = Site::Worker;
    PieceList pieces;
    std::unique_ptr<GpuSession> session;
    bool is_kept = false;            // its states, at this step's begin
    std::vector<const Task*> begun;  // tasks with calls whose outcome nobody has asked for
  };
  class UnitStates;
  class Body;

  DeviceTasks(const Plan& plan, const DeviceTaskOptions& options);

  // ---- device_tasks.cpp ----
  Status start();
  Status open_wire();
  std::uint64_t gathered_bytes() const;
  std::uint64_t gathering_room(std::uint32_t slot) const {
    return round_up_to_arena(plan_.ranks[options_.rank].slots[slot].capacity);
  }
  void need_units(const Task& task);
  PieceList pieces_apart() const;
  Status open_unit(Unit& unit);
  const ProgramInfo& info_of(std::uint32_t codec) const {
    return options_.device.programs[codec]->info();
  }
  Unit& unit_of(std::uint32_t piece, Site site) { return units_.at({piece, site}); }
  /// Waits for the stream. Errors: those of the unit's last calls, with their piece; Device.
  Status collect(Unit& unit);
  /// Asks how the unit's calls went: now where the host has the wire, else at the step's end.
  Status check(Unit& unit, const Task& task);
  Status collect_begun(Unit& unit);
  Status wait() const;
  /// Of messages that are the host's memory: they may be other ones after this.
  Status wait_for_copies(std::span<const std::uint32_t> slots) const;
  std::mutex& turns() {
    return options_.device.turns == nullptr ? own_turns_ : *options_.device.turns;
  }

  // ---- device_run_tasks.cpp ----
  Status run_task(const Task& task, PieceMemory& memory);
  /// Its pieces, until the next task runs.
  const PieceList& listed(const Task& task);
  Status clear(const Task& task);
  Status encode(const Task& task, PieceMemory& memory);
  Status encode_group(const Task& task, std::size_t index, PieceMemory& memory);
  Status send_group(const Task& task, std::size_t index, PieceMemory& memory);
  Status close_group(const Task& task, std::size_t index, PieceMemory& memory);
  /// From where they were encoded to the slot; false: they were encoded there.
  bool is_gathered(const Task& task, std::size_t index) const;
  GpuAddress encoding_room(const Task& task, std::size_t index) const;
  /// Of a payload in a message: most bytes that it can have; those that it has, where payloads are
  /// packed and these do not depend on what is in them.
  Result<std::uint64_t> room_bytes(const Unit& unit, std::size_t index, std::uint32_t slot) const;
  bool is_packed(std::uint32_t slot) const {
    return plan_.ranks[options_.rank].slots[slot].length != kNoSlot;
  }
  bool has_known_sizes(const Unit& unit) const { return info_of(unit.codec).wire.counts.empty(); }
  Status encode_dense(const Task& task, PieceMemory& memory);
  Status decode(const Task& task, PieceMemory& memory);
  Status decode_group(const Task& task, std::size_t index, PieceMemory& memory);
  /// Sets payload_rooms_ to a message's payloads on the device.
  Status find_payloads(const Task& task, std::size_t index, const Unit& unit, PieceMemory& memory);
  Status copy_payloads_in(std::uint32_t slot, const PieceList& pieces, std::uint64_t used,
                          PieceMemory& memory);
  Status decode_dense(const Task& task, PieceMemory& memory);
  Status add_gradient(const Task& task, PieceMemory& memory);
  Status finish(const Task& task, PieceMemory& memory);
  Status finish_by_program(const Task& task, PieceMemory& memory);
  Status synchronise_piece(std::uint32_t piece, PieceMemory& memory, RankExchange& ranks);

  // ---- device_sum_tasks.cpp ----
  /// By codec: can its payloads be added up on the device?
  std::vector<bool> codecs_added_here() const;
  Status open_sums();
  Status spread(const Task& task, PieceMemory& memory);
  Status join(const Task& task, PieceMemory& memory);
  /// Sets sums_found_ to the task's payloads; `slots` have their arrays.
  Status find_sums(const Task& task, std::span<const std::uint32_t> slots, PieceMemory& memory);
  Status find_arrays(const SummedArrays& summed, std::uint32_t piece,
                     std::span<const std::uint32_t> slots, DeviceSum& sum);
  Status lay_out(const Task& task, std::uint32_t piece, PayloadLayout& layout);

  // ---- device_tensors.cpp: the user's tensors ----
  /// f32 of the piece's gradient, copied and converted where it must be.
  Result<GpuAddress> gradient(std::uint32_t piece, PieceMemory& memory);
  Status copy_gradient(std::uint32_t piece, ConstTensorView view);
  /// Where f32 of a value is to be written.
  Result<GpuAddress> target(std::uint32_t piece, Value which, PieceMemory& memory);
  Result<GpuAddress> source(std::uint32_t piece, Value which, PieceMemory& memory);
  /// From `from` (f32, by piece) to the user's tensors, which have them when the step ends.
  Status give_updates(std::span<const std::uint32_t> pieces, std::span<const GpuAddress> from,
                      PieceMemory& memory);
  Status narrow_updates(std::span<const std::uint32_t> pieces, std::span<const GpuAddress> from,
                        DType dtype, PieceMemory& memory);
  Status give_update(std::uint32_t piece, GpuAddress from, PieceMemory& memory);
  /// `which`: the piece, doubled, and one more for its update.
  Status check_user(const void* data, std::size_t which);

  Status copy_in(GpuAddress to, std::span<const std::uint8_t> from) const;
  Status copy_out(std::span<std::uint8_t> to, GpuAddress from) const;
  Status copy(GpuAddress to, GpuAddress from, std::size_t size_bytes) const;

  const Plan& plan_;
  DeviceTaskOptions options_;
  std::shared_ptr<const GpuDevice> device_;
  GpuStream stream_ = nullptr;
  bool owns_stream_ = false;
  std::mutex own_turns_;
  std::map<std::pair<std::uint32_t, Site>, Unit> units_;  // by first piece
  std::unique_ptr<GpuArrays> arrays_;
  std::unique_ptr<DeviceMemory> memory_;
  std::unique_ptr<DeviceWire> wire_;
  PinnedMemory pinned_;               // messages that are the host's memory
  SumTasks sums_of_payloads_;         // of those that lie on the host
  std::unique_ptr<DeviceSums> sums_;  // of the others; null: there are none
  ProtocolParts protocols_;
  std::uint64_t step_ = 0;
  std::vector<bool> has_gradient_;    // by piece: its f32 is there, in this step
  std::vector<const void*> checked_;  // by check_user's number: what was found to be the device's

  // Of the running task; they keep their memory.
  PieceList pieces_, synchronised_;
  std::vector<GpuAddress> inputs_, outputs_;
  std::vector<GpuPayload> payload_rooms_;
  std::vector<PayloadBytes> payloads_;
  std::vector<GpuArrayPair> pairs_;
  std::vector<std::uint64_t> sizes_;
  std::vector<DeviceSum> sums_found_;
  std::vector<std::uint64_t> array_ends_;  // by array: where the next piece's begins
};

}  // namespace cinch::rt
