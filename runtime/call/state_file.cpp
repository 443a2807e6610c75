// State files: written in one piece, read by a cursor that never passes the end.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "runtime/call/joins.h"
#include "runtime/call/state_file.h"
#include "runtime/core/files/file_bytes.h"
#include "runtime/core/hash.h"
#include "runtime/core/sizes/host_expr.h"

namespace cinch::rt {
namespace {

constexpr char kMagic[8] = {'C', 'I', 'N', 'C', 'H', 'S', 'T', 'A'};

struct Preamble {
  char magic[8];
  std::uint32_t version, num_states;
  std::uint64_t fingerprint[2];
  std::uint64_t rows, cols, file_bytes, hash;
};
static_assert(sizeof(Preamble) == 64);

struct StateHeader {
  std::uint32_t name_bytes, dtype_bytes;
  std::uint64_t data_bytes;
};
static_assert(sizeof(StateHeader) == 16);

void append(std::vector<std::uint8_t>& out, const void* data, std::size_t size_bytes) {
  const auto* bytes = static_cast<const std::uint8_t*>(data);
  out.insert(out.end(), bytes, bytes + size_bytes);
}

tl::unexpected<Error> corrupt(std::string what) {
  return fail(ErrorKind::CorruptFile, "state file: " + std::move(what));
}

Result<Preamble> checked_preamble(std::span<const std::uint8_t> file) {
  auto preamble =
      TRY(read_preamble(file, kMagic, kStateFormatVersion, &Preamble::file_bytes, "state file"));
  if (preamble.hash != hash64(file.data() + sizeof(Preamble), file.size() - sizeof(Preamble))) {
    return corrupt("checksum differs");
  }
  return preamble;
}

class Cursor {
 public:
  explicit Cursor(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  /// Nothing if fewer bytes are left.
  std::optional<std::span<const std::uint8_t>> take(std::uint64_t size_bytes) {
    if (size_bytes > bytes_.size()) return std::nullopt;
    const auto taken = bytes_.first(static_cast<std::size_t>(size_bytes));
    bytes_ = bytes_.subspan(taken.size());
    return taken;
  }
  bool at_end() const { return bytes_.empty(); }

 private:
  std::span<const std::uint8_t> bytes_;
};

std::string text_of(std::span<const std::uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Result<StateView> read_state(Cursor& cursor) {
  const auto raw = cursor.take(sizeof(StateHeader));
  if (!raw) return corrupt("cut before a state");
  StateHeader header;
  std::memcpy(&header, raw->data(), sizeof header);
  const auto name = cursor.take(header.name_bytes);
  const auto dtype = name ? cursor.take(header.dtype_bytes) : std::nullopt;
  const auto data = dtype ? cursor.take(header.data_bytes) : std::nullopt;
  if (!data) return corrupt("cut within a state");
  return StateView{text_of(*name), text_of(*dtype), *data};
}

}  // namespace

std::vector<std::uint8_t> write_states(const StateFileKey& key, std::span<const StateView> states) {
  std::vector<std::uint8_t> out(sizeof(Preamble), 0);
  for (const StateView& state : states) {
    const StateHeader header{static_cast<std::uint32_t>(state.name.size()),
                             static_cast<std::uint32_t>(state.dtype.size()), state.bytes.size()};
    append(out, &header, sizeof header);
    append(out, state.name.data(), state.name.size());
    append(out, state.dtype.data(), state.dtype.size());
    append(out, state.bytes.data(), state.bytes.size());
  }
  Preamble preamble{};
  std::memcpy(preamble.magic, kMagic, sizeof kMagic);
  preamble.version = kStateFormatVersion;
  preamble.num_states = static_cast<std::uint32_t>(states.size());
  preamble.fingerprint[0] = key.fingerprint[0];
  preamble.fingerprint[1] = key.fingerprint[1];
  preamble.rows = static_cast<std::uint64_t>(key.rows);
  preamble.cols = static_cast<std::uint64_t>(key.cols);
  preamble.file_bytes = out.size();
  preamble.hash = hash64(out.data() + sizeof preamble, out.size() - sizeof preamble);
  std::memcpy(out.data(), &preamble, sizeof preamble);
  return out;
}

Result<std::vector<std::uint8_t>> read_state_file(const std::filesystem::path& path) {
  return read_file_bytes(
      path, {.magic = {kMagic, sizeof kMagic}, .size_at = offsetof(Preamble, file_bytes)});
}

Result<StateFile> parse_states(std::span<const std::uint8_t> file) {
  const auto preamble = TRY(checked_preamble(file));
  StateFile parsed{{{preamble.fingerprint[0], preamble.fingerprint[1]},
                    static_cast<std::int64_t>(preamble.rows),
                    static_cast<std::int64_t>(preamble.cols)},
                   {}};
  Cursor cursor(file.subspan(sizeof(Preamble)));
  for (std::uint32_t i = 0; i < preamble.num_states; ++i) {
    auto state = TRY(read_state(cursor));
    parsed.states.push_back(std::move(state));
  }
  if (!cursor.at_end()) return corrupt("bytes after its last state");
  return parsed;
}

Result<std::vector<std::span<const std::uint8_t>>> read_states(
    std::span<const std::uint8_t> file, const StateFileKey& key,
    std::span<const StateView> expected) {
  const auto found = TRY(parse_states(file));
  if (found.key.fingerprint != key.fingerprint || found.states.size() != expected.size()) {
    return fail(ErrorKind::InvalidArgument,
                "state file: states of another compressor or constants");
  }
  if (found.key != key) {
    return fail(ErrorKind::InvalidArgument,
                fmt::format("state file: for shape [{}, {}], the tensor has [{}, {}]",
                            found.key.rows, found.key.cols, key.rows, key.cols));
  }
  std::vector<std::span<const std::uint8_t>> states;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const StateView &is = found.states[i], &wanted = expected[i];
    if (is.name != wanted.name || is.dtype != wanted.dtype ||
        is.bytes.size() != wanted.bytes.size()) {
      return fail(ErrorKind::InvalidArgument,
                  fmt::format("state file: {} of {} ({} bytes) expected, another state found",
                              wanted.name, wanted.dtype, wanted.bytes.size()));
    }
    states.push_back(found.states[i].bytes);
  }
  return states;
}

// States of pieces from those of other pieces; see joins.h.

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
  const auto from = TRY(parse_states(part.states));
  if (from.key.fingerprint != of_own.key.fingerprint || from.states.size() != data.size()) {
    return unfit("states of another program or constants");
  }
  for (std::size_t i = 0; i < data.size(); ++i) {
    const std::uint64_t size = data[i].size() / static_cast<std::uint64_t>(own.num_elems);
    const auto& bytes = from.states[i].bytes;
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
    if (state.is_input) return true;
    return state.type.rank == 1 && info.exprs->node(state.type.dims[0]).op == HostOp::N;
  });
}

Result<std::vector<std::uint8_t>> join_slices(const StateSlice& own,
                                              std::span<const StateSlice> parts) {
  auto parsed = TRY(parse_states(own.states));
  if (!are_enough(own, parts)) return unfit("states of only some of its elements");
  Data data;
  for (const StateView& state : parsed.states) {
    data.emplace_back(state.bytes.begin(), state.bytes.end());
  }
  for (const StateSlice& part : parts) {
    CINCH_TRY(copy_slice(own, parsed, part, data));
  }
  for (std::size_t i = 0; i < data.size(); ++i) parsed.states[i].bytes = data[i];
  return write_states(parsed.key, parsed.states);
}

}  // namespace cinch::rt
