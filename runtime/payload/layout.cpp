// Layouts, the decode hash and writing. The first field begins at the next aligned place after the
// counts.
#include <fmt/format.h>

#include <cstring>

#include "runtime/core/hash.h"
#include "runtime/core/sizes/host_range.h"
#include "runtime/payload/payload.h"

namespace cinch::rt {
namespace {

// A longer field is an error in a formula.
constexpr std::int64_t kMaxFieldElems = std::int64_t{1} << 48;
constexpr std::int64_t kMaxPayloadBytes = std::int64_t{1} << 52;

// The step of sizes: the environment's, or the maximum over that step and all later ones.
enum class Over : std::uint8_t { OneStep, LaterSteps };

Result<std::int64_t> size_of(const ProgramInfo& info, HostExprId expr, const HostEnv& env,
                             Over over) {
  if (over == Over::OneStep) return info.exprs->eval_int(expr, env);
  const auto bounds = TRY(bounds_over_steps(*info.exprs, expr, env, env.step));
  return bounds.most;
}

// Computes the field's sizes; its place comes later.
Result<FieldPlace> measure_field(const ProgramInfo& info, const FieldInfo& field,
                                 const HostEnv& env, Over over = Over::OneStep) {
  FieldPlace place{0, 0, 1, 1};
  for (int i = 0; i < field.type.rank; ++i) {
    const auto dim = TRY(size_of(info, field.type.dims[i], env, over));
    const bool fits = dim >= 0 && (place.num_elems == 0 || dim <= kMaxFieldElems / place.num_elems);
    if (!fits) {
      return fail(ErrorKind::Overflow, fmt::format("field {}: the size `{}` is {}", field.name,
                                                   info.exprs->print(field.type.dims[i]), dim));
    }
    place.num_elems *= dim;
    place.row_elems = dim;
  }
  place.size_bytes = packed_bytes(field.type.dtype, place.num_elems);
  return place;
}

// Lays out the fields for the counts in the layout.
Status lay_out_fields(const ProgramInfo& info, HostEnv env, PayloadLayout& layout,
                      Over over = Over::OneStep) {
  layout.fields.clear();
  layout.size_bytes = kPayloadHeaderBytes;
  if (env.n == 0) return Ok{};
  env.counts = layout.counts;
  layout.size_bytes += static_cast<std::int64_t>(layout.counts.size() * sizeof(std::uint32_t));
  for (const FieldInfo& field : info.wire.fields) {
    auto place = TRY(measure_field(info, field, env, over));
    place.offset = (layout.size_bytes + kPayloadFieldAlignment - 1) / kPayloadFieldAlignment *
                   kPayloadFieldAlignment;
    layout.size_bytes = place.offset + place.size_bytes;
    if (layout.size_bytes > kMaxPayloadBytes) {
      return fail(ErrorKind::Overflow, fmt::format("a payload of {} bytes", layout.size_bytes));
    }
    layout.fields.push_back(place);
  }
  return Ok{};
}

bool wire_depends_on(const ProgramInfo& info, HostOp leaf) {
  const auto depends = [&](HostExprId id) { return info.exprs->depends_on(id, leaf); };
  for (const SizeInfo& size : info.sizes) {
    if (depends(size.value)) return true;
  }
  for (const CountInfo& count : info.wire.counts) {
    if (depends(count.bound)) return true;
  }
  for (const FieldInfo& field : info.wire.fields) {
    for (int i = 0; i < field.type.rank; ++i) {
      if (depends(field.type.dims[i])) return true;
    }
  }
  return false;
}

void put(std::uint8_t*& to, std::uint64_t value, std::size_t size_bytes) {
  std::memcpy(to, &value, size_bytes);
  to += size_bytes;
}

Status count_bounds(const ProgramInfo& info, const HostEnv& env, Over over,
                    std::vector<std::int64_t>& bounds) {
  bounds.clear();
  for (const CountInfo& count : info.wire.counts) {
    const auto bound = TRY(size_of(info, count.bound, env, over));
    if (bound < 0 || bound > UINT32_MAX) {
      // Errors in the program's own sizes come first: they are no errors of counts.
      for (std::size_t i = 0; i < info.wire.fields.size(); ++i) {
        if (has_fixed_size(info, i)) CINCH_TRY(measure_field(info, info.wire.fields[i], env));
      }
      return fail(ErrorKind::Overflow, fmt::format("count {}: the bound `{}` is {}", count.name,
                                                   info.exprs->print(count.bound), bound));
    }
    bounds.push_back(bound);
  }
  return Ok{};
}

}  // namespace

bool has_fixed_size(const ProgramInfo& info, std::size_t index) {
  const ArrayType& type = info.wire.fields[index].type;
  for (int i = 0; i < type.rank; ++i) {
    if (info.exprs->has_count(type.dims[i])) return false;
  }
  return true;
}

bool has_fixed_offset(const ProgramInfo& info, std::size_t index) {
  for (std::size_t i = 0; i < index; ++i) {
    if (!has_fixed_size(info, i)) return false;
  }
  return true;
}

Status payload_count_bounds(const ProgramInfo& info, const HostEnv& env,
                            std::vector<std::int64_t>& bounds) {
  return count_bounds(info, env, Over::OneStep, bounds);
}

Status lay_out_payload(const ProgramInfo& info, const HostEnv& env,
                       std::span<const std::uint32_t> counts, PayloadLayout& layout) {
  layout.counts.assign(counts.begin(), counts.end());
  return lay_out_fields(info, env, layout);
}

Status lay_out_payload_bound(const ProgramInfo& info, const HostEnv& env, PayloadLayout& layout) {
  Status status = payload_count_bounds(info, env, layout.counts);
  return status ? lay_out_fields(info, env, layout) : status;
}

Result<PayloadLayout> payload_layout(const ProgramInfo& info, const HostEnv& env,
                                     std::span<const std::uint32_t> counts) {
  PayloadLayout layout;
  CINCH_TRY(lay_out_payload(info, env, counts, layout));
  return layout;
}

Result<PayloadLayout> payload_bound_layout(const ProgramInfo& info, const HostEnv& env) {
  PayloadLayout layout;
  CINCH_TRY(lay_out_payload_bound(info, env, layout));
  return layout;
}

Result<std::int64_t> payload_bound_over_steps(const ProgramInfo& info, const HostEnv& env) {
  PayloadLayout layout;
  CINCH_TRY(count_bounds(info, env, Over::LaterSteps, layout.counts));
  CINCH_TRY(lay_out_fields(info, env, layout, Over::LaterSteps));
  return layout.size_bytes;
}

bool has_steady_wire(const ProgramInfo& info) {
  return !wire_depends_on(info, HostOp::Step);
}

std::uint64_t decode_hash(const ProgramInfo& info, const DecodeFacts& facts) {
  Hasher hasher;
  for (std::uint64_t word : facts.params) hasher.add(word);
  const bool needs_world = info.decode_world || wire_depends_on(info, HostOp::World);
  const bool needs_step =
      info.decode_draws || info.decode_step || wire_depends_on(info, HostOp::Step);
  if (needs_world) hasher.add("world").add(facts.world);
  if (needs_step) hasher.add("step").add(facts.step);
  if (info.decode_draws) {
    hasher.add("seed").add(facts.seed);
    hasher.add(std::uint64_t{facts.tensor}).add(std::uint64_t{facts.piece});
  }
  return hasher.finish64();
}

std::uint32_t payload_check_word(std::span<const std::uint8_t> bytes, std::size_t num_counts) {
  constexpr std::size_t kBehind = kPayloadCheckOffset + 4;
  Hasher hasher;
  hasher.add_bytes(bytes.data(), kPayloadCheckOffset);
  hasher.add_bytes(bytes.data() + kBehind, kPayloadHeaderBytes - kBehind + 4 * num_counts);
  return static_cast<std::uint32_t>(hasher.finish64());
}

void write_payload_frame(std::span<std::uint8_t> bytes, PayloadHeader header,
                         std::span<const std::uint32_t> counts, const PayloadLayout& layout) {
  std::uint8_t* to = bytes.data();
  put(to, kPayloadMagicWord, 4);
  put(to, kPayloadFormatVersion, 4);
  put(to, header.flags, 4);
  put(to, 0, 4);
  for (std::uint64_t word : header.fingerprint) put(to, word, 8);
  put(to, header.decode_hash, 8);
  put(to, static_cast<std::uint64_t>(header.rows), 8);
  put(to, static_cast<std::uint64_t>(header.cols), 8);
  put(to, static_cast<std::uint64_t>(layout.size_bytes), 8);
  const bool is_header_alone = layout.size_bytes == kPayloadHeaderBytes;
  const std::size_t num_counts = is_header_alone ? 0 : counts.size();
  for (std::uint32_t count : counts.first(num_counts)) put(to, count, 4);
  std::uint8_t* check = bytes.data() + kPayloadCheckOffset;
  put(check, payload_check_word(bytes, num_counts), 4);
  for (const FieldPlace& field : layout.fields) {
    std::uint8_t* begin = bytes.data() + field.offset;
    if (to < begin) std::memset(to, 0, static_cast<std::size_t>(begin - to));
    to = begin + field.size_bytes;
  }
}

}  // namespace cinch::rt
