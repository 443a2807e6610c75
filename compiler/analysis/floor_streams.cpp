#include <algorithm>
#include <set>

#include "compiler/analysis/forced_sweeps.h"
#include "compiler/ir/ops.h"

namespace cinch::analysis {
namespace {

using ir::Op;
using ir::OpKind;
using ir::ValueId;

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
  if (ir::is_draw(op.kind)) {
    // docs/language_bits.md: rounding draws 16 bits, and more only where these tie. A draw made
    // again in another sweep is the same words; its cost counts once.
    std::int64_t& words = drawn_[value];
    words = std::max(words, op.kind == OpKind::stochastic_round ? (elements + 1) / 2 : elements);
  }
  const bool is_leaf = op.kind == OpKind::gradient || op.kind == OpKind::state ||
                       op.kind == OpKind::field || ir::is_collective(op.kind);
  if (is_leaf || was_stored(sinks_, value, sweep)) {
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

const std::vector<ir::ValueId>& FloorArrays::yielded(ir::RegionId region) const {
  return function_.ops[function_.regions[region.index()].ops.back().index()].operands;
}

bool FloorArrays::is_array(ir::ValueId value) const {
  return lies_in_memory(program_, ir::type_of(function_, value));
}

std::int64_t FloorArrays::num_elems(ir::ValueId value) {
  constexpr std::int64_t kMostElems = std::int64_t{1} << 56;
  const ir::Type& type = ir::type_of(function_, value);
  std::int64_t elements = 1;
  for (int d = 0; d < type.rank; ++d) {
    const bool overflows = __builtin_mul_overflow(elements, evaluated(type.dims[d]), &elements);
    if (!overflows && elements <= kMostElems) continue;
    if (status_) status_ = rt::fail(rt::ErrorKind::Overflow, "an array of 2^56 elements or more");
    return 0;
  }
  return elements;
}

std::int64_t FloorArrays::size_bytes(ir::ValueId value, std::int64_t elements) const {
  const auto travels = travelling_.find(value);
  return travels != travelling_.end() ? travels->second
                                      : packed_bytes(ir::type_of(function_, value).dtype, elements);
}

std::string FloorArrays::place_of(ir::ValueId value) const {
  const auto place = places_.find(value);
  if (place != places_.end()) return place->second;
  return function_.values[value.index()].name + "%" + std::to_string(value.index());
}

std::int64_t FloorArrays::evaluated(HostExprId expr) {
  if (!request_.env.counts.empty()) {
    if (const auto exact = exprs_.eval_int(expr, request_.env)) return *exact;
  }
  const auto bound = exprs_.eval_int(exprs_.upper_bound(expr), request_.env);
  if (!bound && status_) status_ = tl::unexpected<rt::Error>(bound.error());
  return bound.value_or(0);
}

namespace {

using ir::Forces;

// Digits that an exact selection reads before it knows its threshold.
constexpr std::size_t kSelectionSweeps = 2;

}  // namespace

bool lies_in_memory(const ir::Program& program, const ir::Type& type) {
  for (int d = 0; d < type.rank; ++d) {
    if (!program.info.exprs.is_const(type.dims[d])) return true;
  }
  return false;
}

std::size_t sweeps_forced_by(const ir::Program& program, const ir::Function& function,
                             const Op& op) {
  if (op.operands.empty()) return 0;
  if (!lies_in_memory(program, ir::type_of(function, op.operands[0]))) return 0;
  const bool is_along_rows = op.attrs.axis == 1;
  switch (ir::op_info(op.kind).forces) {
    case Forces::Free:
      return 0;
    case Forces::Whole:
      return 1;
    case Forces::Across:
      return is_along_rows ? 0 : 1;
    case Forces::Selection:
      return is_along_rows ? 0 : kSelectionSweeps;
    case Forces::Places:
      return op.attrs.proved || op.attrs.in_rows ? 0 : 1;
    case Forces::Terms:
      // Does an element of the product have few terms, or do rows stay on chip?
      return program.info.exprs.is_const(ir::type_of(function, op.operands[0]).dims[1]) ? 0 : 1;
  }
  return 0;
}

bool is_made_whole(OpKind kind) {
  const Forces forces = ir::op_info(kind).forces;
  return forces != Forces::Free && forces != Forces::Selection;
}

}  // namespace cinch::analysis
