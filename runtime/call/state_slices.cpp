// States of pieces from those of other pieces; see joins.h.
#include "runtime/call/joins.h"

#include <algorithm>
#include <cstring>

#include "runtime/call/state_file.h"

namespace cinch::rt {
namespace {

struct Range {
  std::int64_t begin = 0, end = 0;
};

Range common_range(const StateSlice& a, const StateSlice& b) {
  return {std::max(a.first, b.first), std::min(a.first + a.num_elems, b.first + b.num_elems)};
}

// Do the parts' ranges cover that of `own`?
bool are_enough(const StateSlice& own, std::span<const StateSlice> parts) {
  std::vector<Range> ranges;
  for (const StateSlice& part : parts) ranges.push_back(common_range(own, part));
  std::ranges::sort(ranges, {}, &Range::begin);
  std::int64_t reached = own.first;
  for (const Range& range : ranges) {
    if (range.begin > reached) break;
    reached = std::max(reached, range.end);
  }
  return reached >= own.first + own.num_elems;
}

tl::unexpected<Error> unfit(const char* why) {
  return fail(ErrorKind::InvalidArgument, why);
}

using Data = std::vector<std::vector<std::uint8_t>>;

Status copy_slice(const StateSlice& own, const StateFile& of_own, const StateSlice& part,
                  Data& data) {
  const Range range = common_range(own, part);
  if (range.begin >= range.end) return Ok{};
  const auto from = parse_states(part.states);
  CINCH_TRY(from);
  if (from->key.fingerprint != of_own.key.fingerprint || from->states.size() != data.size()) {
    return unfit("states of another program or constants");
  }
  for (std::size_t i = 0; i < data.size(); ++i) {
    const std::uint64_t size = data[i].size() / static_cast<std::uint64_t>(own.num_elems);
    const auto& bytes = from->states[i].bytes;
    if (data[i].size() != size * static_cast<std::uint64_t>(own.num_elems) ||
        bytes.size() != size * static_cast<std::uint64_t>(part.num_elems) || size == 0) {
      return unfit("states whose elements are not whole bytes");
    }
    const auto at = [&](const StateSlice& slice) {
      return size * static_cast<std::uint64_t>(range.begin - slice.first);
    };
    std::memcpy(data[i].data() + at(own), bytes.data() + at(part),
                size * static_cast<std::uint64_t>(range.end - range.begin));
  }
  return Ok{};
}

}  // namespace

bool has_elementwise_states(const ProgramInfo& info) {
  return std::ranges::all_of(info.states, [&](const StateInfo& state) {
    return state.type.rank == 1 && info.exprs.node(state.type.dims[0]).op == HostOp::N;
  });
}

Result<std::vector<std::uint8_t>> join_slices(const StateSlice& own,
                                              std::span<const StateSlice> parts) {
  auto parsed = parse_states(own.states);
  CINCH_TRY(parsed);
  if (!are_enough(own, parts)) return unfit("states of only some of its elements");
  Data data;
  for (const StateView& state : parsed->states) {
    data.emplace_back(state.bytes.begin(), state.bytes.end());
  }
  for (const StateSlice& part : parts) {
    CINCH_TRY(copy_slice(own, *parsed, part, data));
  }
  for (std::size_t i = 0; i < data.size(); ++i) parsed->states[i].bytes = data[i];
  return write_states(parsed->key, parsed->states);
}

}  // namespace cinch::rt
