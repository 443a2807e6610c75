// Pieces, groups and bundles; see builders.h.
#include <algorithm>

#include "runtime/call/list_session.h"
#include "runtime/call/parameters.h"
#include "runtime/call/tensor_facts.h"
#include "runtime/payload/payload.h"
#include "runtime/planner/builders/builders.h"

namespace cinch::rt {
namespace {

constexpr std::uint64_t kElementBytes = 4;
// Large tensors are cut at multiples of this: whole tiles of kernels.
constexpr std::int64_t kCutElements = 1024;
// A tensor with this much for each owner is divided between owners; smaller ones are combined.
constexpr std::uint64_t kSharedBytes = 16 << 10;

class Layout {
 public:
  Layout(const PlanRequest& request, std::span<const LaidRoute> routes, Plan& plan,
         std::vector<WholeTensor>* wholes)
      : request_(request), routes_(routes), plan_(plan), wholes_(wholes) {}

  Result<std::vector<Bundle>> run() {
    for (std::uint32_t t = 0; t < plan_.tensors.size(); ++t) {
      const bool must_be_alone = gradient_bytes(t) >= piece_bytes(t);
      CINCH_TRY(has_sync(t) ? add_protocol(t) : must_be_alone ? add_alone(t) : add_to_open(t));
    }
    // A bundle can be sent when the last of its tensors is ready.
    std::ranges::stable_sort(bundles_, {}, [this](const Bundle& bundle) {
      std::uint32_t last = 0;
      for (const std::uint32_t group : bundle.groups) {
        for (const std::uint32_t piece : plan_.groups[group].pieces) {
          last = std::max(last, plan_.pieces[piece].tensor);
        }
      }
      return last;
    });
    return std::move(bundles_);
  }

 private:
  const PlanTensor& tensor(std::uint32_t index) const { return plan_.tensors[index]; }
  const LaidRoute& route(std::uint32_t index) const { return routes_[route_of(request_, index)]; }
  std::uint32_t num_owners(std::uint32_t index) const { return route(index).num_owners; }
  // Those that are not written, too.
  std::uint32_t num_all_owners(std::uint32_t index) const {
    return route(index).are_all_ranks ? request_.whole_world() : num_owners(index);
  }
  std::uint64_t piece_bytes(std::uint32_t index) const { return route(index).route.piece_bytes; }
  bool can_cut(std::uint32_t index) const {
    const std::uint32_t codec = tensor(index).codec;
    return codec == kDense || request_.codecs[codec].can_cut;
  }
  std::uint64_t gradient_bytes(std::uint32_t index) const {
    return kElementBytes * static_cast<std::uint64_t>(tensor(index).num_elems());
  }
  bool has_sync(std::uint32_t index) const {
    const std::uint32_t codec = tensor(index).codec;
    return codec != kDense && request_.codecs[codec].has_sync;
  }
  bool is_scattered(std::uint32_t index) const { return !tensor(index).part_ends.empty(); }
  bool is_shared(std::uint32_t index) const {
    if (is_scattered(index)) return true;
    const std::uint64_t owners = num_all_owners(index);
    return owners > 1 && can_cut(index) && gradient_bytes(index) >= owners * kSharedBytes;
  }

  Result<std::uint64_t> bound(std::uint32_t index, std::int64_t num_elems) const {
    const PlanTensor& of = tensor(index);
    if (of.codec == kDense) return kElementBytes * static_cast<std::uint64_t>(num_elems);
    const CodecFacts& codec = request_.codecs[of.codec];
    if (codec.has_sync) return 0;
    const PieceShape shape = shape_of(of, num_elems);
    return codec.bound(shape.rows, shape.cols);
  }

  Status add_piece(std::uint32_t group, std::uint32_t index, std::int64_t first,
                   std::int64_t num_elems) {
    add_bounded(group, index, first, num_elems, TRY(bound(index, num_elems)));
    return Ok{};
  }

  void add_bounded(std::uint32_t group, std::uint32_t index, std::int64_t first,
                   std::int64_t num_elems, std::uint64_t bytes) {
    std::uint32_t number = 0;
    if (!plan_.pieces.empty() && plan_.pieces.back().tensor == index) {
      number = plan_.pieces.back().number + 1;
    }
    plan_.groups[group].pieces.push_back(static_cast<std::uint32_t>(plan_.pieces.size()));
    plan_.pieces.push_back({index, number, first, num_elems, bytes});
  }

  // For this tensor, and others of its codec and route.
  Bundle open_bundle(std::uint32_t index) {
    Bundle bundle;
    bundle.route = route_of(request_, index);
    for (std::uint32_t owner = 0; owner < num_owners(index); ++owner) {
      bundle.groups.push_back(static_cast<std::uint32_t>(plan_.groups.size()));
      plan_.groups.push_back({tensor(index).codec, {}});
    }
    return bundle;
  }

  // Bundles of about piece_bytes, each cut between the owners.
  Status add_alone(std::uint32_t index) {
    const std::int64_t elems = tensor(index).num_elems();
    if (!can_cut(index)) {
      bundles_.push_back(open_bundle(index));
      return add_whole(bundles_.size() - 1, next_owner_++ % num_all_owners(index), index);
    }
    const auto per_bundle = std::max<std::int64_t>(
        static_cast<std::int64_t>(piece_bytes(index) / kElementBytes), kCutElements);
    const std::int64_t num = std::max<std::int64_t>((elems + per_bundle - 1) / per_bundle, 1);
    for (std::int64_t i = 0; i < num; ++i) {
      bundles_.push_back(open_bundle(index));
      CINCH_TRY(is_scattered(index) ? scatter(bundles_.back(), index, i, num)
                                    : cut(bundles_.back(), index, cut_at(elems, i, num),
                                          cut_at(elems, i + 1, num)));
    }
    return Ok{};
  }

  // The end of the first i of `num` equal parts.
  static std::int64_t cut_at(std::int64_t elems, std::int64_t i, std::int64_t num) {
    if (i == num) return elems;
    const std::int64_t at = elems / num * i + elems % num * i / num;
    return elems / num >= 4 * kCutElements ? at / kCutElements * kCutElements : at;
  }

  Status add_whole(std::size_t bundle, std::uint32_t owner, std::uint32_t index) {
    if (wholes_ != nullptr && route(index).are_all_ranks) {
      const PlanTensor& of = tensor(index);
      wholes_->push_back({owner, static_cast<std::uint32_t>(bundle), of.rows, of.cols});
    }
    const bool is_everywhere = request_.stand_ins && route(index).are_all_ranks;
    const std::uint32_t group = is_everywhere ? request_.stand_ins->written[owner] : owner;
    if (group == kNotWritten) return Ok{};
    return add_piece(bundles_[bundle].groups[group], index, 0, tensor(index).num_elems());
  }

  // The largest of equal parts, for each owner that is written.
  Status cut_equally(const Bundle& bundle, std::uint32_t index, std::int64_t elems) {
    const std::int64_t num = request_.stand_ins->world;
    const std::int64_t unit = elems / num >= 4 * kCutElements ? kCutElements : 1;
    const std::int64_t size = (elems + num * unit - 1) / (num * unit) * unit;
    const std::uint64_t bytes = TRY(bound(index, size));
    std::int64_t first = 0;
    for (const std::uint32_t group : bundle.groups) {
      add_bounded(group, index, first, size, bytes);
      first += size;
    }
    return Ok{};
  }

  Status cut(const Bundle& bundle, std::uint32_t index, std::int64_t begin, std::int64_t end) {
    if (request_.stand_ins && route(index).are_all_ranks) {
      return cut_equally(bundle, index, end - begin);
    }
    const std::int64_t num = num_owners(index);
    for (std::int64_t i = 0; i < num; ++i) {
      const std::int64_t first = begin + cut_at(end - begin, i, num);
      const std::int64_t last = begin + cut_at(end - begin, i + 1, num);
      // A tensor without elements still has one piece.
      const bool is_needed = first != last || (i == 0 && begin == end);
      if (!is_needed) continue;
      CINCH_TRY(add_piece(bundle.groups[static_cast<std::size_t>(i)], index, first, last - first));
    }
    return Ok{};
  }

  // Puts the same share of every rank's part into each of several bundles.
  Status scatter(const Bundle& bundle, std::uint32_t index, std::int64_t share,
                 std::int64_t num_shares) {
    for (std::uint32_t rank = 0; rank < num_owners(index); ++rank) {
      const ElementRange part = updated_part(tensor(index), rank);
      const std::int64_t first = cut_at(part.num_elems, share, num_shares),
                         last = cut_at(part.num_elems, share + 1, num_shares);
      const bool is_needed = first != last || (rank == 0 && tensor(index).num_elems() == 0);
      if (!is_needed) continue;
      CINCH_TRY(add_piece(bundle.groups[rank], index, part.first + first, last - first));
    }
    return Ok{};
  }

  // Combines tensors of one codec until they have piece_bytes, whatever tensors lie between them.
  // Each small one goes to the owner that has least.
  Status add_to_open(std::uint32_t index) {
    Open& open = open_of(index);
    if (open.owner_bytes.empty() || open.bytes >= piece_bytes(index)) {
      open = {bundles_.size(), std::vector<std::uint64_t>(num_all_owners(index)), 0};
      bundles_.push_back(open_bundle(index));
    }
    open.bytes += gradient_bytes(index);
    const Bundle& bundle = bundles_[open.bundle];
    if (is_shared(index)) {
      for (std::uint64_t& bytes : open.owner_bytes)
        bytes += gradient_bytes(index) / open.owner_bytes.size();
      return is_scattered(index) ? scatter(bundle, index, 0, 1)
                                 : cut(bundle, index, 0, tensor(index).num_elems());
    }
    const auto least = std::ranges::min_element(open.owner_bytes);
    *least += gradient_bytes(index);
    return add_whole(open.bundle, static_cast<std::uint32_t>(least - open.owner_bytes.begin()),
                     index);
  }

  // One group for each tensor; a tensor whose collectives are not known has a bundle of its own.
  Status add_protocol(std::uint32_t index) {
    const std::uint32_t codec = tensor(index).codec;
    const auto group = static_cast<std::uint32_t>(plan_.groups.size());
    plan_.groups.push_back({codec, {}});
    if (!request_.codecs[codec].sync_rounds) {
      bundles_.push_back({{group}, {}, route_of(request_, index)});
      return add_piece(group, index, 0, tensor(index).num_elems());
    }
    const auto rounds = TRY(rounds_of(request_.codecs[codec], tensor(index)));
    Open& open = open_of(index);
    if (open.owner_bytes.empty() || open.bytes >= piece_bytes(index)) {
      open = {bundles_.size(), {0}, 0};
      bundles_.emplace_back().route = route_of(request_, index);
    }
    for (const SyncRound& round : rounds) open.bytes += round.sent_bytes;
    bundles_[open.bundle].groups.push_back(group);
    return add_piece(group, index, 0, tensor(index).num_elems());
  }

  // A bundle that may get more tensors.
  struct Open {
    std::size_t bundle = 0;
    std::vector<std::uint64_t> owner_bytes;
    std::uint64_t bytes = 0;
  };

  Open& open_of(std::uint32_t index) {
    if (priority_ != tensor(index).priority) open_.clear();
    priority_ = tensor(index).priority;
    return open_[{tensor(index).codec, route_of(request_, index)}];
  }

  const PlanRequest& request_;
  const std::span<const LaidRoute> routes_;
  Plan& plan_;
  std::vector<WholeTensor>* const wholes_;
  std::vector<Bundle> bundles_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Open> open_;  // by codec and route
  std::int32_t priority_ = 0;                                     // of the open bundles' tensors
  std::uint32_t next_owner_ = 0;
};

template <typename BytesOf>
std::uint64_t joined_bytes(const Plan& plan, std::uint32_t group, const BytesOf& bytes_of) {
  std::uint64_t bytes = 0;
  for (const std::uint32_t piece : plan.groups[group].pieces) {
    bytes = (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
    bytes += bytes_of(plan.pieces[piece]);
  }
  return bytes;
}

bool can_cut(const ProgramInfo& info) {
  return !info.is_matrix && !info.has_sync && has_elementwise_states(info);
}

}  // namespace

Result<std::vector<SyncRound>> rounds_of(const CodecFacts& codec, const PlanTensor& tensor) {
  if (tensor.num_elems() == 0) return std::vector<SyncRound>();
  return codec.sync_rounds(tensor.rows, tensor.cols);
}

PieceShape shape_of(const PlanTensor& tensor, std::int64_t num_elems) {
  if (num_elems == tensor.num_elems()) return {tensor.rows, tensor.cols};
  return {num_elems, 1};
}

std::uint32_t route_of(const PlanRequest& request, std::uint32_t tensor) {
  return request.routes.empty() ? 0 : request.route_of[tensor];
}

Result<std::vector<Bundle>> lay_out(const PlanRequest& request, std::span<const LaidRoute> routes,
                                    Plan& plan, std::vector<WholeTensor>* wholes) {
  return Layout(request, routes, plan, wholes).run();
}

Status add_carriers(const PlanRequest& request, Plan& plan, std::span<Bundle* const> bundles) {
  for (Bundle* const each : bundles) {
    Bundle& bundle = *each;
    const std::uint32_t codec = plan.groups[bundle.groups[0]].codec;
    if (codec == kDense || request.codecs[codec].carrier.kind != CarrierKind::Program) continue;
    const std::uint32_t carrier = request.codecs[codec].carrier_codec;
    for (const std::uint32_t group : bundle.groups) {
      for (const std::uint32_t index : plan.groups[group].pieces) {
        Piece& piece = plan.pieces[index];
        const PieceShape shape = shape_of(plan.tensors[piece.tensor], piece.num_elems);
        piece.carried_bytes = TRY(request.codecs[carrier].bound(shape.rows, shape.cols));
      }
      bundle.carriers.push_back(static_cast<std::uint32_t>(plan.groups.size()));
      plan.groups.push_back({carrier, plan.groups[group].pieces, group});
    }
  }
  return Ok{};
}

std::uint64_t message_bytes(const Plan& plan, std::uint32_t group) {
  const Group& of = plan.groups[group];
  return joined_bytes(plan, group, [&of](const Piece& piece) { return payload_room(of, piece); });
}

std::uint64_t dense_bytes(const Plan& plan, std::uint32_t group) {
  return joined_bytes(plan, group, [](const Piece& piece) {
    return kElementBytes * static_cast<std::uint64_t>(piece.num_elems);
  });
}

// The facts of a compiled program that a planner needs.

CodecFacts codec_facts(const std::shared_ptr<const ProgramImage>& program, std::uint32_t world,
                       std::uint64_t step, std::uint32_t machine_ranks) {
  const ProgramInfo& info = program->info;
  CodecFacts facts{.name = info.name,
                   .can_cut = can_cut(info),
                   .has_sync = info.has_sync,
                   .has_fixed_size = info.wire.counts.empty() && has_steady_wire(info),
                   .takes_partial_sums = info.takes_partial_sums(),
                   .has_narrow_fields = has_narrow_fields(info),
                   .is_linear = info.is_linear,
                   .carrier = info.carrier,
                   .fingerprint = program->fingerprint};
  facts.bound = [program, world, step](std::int64_t rows,
                                       std::int64_t cols) -> Result<std::uint64_t> {
    const ProgramInfo& of = program->info;
    const TensorFacts tensor = facts_for(of, {rows, cols, world});
    const ParameterValues parameters(of);
    const auto most = TRY(payload_bound_over_steps(of, host_env(tensor, parameters, step)));
    return static_cast<std::uint64_t>(most);
  };
  if (info.has_sync && has_fixed_rounds(*program)) {
    facts.sync_rounds = [program, world, step, machine_ranks](std::int64_t rows,
                                                              std::int64_t cols) {
      const ProgramInfo& of = program->info;
      const TensorFacts tensor = facts_for(
          of, {.rows = rows, .cols = cols, .world = world, .machine_ranks = machine_ranks});
      const ParameterValues parameters(of);
      return sync_rounds(*program, host_env(tensor, parameters, step));
    };
  }
  // The arrays of a sum have the same lengths in every step.
  const auto summed = SummedArrays::of(info, world);
  if (summed && !info.has_sync && has_steady_wire(info)) {
    facts.sum_arrays = [program, summed, world, step](
                           std::int64_t rows, std::int64_t cols) -> Result<std::vector<SumArray>> {
      const ProgramInfo& of = program->info;
      const TensorFacts tensor = facts_for(of, {rows, cols, world});
      const ParameterValues parameters(of);
      const auto found = TRY(payload_bound_layout(of, host_env(tensor, parameters, step)));
      return summed->arrays(found);
    };
  }
  return facts;
}

}  // namespace cinch::rt
