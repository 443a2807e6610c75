// Bodies of floor_streams.h.
#include "compiler/analysis/floor_streams.h"

#include <algorithm>
#include <set>

#include "compiler/ir/ops.h"

namespace cinch::analysis {

namespace {

using ir::Op;
using ir::OpKind;
using ir::ValueId;

bool is_leaf(OpKind kind) {
  return kind == OpKind::gradient || kind == OpKind::state || kind == OpKind::field ||
         ir::is_collective(kind);
}

// docs/language_bits.md: rounding draws 16 bits, and more only where these tie.
std::int64_t words_of(OpKind kind, std::int64_t elements) {
  return kind == OpKind::stochastic_round ? (elements + 1) / 2 : elements;
}

}  // namespace

bool was_stored(const std::vector<Sink>& sinks, ValueId value, std::size_t sweep) {
  return std::ranges::any_of(sinks, [&](const Sink& sink) {
    return sink.store && sink.value == value && sink.sweep < sweep;
  });
}

ForcedSweeps FloorStreams::gathered() {
  std::size_t count = 0;
  for (const Sink& sink : sinks_) count = std::max(count, sink.sweep + 1);
  ForcedSweeps floor;
  drawn_.clear();
  for (std::size_t sweep = 0; sweep < count; ++sweep) {
    for (std::int64_t round = 0; round < rounds_of(sweep); ++round) {
      floor.sweeps.push_back(streams_of(sweep, round));
    }
  }
  for (const auto& [value, words] : drawn_) floor.random_words += words;
  return floor;
}

std::int64_t FloorStreams::total_bytes() {
  const SweepBytes bytes = gathered().bytes();
  return bytes.read + bytes.written;
}

std::int64_t FloorStreams::rounds_of(std::size_t sweep) const {
  std::int64_t most = knows_rounds_ ? 0 : 1;
  for (const Sink& sink : sinks_) {
    if (sink.sweep == sweep) most = std::max(most, sink.rounds);
  }
  return most;
}

// Of what is met in this round of the sweep.
std::vector<Stream> FloorStreams::streams_of(std::size_t sweep, std::int64_t round) {
  Reads reads;
  std::vector<Stream> streams;
  std::set<std::uint32_t> updated;
  for (const Sink& sink : sinks_) {
    if (sink.sweep != sweep || sink.rounds <= round) continue;
    walk(sink.value, arrays_.num_elems(sink.value), sweep, reads);
    if (!sink.store) continue;
    streams.push_back(*sink.store);
    if (sink.state && sink.store->use == Stream::Use::Update) updated.insert(*sink.state);
  }
  for (const auto& [value, elements] : reads.elements) {
    const Op& op = arrays_.maker(value);
    if (op.kind == OpKind::state && updated.contains(op.attrs.index)) continue;
    streams.push_back(
        {leaf_name(op, value), Stream::Use::Read, arrays_.size_bytes(value, elements)});
  }
  return streams;
}

std::string FloorStreams::leaf_name(const Op& op, ValueId value) const {
  const rt::ProgramInfo& info = arrays_.program().info;
  switch (op.kind) {
    case OpKind::gradient:
      return "gradient";
    case OpKind::state:
      return info.states[op.attrs.index].name;
    case OpKind::field:
      return info.wire.fields[op.attrs.index].name;
    default:
      return arrays_.place_of(value);
  }
}

// `elements` of the value are needed in this sweep.
void FloorStreams::walk(ValueId value, std::int64_t elements, std::size_t sweep, Reads& reads) {
  if (!arrays_.is_array(value)) return;
  const auto [place, is_new] = reads.was_walked.try_emplace(value, elements);
  if (!is_new && place->second >= elements) return;
  place->second = elements;
  const Op& op = arrays_.maker(value);
  note_draws(op, value, elements);
  if (is_leaf(op.kind) || was_stored(sinks_, value, sweep)) {
    reads.elements[value] = std::min(elements, arrays_.num_elems(value));
    return;
  }
  for (std::size_t i = 0; i < op.operands.size(); ++i) {
    walk_operand(op, i, elements, sweep, reads);
  }
  for (const ir::RegionId held : op.regions) {
    for (const ValueId v : arrays_.yielded(held)) walk_all(v, sweep, reads);
  }
}

void FloorStreams::walk_operand(const Op& op, std::size_t i, std::int64_t elements,
                                std::size_t sweep, Reads& reads) {
  const ValueId operand = op.operands[i];
  switch (ir::reads_of(op, i)) {
    case ir::Reads::Gathered:
    case ir::Reads::Shifted:
      return walk(operand, elements, sweep, reads);
    case ir::Reads::Pointwise:
    case ir::Reads::SameIndex:
    case ir::Reads::Swapped:
      return walk_all(operand, sweep, reads, elements);
    default:
      return walk_all(operand, sweep, reads);
  }
}

// Of operands of the same length as much as of the result, of others all.
void FloorStreams::walk_all(ValueId value, std::size_t sweep, Reads& reads,
                            std::optional<std::int64_t> of_result) {
  const std::int64_t whole = arrays_.num_elems(value);
  walk(value, of_result ? std::min(whole, *of_result) : whole, sweep, reads);
}

// A draw made again in another sweep is the same words; its cost counts once.
void FloorStreams::note_draws(const Op& op, ValueId value, std::int64_t elements) {
  if (!ir::is_draw(op.kind)) return;
  std::int64_t& words = drawn_[value];
  words = std::max(words, words_of(op.kind, elements));
}

}  // namespace cinch::analysis
