// The inside of a session on a GPU: parts for each job, over what all share. Tables are written on
// the host, sent where they changed, and then all launches of a call are enqueued.
#pragma once

#include "runtime/call/joins.h"
#include "runtime/call/state_file.h"
#include "runtime/gpu/session/core.h"

namespace cinch::rt {
// States of a session on a GPU, wherever the device has them now, and as they were before a step. A
// call writes the next states beside the present ones and then says which are which; so they are
// taken back by that word, but where a program needs copies.

class GpuStates : public GpuSessionPart {
 public:
  GpuStates(GpuSessionCore& core, GpuSessionMemory& memory)
      : GpuSessionPart(core), memory_(memory) {}

  /// When a session opens: asks for memory of copies.
  void measure();

  Result<std::vector<std::vector<std::uint8_t>>> read(std::size_t tensor, GpuStream stream);
  Result<std::vector<std::uint8_t>> as_bytes(std::size_t tensor, GpuStream stream);
  Status set(std::size_t tensor, std::span<const std::uint8_t> bytes, GpuStream stream);
  /// Copies an input from memory of the device.
  Status set_input(std::size_t tensor, std::string_view name, const ConstTensorView& array,
                   GpuStream stream);

  /// In the order of calls.
  Status keep(GpuStream stream);
  Status take_back(std::size_t first, std::size_t count, GpuStream stream);

 private:
  // What keep() copies, and where to.
  struct Kept {
    GpuArena::Piece own = 0, copy = 0;
    std::size_t first_tensor = 0, num_tensors = 0;  // equal shares of it are theirs
  };

  Result<std::vector<GpuAddress>> addresses(std::size_t tensor, GpuStream stream);
  StateFileKey key(std::size_t tensor) const;
  Status check_keeps() const;
  Status copy(GpuAddress to, GpuAddress from, std::size_t size, GpuStream stream) const;

  GpuSessionMemory& memory_;
  std::vector<Kept> kept_;
};

// A synchronisation on a GPU, of one tensor: launches as in any other call, and between them ranks
// that meet: in parts where the caller brings them together, else over the host, whose memory what
// is sent and received goes through.

class GpuSync : public GpuSessionPart {
 public:
  GpuSync(GpuSessionCore& core, const GpuSessionMemory& memory, GpuCalls& calls)
      : GpuSessionPart(core), memory_(memory), calls_(calls) {}

  Status sync(ConstTensorView gradient, TensorView update, std::uint64_t step, RankExchange& ranks);
  Result<std::optional<RankPoint>> begin(ConstTensorView gradient, TensorView update,
                                         std::uint64_t step);
  Result<std::optional<RankPoint>> proceed(RankStatus all);

 private:
  using StatusWords = std::array<std::uint32_t, kStatusWords>;
  /// Of one that is under way.
  struct Syncing {
    bool is_under_way = false;
    std::uint64_t step = 0;
    GpuStream stream = nullptr;
    GpuAddress update = 0;
    std::size_t batch = 0;  // the next one, or where ranks wait
    StatusWords words{};
    bool is_over = false;  // a status other than Good is known to all
  };

  /// Over the host, for who does not bring the ranks together himself.
  Result<RankStatus> meet(const RankPoint& point, RankExchange& ranks) const;
  Result<std::optional<RankPoint>> run_to_point();
  /// Where ranks wait at it, if they do.
  Result<std::optional<RankPoint>> point_at(const PlannedLaunch& meeting);
  Result<CollectiveCall> call_at(const PlannedLaunch& meeting) const;
  Status launch_rest(const GpuBatch& batch);
  /// As kernels look at them. Errors: those of formulas, Device.
  Result<bool> hold(const std::vector<GpuCondition>& conditions) const;

  const GpuSessionMemory& memory_;
  GpuCalls& calls_;
  Syncing syncing_;
};

// A session on a GPU as a list: views become addresses, and the stream is the one that was named
// last.

class GpuViews : public GpuSessionPart {
 public:
  GpuViews(GpuSessionCore& core, GpuCalls& calls) : GpuSessionPart(core), calls_(calls) {}

  /// When a session opens: calls allocate nothing.
  void reserve();

  ListStatus encode(const ListCall& call, std::span<const ConstTensorView> gradients,
                    std::span<PayloadSlot> payloads);
  ListStatus decode(const ListCall& call, std::span<const PayloadBytes> payloads,
                    std::span<const TensorView> outputs);
  ListStatus decode_add(const ListCall& call, std::span<const PayloadBytes> payloads,
                        std::span<const std::span<float>> outputs);
  ListStatus finish(const ListCall& call, std::span<const std::span<float>> sums,
                    std::span<const TensorView> updates);

 private:
  template <typename Read>
  ListStatus call_list(EntryKind kind, const ListCall& on, const Read& read);
  template <typename View>
  ListStatus decode_list(EntryKind kind, const ListCall& call,
                         std::span<const PayloadBytes> payloads, std::span<const View> outputs,
                         DType dtype);
  /// Adds to the arrays of a call. Errors: InvalidArgument, with the place.
  template <typename View>
  ListStatus read_views(std::span<const View> views, DType dtype,
                        std::vector<GpuAddress>& to) const;
  ListStatus read_payload(PayloadBytes bytes);

  GpuCalls& calls_;
  // Of the call that is made.
  std::vector<GpuAddress> from_, to_;
  std::vector<GpuPayload> payloads_;
};

struct GpuSession::Impl {
  Impl(std::shared_ptr<const GpuProgram> program, const GpuSessionOptions& options)
      : core(std::move(program), options) {}
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Status open(GpuStream stream);
  /// Makes a call, one at a time.
  template <typename Call>
  auto use(const Call& call) {
    return guarded_use(core.in_use, call);
  }

  GpuSessionCore core;
  GpuSessionMemory memory{core};
  GpuBlocks blocks{core, memory};
  GpuCalls calls{core, memory, blocks};
  GpuStates states{core, memory};
  GpuSync sync{core, memory, calls};
  GpuViews views{core, calls};
};

// Plans what each kind of call does, when a session opens: the steps of the program's entry, and
// the services around them. Fills the tables, plans and bounds of the core. Errors: as of
// GpuSession::open.
Status plan_calls(GpuSessionCore& core);

}  // namespace cinch::rt
