// How gradients become averaged gradients, as plain data. Each rank has a graph of tasks over the
// values of pieces of tensors and over slots of one array of bytes, the wire. A plan knows neither
// transport nor compiler.
//
//   gradient ──encode──▶ slot ──exchange──▶ slots ──decode_add──▶ sum ──finish──▶ update
//
// Planners build plans (runtime/planner), check_plan.h checks them, and runtime/sync runs them. The
// primitives are those of CaSync (HiPress, SOSP 2021).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/collective/transport.h"
#include "runtime/core/error.h"
#include "runtime/core/numbers/dtype.h"

namespace cinch::rt {
/// For PlanTensor: sent as f32.
inline constexpr std::uint32_t kDense = UINT32_MAX;

/// A gradient that is averaged. All ranks have the same list.
struct PlanTensor {
  std::string name;
  std::int64_t rows = 0, cols = 1;
  std::uint32_t codec = kDense;  // index of the session's programs
  std::int32_t priority = 0;     // tensors of different priorities share no message
  /// By rank, the element at which the rank's part ends; each part begins where the part of the
  /// rank before ends. A rank gets only the update of its part. Empty: every rank gets the whole
  /// update.
  std::vector<std::int64_t> part_ends = {};
  std::string plan = {};  // its own, where tensors have several; empty: Plan::name
  /// Do ranks that compute on a GPU encode and decode it on their CPUs? Its values there are copies
  /// in host memory, and its states lie there. To other ranks it makes no difference.
  bool on_cpus = false;
  std::int64_t num_elems() const { return rows * cols; }
  friend bool operator==(const PlanTensor&, const PlanTensor&) = default;
};

/// For Group::carries.
inline constexpr std::uint32_t kNoGroup = UINT32_MAX;

/// Consecutive elements of one tensor. Its program treats them as a tensor of their own, with its
/// own draws; their states are slices of the tensor's.
struct Piece {
  std::uint32_t tensor = 0;
  std::uint32_t number = 0;  // within the tensor, from 0
  std::int64_t first = 0, num_elems = 0;
  std::uint64_t bound_bytes = 0;    // of its payload
  std::uint64_t carried_bytes = 0;  // of its sum's payload, if a carrier encodes that
  friend bool operator==(const Piece&, const Piece&) = default;
};

/// Pieces of one codec that are encoded in one call and travel in one message. Payloads begin at
/// multiples of kArenaAlignment. If the slot has a length they follow one another; otherwise each
/// begins where the largest payloads before it would end. May be empty.
struct Group {
  std::uint32_t codec = kDense;
  std::vector<std::uint32_t> pieces;
  /// The group whose sums this one carries: it has the same pieces, and its codec is the carrier of
  /// that group's (SumCarrier). Values belong to that group, payloads to this one.
  std::uint32_t carries = kNoGroup;
  /// Groups of one bundle are synchronised at once, and share tasks with no other bundle.
  std::uint32_t bundle = 0;
  friend bool operator==(const Group&, const Group&) = default;
};

/// A place where a program encodes. Each site has its own states and its own draws.
enum class Site : std::uint8_t {
  Worker,  // a rank's own gradient
  Hop,     // a partial sum on its way
  Owner,   // the result
  Return   // the result encoded again, for a second network
};

/// Values of a piece on one rank; f32, except the user's gradient and update.
enum class Value : std::uint8_t { Gradient, Sum, Update };

enum class TaskKind : std::uint8_t {
  Clear,      // sum = 0
  Encode,     // slots = payloads of the value `from`
  Decode,     // the value `to` = decoded slots
  DecodeAdd,  // sum += decoded slot
  Add,        // sum += gradient
  Scale,      // sum *= factor
  Finish,     // the value `to` = finish(sum)
  Spread,     // slots = arrays that the transport adds up, from a slot's payloads
  Join,       // slot = the joined payloads, from those of one rank and the arrays
  Exchange,   // slots to slots, by `exchange`
  Part,       // the `sync` of a program, from one meeting of the ranks to the next
  // A whole `sync` whose meetings are only known as it runs: it makes exchanges of its own
  Synchronise,
  // Of PlanTensor::on_cpus; nothing to do where the tensors lie in host memory:
  Fetch,   // the gradient on the CPUs = the gradient on the GPU
  Deliver  // the update on the GPU = the update on the CPUs
};

/// Parts of a piece are numbered from 0. Each part except the last ends at a collective, given by
/// `exchange`, `reduction`, `dtype` and `peer`; one exchange makes it for several pieces. Each part
/// except the first begins with the result of that collective. The last part, whose `exchange` is
/// Send, alone writes the update and the states. Ranks tell each other how their calls went when
/// the step ends.

/// Tasks of one lane run one at a time; the lanes run at once. On a rank without a GPU all lanes
/// but Network are one.
enum class Lane : std::uint8_t { Compute, Network, Cpus, CopyOut, CopyIn };
inline constexpr std::size_t kNumLanes = 5;

inline constexpr std::uint32_t kNoSlot = UINT32_MAX;

/// Bytes of the wire. If `length` is a slot, that slot (8 bytes) holds the number of bytes in use.
struct Slot {
  std::uint64_t offset = 0, capacity = 0;
  std::uint32_t length = kNoSlot;
  friend bool operator==(const Slot&, const Slot&) = default;
};

struct Task {
  TaskKind kind = TaskKind::Encode;
  /// For Encode and Decode a slot for each group; otherwise one group. For Part a group of one
  /// piece.
  std::vector<std::uint32_t> groups;
  // The site that encodes; for decoding: the site that encoded the payload
  Site site = Site::Worker;
  Value from = Value::Gradient, to = Value::Update;
  bool is_dense = false;  // encodes and decodes plain f32, whatever codec the groups have
  bool on_cpus = false;   // as its groups' tensors (PlanTensor::on_cpus)
  float factor = 1;       // of Scale
  /// Slots. For exchanges: Send, AllReduce, AllGather read one; AllToAll reads one for each rank;
  /// Receive, AllReduce write one; AllGather, AllToAll write one for each rank; Broadcast writes
  /// one, which its root also reads.
  /// For Part: it reads what the collective before it wrote, and writes what the next one reads
  /// (for Broadcast, only on its root). A collective's slots lie over those of its parts, side by
  /// side.
  std::vector<std::uint32_t> reads, writes;
  std::uint32_t part = 0;
  ExchangeKind exchange = ExchangeKind::Send;
  std::uint32_t peer = 0;
  RankReduction reduction = RankReduction::None;
  DType dtype = kF32;
  /// Slots with a length send only the bytes in use; otherwise they send all bytes.
  bool is_sized = false;
  std::vector<std::uint32_t> after;  // tasks with lower indices
  /// More than that of every exchange that it waits for. All ranks of an exchange give it the same
  /// round, so they agree on an order of exchanges by bundle and round, and no exchange waits for a
  /// later one in it.
  std::uint32_t round = 0;

  Lane lane() const {
    if (kind == TaskKind::Exchange || kind == TaskKind::Synchronise) return Lane::Network;
    if (kind == TaskKind::Fetch) return Lane::CopyOut;
    if (kind == TaskKind::Deliver) return Lane::CopyIn;
    return on_cpus ? Lane::Cpus : Lane::Compute;
  }
  bool is_last_part() const { return kind == TaskKind::Part && exchange == ExchangeKind::Send; }
  friend bool operator==(const Task&, const Task&) = default;
};

/// What one rank does. Exchanges start in the order of the tasks.
struct RankPlan {
  std::vector<Slot> slots;
  std::vector<Task> tasks;
  std::uint64_t wire_bytes = 0;
  friend bool operator==(const RankPlan&, const RankPlan&) = default;
};

/// A rank of many needs no other rank's tasks, which would be too many: the lists of other ranks
/// may then be empty, except rank 0's.
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

/// The group whose values the tasks of `group` read and write.
inline std::uint32_t group_of_values(const Plan& plan, std::uint32_t group) {
  const std::uint32_t carried = plan.groups[group].carries;
  return carried == kNoGroup ? group : carried;
}
/// The largest payload of one of the group's pieces, in bytes.
inline std::uint64_t payload_room(const Group& group, const Piece& piece) {
  return group.carries == kNoGroup ? piece.bound_bytes : piece.carried_bytes;
}

/// Does the rank encode the group's payloads on its CPUs, even if it computes on a GPU?
bool is_on_cpus(const Plan& plan, std::uint32_t group);

const char* task_kind_name(TaskKind kind);
const char* lane_name(Lane lane);
const char* site_name(Site site);
const char* value_name(Value value);

/// "fc1", or "fc1#2" if the tensor is cut: the piece's name for people.
std::string describe_piece(const Plan& plan, std::uint32_t piece);
/// The task as text: "encode worker of fc1[0..4096], fc2".
std::string describe_task(const Plan& plan, const Task& task);

// Plans as text: JSON that can be read back, and lines for people.

/// Bytes in names that are not UTF-8 are replaced; such a tensor is not found again.
std::string plan_to_json(const Plan& plan);
/// Parses a plan without checking it. Errors: CorruptFile (not the JSON of a plan).
Result<Plan> plan_from_json(std::string_view text);
/// A line per task of one rank.
std::string print_plan(const Plan& plan, std::uint32_t rank);

/// A digest of what all ranks have of a plan: everything but the tasks of ranks other than rank 0.
/// The same on every machine. Ranks that write the same tasks for rank 0 have the same planner and
/// the same request, so their own tasks fit together.
std::uint64_t plan_digest(const Plan& plan);

/// What states of partial sums go with: the plan's name and, where tensors have several plans, a
/// number that follows from all of them.
std::string plan_of_sums(const Plan& plan);

}  // namespace cinch::rt
