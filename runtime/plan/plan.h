// How gradients become averaged gradients, as plain data: for each rank a graph of tasks over the
// values of pieces of tensors and over slots of one array of bytes, the wire. Nothing in it knows a
// transport or a compiler.
//
//   gradient ──encode──▶ slot ──exchange──▶ slots ──decode_add──▶ sum ──finish──▶ update
//
// Planners build plans (runtime/planner), check_plan.h says whether one can be trusted, and
// runtime/sync runs it. The primitives are CaSync's (HiPress, SOSP 2021).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/collective/transport.h"
#include "runtime/core/numbers/dtype.h"

namespace cinch::rt {

/// Of PlanTensor: sent as it is, in f32.
inline constexpr std::uint32_t kDense = UINT32_MAX;

/// A gradient that is averaged. All ranks have the same list.
struct PlanTensor {
  std::string name;
  std::int64_t rows = 0, cols = 1;
  std::uint32_t codec = kDense;  // index of the session's programs
  std::int32_t priority = 0;     // those of different ones share no message
  /// By rank, where the elements end that are its part, behind those of the ranks before it: it
  /// alone gets their update. Empty: every rank gets the whole update.
  std::vector<std::int64_t> part_ends = {};
  std::int64_t num_elems() const { return rows * cols; }
  friend bool operator==(const PlanTensor&, const PlanTensor&) = default;
};

/// Consecutive elements of one tensor: to its program a tensor of their own, with its own draws;
/// its states are slices of the tensor's.
struct Piece {
  std::uint32_t tensor = 0;
  std::uint32_t number = 0;  // within the tensor, from 0
  std::int64_t first = 0, num_elems = 0;
  std::uint64_t bound_bytes = 0;  // of its payload
  friend bool operator==(const Piece&, const Piece&) = default;
};

/// Pieces of one codec that are encoded in one call and travel in one message: their payloads each
/// at a multiple of kArenaAlignment, one behind the other where a slot has a length, else each
/// where those before it end at the latest. May be empty.
struct Group {
  std::uint32_t codec = kDense;
  std::vector<std::uint32_t> pieces;
  friend bool operator==(const Group&, const Group&) = default;
};

/// Where a program encodes: each site has its own states, and draws of its own.
enum class Site : std::uint8_t {
  Worker,  // a rank's own gradient
  Hop,     // a partial sum on its way
  Owner,   // the result
  Return   // the result once more, for a second network
};

/// Values of a piece on one rank, f32 but for the user's gradient and update.
enum class Value : std::uint8_t { Gradient, Sum, Update };

enum class TaskKind : std::uint8_t {
  Clear,        // sum = 0
  Encode,       // slots = payloads of the value `from`
  Decode,       // the value `to` = decoded slots
  DecodeAdd,    // sum += decoded slot
  Add,          // sum += gradient
  Finish,       // the value `to` = finish(sum)
  Spread,       // slots = arrays that the transport adds up, of a slot's payloads
  Join,         // slot = the payloads that stand for all ranks', of one rank's and the arrays
  Exchange,     // slots to slots, by `exchange`
  Part,         // the `sync` of a program, from one meeting of the ranks to the next
  Synchronise,  // all of a `sync` whose meetings only show on the way: exchanges of its own
};

/// Parts of a piece are numbered from 0. Each but the last ends at the collective of `exchange`,
/// `reduction`, `dtype` and `peer`, which one exchange makes for several pieces; each but the first
/// begins with what that gave. The last one, whose `exchange` is Send, alone writes the update and
/// the states. How the ranks' calls went they tell each other when the step ends.

/// Tasks of one lane run one at a time; lanes run at once.
enum class Lane : std::uint8_t { Compute, Network };

inline constexpr std::uint32_t kNoSlot = UINT32_MAX;

/// Bytes of the wire. Where `length` is a slot, that one (8 bytes) says how many of them are in
/// use.
struct Slot {
  std::uint64_t offset = 0, capacity = 0;
  std::uint32_t length = kNoSlot;
  friend bool operator==(const Slot&, const Slot&) = default;
};

struct Task {
  TaskKind kind = TaskKind::Encode;
  /// Of Encode and Decode a slot for each; else one. Of Part one of one piece.
  std::vector<std::uint32_t> groups;
  Site site = Site::Worker;  // where it encodes; of decoding: where the payload was encoded
  Value from = Value::Gradient, to = Value::Update;
  bool is_dense = false;  // encodes and decodes plain f32, whatever codec the groups have
  /// Slots. Of exchanges: Send, AllReduce, AllGather: one read; AllToAll: a read for each rank;
  /// Receive, AllReduce: one written; AllGather, AllToAll: one for each rank; Broadcast: one
  /// written, by its root read as well.
  /// Of Part: read, what the collective before it wrote; written, what the next one reads, which of
  /// Broadcast its root alone has. A collective's slots lie over those of its parts, side by side.
  std::vector<std::uint32_t> reads, writes;
  std::uint32_t part = 0;
  ExchangeKind exchange = ExchangeKind::Send;
  std::uint32_t peer = 0;
  RankReduction reduction = RankReduction::None;
  DType dtype = kF32;
  /// Slots with a length travel no longer than that; else as long as there is room.
  bool is_sized = false;
  std::vector<std::uint32_t> after;  // tasks, each with a lower index

  Lane lane() const {
    const bool meets = kind == TaskKind::Exchange || kind == TaskKind::Synchronise;
    return meets ? Lane::Network : Lane::Compute;
  }
  bool is_last_part() const { return kind == TaskKind::Part && exchange == ExchangeKind::Send; }
  friend bool operator==(const Task&, const Task&) = default;
};

/// What one rank does. Exchanges are started in the order of tasks.
struct RankPlan {
  std::vector<Slot> slots;
  std::vector<Task> tasks;
  std::uint64_t wire_bytes = 0;
  friend bool operator==(const RankPlan&, const RankPlan&) = default;
};

struct Plan {
  std::string name;  // "two_shot"
  std::vector<PlanTensor> tensors;
  std::vector<Piece> pieces;
  std::vector<Group> groups;
  std::vector<RankPlan> ranks;
  std::uint32_t world() const { return static_cast<std::uint32_t>(ranks.size()); }
  friend bool operator==(const Plan&, const Plan&) = default;
};

/// The elements whose update a rank gets.
struct ElementRange {
  std::int64_t first = 0, num_elems = 0;
};
ElementRange updated_part(const PlanTensor& tensor, std::uint32_t rank);

const char* task_kind_name(TaskKind kind);
const char* site_name(Site site);
const char* value_name(Value value);

/// "fc1", and "fc1#2" where the tensor is cut: what a person is told of a piece.
std::string describe_piece(const Plan& plan, std::uint32_t piece);
/// "encode worker of fc1[0..4096], fc2": of a task.
std::string describe_task(const Plan& plan, const Task& task);

}  // namespace cinch::rt
