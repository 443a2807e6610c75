// The collectives of a `sync`, known before it runs; see joins.h.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runtime/call/joins.h"
#include "runtime/call/list_session.h"
#include "runtime/core/sizes/host_expr.h"

namespace cinch::rt {
namespace {

// By EntryKind: what the call needs, and the name under which its absence is reported.
struct Need {
  EntryKind entry;
  const char* name;
};
constexpr std::array<Need, kNumEntries> kNeeds = {{
    {EntryKind::Init, "initial states"},
    {EntryKind::Encode, "encode"},
    {EntryKind::Decode, "decode"},
    {EntryKind::Decode, "decode"},
    {EntryKind::Decode, "finish"},
    {EntryKind::Sync, "sync"},
}};

tl::unexpected<ListError> fail_at(std::size_t place, ErrorKind kind, std::string message) {
  return tl::unexpected<ListError>(ListError{{kind, std::move(message)}, place});
}

// Rounded up; no payload is so large that this overflows.
std::size_t aligned(std::size_t size_bytes) {
  return (size_bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
}

}  // namespace

Status check_call(const ProgramImage& image, EntryKind kind, bool only_decodes) {
  const Need& need = kNeeds[static_cast<std::size_t>(kind)];
  if (!image.entries[static_cast<std::size_t>(need.entry)].present) {
    return fail(ErrorKind::InvalidArgument, image.info.name + " has no " + need.name);
  }
  if (!only_decodes) return Ok{};
  const bool is_encoders = kind == EntryKind::Encode || kind == EntryKind::Sync;
  const bool uses_states = std::ranges::any_of(
      image.entries[static_cast<std::size_t>(kind)].buffers,
      [&image](BufferIndex index) { return is_state(image.buffers[index].role); });
  if (!is_encoders && !uses_states) return Ok{};
  return fail(ErrorKind::InvalidArgument,
              std::string(need.name) + ": the session was opened to decode only");
}

Status check_holds_states(bool only_decodes) {
  if (!only_decodes) return Ok{};
  return fail(ErrorKind::InvalidArgument,
              "the session was opened to decode only: it holds no states");
}

bool needs_copies_of_states(const ProgramImage& image) {
  const bool is_in_place = std::ranges::any_of(image.buffers, [](const BufferInfo& buffer) {
    return buffer.role == BufferRole::StateInPlace;
  });
  return is_in_place || (image.info.has_finish && image.info.has_states());
}

namespace {

using Steps = std::vector<Step>;

// Limit of steps, including those of all rounds of loops; no plan has more exchanges.
constexpr std::int64_t kMostSteps = std::int64_t{1} << 16;

const Steps& steps_of(const ProgramImage& image) {
  return image.entries[static_cast<std::size_t>(EntryKind::Sync)].steps;
}

bool has_collective(const Steps& steps) {
  return std::ranges::any_of(steps, [](const Step& step) {
    return step.kind == StepKind::Collective || has_collective(step.cond) ||
           has_collective(step.body) || has_collective(step.orelse);
  });
}

bool is_fixed(const ProgramImage& image, HostExprId expr) {
  if (!expr.is_valid()) return true;
  const HostExprPool& exprs = *image.info.exprs;
  return !exprs.depends_on(expr, HostOp::Param) && !exprs.depends_on(expr, HostOp::Step);
}

bool are_fixed(const ProgramImage& image, const Steps& steps) {
  return std::ranges::all_of(steps, [&](const Step& step) {
    if (step.kind == StepKind::Collective) {
      return !is_routed(step.collective.kind) &&
             is_fixed(image, image.buffers[step.index].size_bytes) &&
             is_fixed(image, image.buffers[step.index2].size_bytes) && is_fixed(image, step.expr) &&
             is_fixed(image, step.expr2);
    }
    if (step.kind == StepKind::For && has_collective(step.body)) {
      return is_fixed(image, step.expr) && is_fixed(image, step.expr2) &&
             are_fixed(image, step.body);
    }
    return !has_collective(step.cond) && !has_collective(step.body) && !has_collective(step.orelse);
  });
}

class Rounds {
 public:
  Rounds(const ProgramImage& image, const HostEnv& env) : image_(image), env_(env) {}

  Status add(const Steps& steps) {
    for (const Step& step : steps) {
      if (++num_steps_ > kMostSteps) {
        return fail(ErrorKind::Unavailable,
                    image_.info.name + ": its loops take more exchanges than a plan has");
      }
      if (step.kind == StepKind::Collective) {
        const auto sent = TRY(buffer_bytes(image_, step.index2, env_));
        const auto received = TRY(buffer_bytes(image_, step.index, env_));
        const auto groups = TRY(rank_groups(image_, step.expr, step.expr2, env_));
        rounds_.push_back({step.collective, groups, image_.buffers[step.index].dtype,
                           static_cast<std::uint64_t>(sent), static_cast<std::uint64_t>(received)});
      }
      if (step.kind == StepKind::For && has_collective(step.body)) {
        const auto begin = TRY(evaluate(step.expr)), end = TRY(evaluate(step.expr2));
        for (std::int64_t i = begin; i < end; ++i) CINCH_TRY(add(step.body));
      }
    }
    return Ok{};
  }

  std::vector<SyncRound> take() { return std::move(rounds_); }

 private:
  Result<std::int64_t> evaluate(HostExprId expr) const {
    return image_.info.exprs->eval_int(expr, env_);
  }

  const ProgramImage& image_;
  const HostEnv& env_;
  std::vector<SyncRound> rounds_;
  std::int64_t num_steps_ = 0;
};

}  // namespace

bool has_fixed_rounds(const ProgramImage& image) {
  return are_fixed(image, steps_of(image));
}

Result<std::vector<SyncRound>> sync_rounds(const ProgramImage& image, const HostEnv& env) {
  Rounds rounds(image, env);
  CINCH_TRY(rounds.add(steps_of(image)));
  return rounds.take();
}

// Offsets to pieces.

ListStatus bucket_tensors(const Bucket& bucket, std::span<const std::int64_t> num_elems,
                          std::vector<TensorView>& to) {
  to.clear();
  if (Status status = check_tensor_dtype(bucket.dtype); !status) {
    return fail_at(kNoPlace, status.error().kind, status.error().message);
  }
  const bool is_packed = bucket.offsets.empty();
  if (!is_packed && bucket.offsets.size() != num_elems.size()) {
    return fail_at(
        kNoPlace, ErrorKind::InvalidArgument,
        fmt::format("{} offsets for {} tensors", bucket.offsets.size(), num_elems.size()));
  }
  std::int64_t behind_last = 0;
  for (std::size_t i = 0; i < num_elems.size(); ++i) {
    const std::int64_t begin = is_packed ? behind_last : bucket.offsets[i];
    if (begin < 0 || begin > bucket.num_elems || num_elems[i] > bucket.num_elems - begin) {
      return fail_at(i, ErrorKind::OutOfRange,
                     fmt::format("{} elements from {} on, the bucket has {}", num_elems[i], begin,
                                 bucket.num_elems));
    }
    behind_last = begin + num_elems[i];
    auto* const data =
        static_cast<std::uint8_t*>(bucket.data) + begin * element_bytes(bucket.dtype);
    to.emplace_back(data, bucket.dtype, num_elems[i]);
  }
  return Ok{};
}

Result<std::size_t> arena_bytes(std::span<const std::size_t> bounds) {
  std::size_t total = 0;
  for (const std::size_t bound : bounds) {
    if (__builtin_add_overflow(total, aligned(bound), &total)) {
      return fail(ErrorKind::Overflow, "payloads of more than 2^64 bytes");
    }
  }
  return total;
}

Status arena_rooms(const PayloadArena& arena, std::span<const std::size_t> bounds,
                   std::vector<std::span<std::uint8_t>>& to) {
  to.clear();
  if (arena.offsets.size() != bounds.size() || arena.sizes.size() != bounds.size()) {
    return fail(ErrorKind::InvalidArgument,
                fmt::format("{} offsets and {} sizes for {} payloads", arena.offsets.size(),
                            arena.sizes.size(), bounds.size()));
  }
  const auto needed = TRY(arena_bytes(bounds));
  if (needed > arena.capacity) {
    return fail(ErrorKind::InvalidArgument,
                fmt::format("payloads may take {} bytes, there are {}", needed, arena.capacity));
  }
  std::size_t begin = 0;
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    arena.offsets[i] = begin;
    to.emplace_back(arena.data + begin, bounds[i]);
    begin += aligned(bounds[i]);
  }
  return Ok{};
}

std::size_t close_arena(const PayloadArena& arena) {
  std::size_t end = 0;
  for (std::size_t i = 0; i < arena.offsets.size(); ++i) {
    const std::size_t begin = aligned(end);
    if (begin != arena.offsets[i]) {
      std::memmove(arena.data + begin, arena.data + arena.offsets[i], arena.sizes[i]);
      arena.offsets[i] = begin;
    }
    std::memset(arena.data + end, 0, begin - end);
    end = begin + arena.sizes[i];
  }
  return end;
}

ListStatus arena_payloads(const PayloadArena& arena, std::vector<PayloadBytes>& to) {
  to.clear();
  for (std::size_t i = 0; i < arena.offsets.size(); ++i) {
    const std::size_t begin = arena.offsets[i];
    if (begin > arena.capacity || arena.sizes[i] > arena.capacity - begin) {
      return fail_at(
          i, ErrorKind::OutOfRange,
          fmt::format("a payload of {} bytes at {} of {}", arena.sizes[i], begin, arena.capacity));
    }
    to.emplace_back(arena.data + begin, arena.sizes[i]);
  }
  return Ok{};
}

}  // namespace cinch::rt
