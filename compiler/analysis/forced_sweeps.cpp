// Two walks. Forward: from which sweep on each value can be had. Backward, from everything that a
// sweep must end with (a reduction's result, a field, a state, an output): which arrays it reads.
#include "compiler/analysis/forced_sweeps.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "compiler/ir/ops.h"
#include "compiler/ir/rewriter.h"
#include "runtime/core/check.h"

namespace cinch::analysis {
namespace {

using ir::Op;
using ir::OpKind;
using ir::ValueId;

// Digits that an exact selection looks at before it knows its threshold.
constexpr std::size_t kSelectionSweeps = 2;

// What a sweep ends with: a value that is computed from arrays and, unless it is a reduction's,
// stored.
struct Sink {
  ValueId value;
  std::size_t sweep = 0;
  std::optional<Stream> store;
  std::optional<std::uint32_t> state;  // the state that it replaces
};

class Floor {
 public:
  Floor(const ir::Program& program, const FloorRequest& request)
      : program_(program),
        function_(*find(program, request.function)),
        request_(request),
        exprs_(program.info.exprs),
        ready_(function_.values.size(), 0) {}

  ForcedSweeps run() {
    visit(function_.body);
    add_result_sinks();
    delay_stores();
    return gathered();
  }

 private:
  static const ir::Function* find(const ir::Program& program, ir::FunctionKind kind) {
    const ir::Function* function = program.find(kind);
    CINCH_CHECK(function != nullptr, "the floor of a function that the program lacks");
    return function;
  }

  const ir::Type& type(ValueId value) const { return ir::type_of(function_, value); }

  std::int64_t evaluated(HostExprId expr) {
    if (!request_.env.counts.empty()) {
      if (const auto exact = exprs_.eval_int(expr, request_.env)) return *exact;
    }
    const auto bound = exprs_.eval_int(exprs_.upper_bound(expr), request_.env);
    CINCH_CHECK(bound.has_value(), "a size of the floor: " + bound.error().message);
    return *bound;
  }
  std::int64_t num_elems(const ir::Type& type) {
    std::int64_t elements = 1;
    for (int d = 0; d < type.rank; ++d) elements *= evaluated(type.dims[d]);
    return elements;
  }
  // Small arrays (tables, histograms) are finished on chip.
  bool is_array(ValueId value) const {
    const ir::Type& t = type(value);
    for (int d = 0; d < t.rank; ++d) {
      if (!exprs_.is_const(t.dims[d])) return true;
    }
    return false;
  }
  std::int64_t size_bytes(ValueId value, std::int64_t elements) const {
    return packed_bytes(type(value).dtype, elements);
  }

  // ---- forward

  void visit(ir::RegionId region) {
    for (const ir::OpId id : function_.regions[region.index()].ops) {
      const Op& op = function_.ops[id.index()];
      for (const ir::RegionId held : op.regions) visit(held);
      const std::size_t from = operands_ready(op);
      const std::size_t more = forced_by(op);
      for (std::size_t i = 0; i < more; ++i) add_reduction_sinks(op, from + i);
      for (const ValueId result : op.results) ready_[result.index()] = from + more;
    }
  }

  std::size_t operands_ready(const Op& op) const {
    std::size_t latest = 0;
    const auto note = [&](ValueId v) { latest = std::max(latest, ready_[v.index()]); };
    for (const ValueId v : op.operands) note(v);
    for (const ir::RegionId held : op.regions) {
      for (const ValueId v : yielded(held)) note(v);
    }
    return latest;
  }
  const std::vector<ValueId>& yielded(ir::RegionId region) const {
    return function_.ops[function_.regions[region.index()].ops.back().index()].operands;
  }

  // Sweeps after which the op's result is known; 0: as soon as its operands are.
  std::size_t forced_by(const Op& op) const {
    if (op.operands.empty() || !is_array(op.operands[0])) return 0;
    switch (op.kind) {
      case OpKind::reduce:
        return op.attrs.axis == 1 ? 0 : 1;
      case OpKind::top_k:
      case OpKind::kth_largest:
        return op.attrs.axis == 1 ? 0 : kSelectionSweeps;
      case OpKind::argsort:
      case OpKind::histogram:
      case OpKind::scatter_add:
      case OpKind::matmul:
      case OpKind::orthonormalize:
        return 1;
      default:
        return 0;
    }
  }

  void add_reduction_sinks(const Op& op, std::size_t sweep) {
    for (const ValueId operand : op.operands) {
      if (is_array(operand)) sinks_.push_back({operand, sweep, std::nullopt, std::nullopt});
    }
  }

  // ---- what the function hands out

  void add_result_sinks() {
    const ir::Results& results = function_.results;
    add_state_sinks(results.states);
    const auto& fields = program_.info.wire.fields;
    for (std::size_t i = 0; i < results.fields.size(); ++i)
      add_store(results.fields[i], fields[i].name);
    if (results.output.is_valid()) {
      add_store(results.output, "output",
                request_.adds_output ? Stream::Use::Update : Stream::Use::Write);
    }
  }

  void add_state_sinks(const std::vector<ValueId>& states) {
    for (std::uint32_t i = 0; i < states.size(); ++i) {
      const Op& def = ir::defining_op(function_, states[i]);
      if (def.kind == OpKind::state && def.attrs.index == i) continue;  // stays what it is
      if (!is_array(states[i])) continue;
      check_gradient();
      const std::size_t first = sinks_.size();
      add_store(states[i], program_.info.states[i].name, Stream::Use::Update);
      for (std::size_t s = first; s < sinks_.size(); ++s) {
        sinks_[s].state = i;
        sinks_[s].sweep = std::max<std::size_t>(sinks_[s].sweep, 1);
      }
    }
  }

  // All of the gradient was looked at before a state changes.
  void check_gradient() {
    for (std::size_t v = 0; v < function_.values.size(); ++v) {
      const ValueId value(static_cast<std::uint32_t>(v));
      if (ir::defining_op(function_, value).kind != OpKind::gradient) continue;
      sinks_.push_back({value, 0, std::nullopt, std::nullopt});
    }
  }

  // A scatter stores its base whole where that is known, and then the few that it changes.
  void add_store(ValueId value, const std::string& name, Stream::Use use = Stream::Use::Write) {
    if (!is_array(value)) return;
    const Op& def = ir::defining_op(function_, value);
    const std::int64_t elements = num_elems(type(value));
    if (def.kind != OpKind::scatter) {
      add_sink(value, Stream{name, use, size_bytes(value, elements)});
      return;
    }
    const std::int64_t changed = std::min(elements, num_elems(type(def.operands[1])));
    const bool adds = request_.adds_output && name == "output";
    if (!adds) add_store(def.operands[0], name, use);  // adding zeros changes nothing
    add_sink(def.operands[1], std::nullopt);
    add_sink(def.operands[2], Stream{name, use, size_bytes(value, changed)});
    sinks_.back().sweep = std::max(sinks_.back().sweep, ready_[def.operands[1].index()]);
  }

  void add_sink(ValueId value, std::optional<Stream> store) {
    sinks_.push_back({value, ready_[value.index()], std::move(store), std::nullopt});
  }

  // A field may be stored later than it could be, where what it reads is read then anyway.
  void delay_stores() {
    std::size_t last = 0;
    for (const Sink& sink : sinks_) last = std::max(last, sink.sweep);
    for (Sink& sink : sinks_) {
      if (!sink.store || sink.state) continue;
      std::int64_t least = total(gathered());
      const std::size_t first = sink.sweep;
      std::size_t best = first;
      for (std::size_t sweep = first + 1; sweep <= last; ++sweep) {
        sink.sweep = sweep;
        const std::int64_t bytes = total(gathered());
        if (bytes < least) least = bytes, best = sweep;
      }
      sink.sweep = best;
    }
  }
  static std::int64_t total(const ForcedSweeps& sweeps) {
    const SweepBytes bytes = sweeps.bytes();
    return bytes.read + bytes.written;
  }

  // ---- backward

  struct Reads {
    std::map<ValueId, std::int64_t> elements;    // of leaves and of stored values
    std::map<ValueId, std::int64_t> was_walked;  // the most elements asked of each value
  };

  ForcedSweeps gathered() {
    std::size_t count = 0;
    for (const Sink& sink : sinks_) count = std::max(count, sink.sweep + 1);
    ForcedSweeps floor;
    floor.sweeps.resize(count);
    drawn_.clear();
    for (std::size_t sweep = 0; sweep < count; ++sweep) floor.sweeps[sweep] = streams_of(sweep);
    for (const auto& [value, words] : drawn_) floor.random_words += words;
    return floor;
  }

  std::vector<Stream> streams_of(std::size_t sweep) {
    Reads reads;
    std::vector<Stream> streams;
    std::set<std::uint32_t> updated;
    for (const Sink& sink : sinks_) {
      if (sink.sweep != sweep) continue;
      walk(sink.value, num_elems(type(sink.value)), sweep, reads);
      if (!sink.store) continue;
      streams.push_back(*sink.store);
      if (sink.state) updated.insert(*sink.state);
    }
    for (const auto& [value, elements] : reads.elements) {
      const Op& op = ir::defining_op(function_, value);
      if (op.kind == OpKind::state && updated.contains(op.attrs.index)) continue;
      streams.push_back({leaf_name(op, value), Stream::Use::Read, size_bytes(value, elements)});
    }
    return streams;
  }

  std::string leaf_name(const Op& op, ValueId value) const {
    switch (op.kind) {
      case OpKind::gradient:
        return "gradient";
      case OpKind::state:
        return program_.info.states[op.attrs.index].name;
      case OpKind::field:
        return program_.info.wire.fields[op.attrs.index].name;
      default:
        return function_.values[value.index()].name;
    }
  }

  // `elements` of the value are needed in this sweep.
  void walk(ValueId value, std::int64_t elements, std::size_t sweep, Reads& reads) {
    if (!is_array(value)) return;
    const auto [place, is_new] = reads.was_walked.try_emplace(value, elements);
    if (!is_new && place->second >= elements) return;
    place->second = elements;
    const Op& op = ir::defining_op(function_, value);
    note_draws(op, value, elements);
    if (is_leaf(op.kind) || was_stored(value, sweep)) {
      reads.elements[value] = std::min(elements, num_elems(type(value)));
      return;
    }
    if (op.kind == OpKind::gather || op.kind == OpKind::slice) {
      walk(op.operands[0], elements, sweep, reads);
      for (std::size_t i = 1; i < op.operands.size(); ++i) walk_all(op.operands[i], sweep, reads);
      return;
    }
    for (const ValueId operand : op.operands) {
      walk_all(operand, sweep, reads,
               is_place_wise(op.kind) ? std::optional(elements) : std::nullopt);
    }
    for (const ir::RegionId held : op.regions) {
      for (const ValueId v : yielded(held)) walk_all(v, sweep, reads);
    }
  }
  // Of operands of the same length as much as of the result, of others all.
  void walk_all(ValueId value, std::size_t sweep, Reads& reads,
                std::optional<std::int64_t> of_result = {}) {
    const std::int64_t whole = num_elems(type(value));
    walk(value, of_result ? std::min(whole, *of_result) : whole, sweep, reads);
  }

  // Does an element of the result need no more than one of each operand?
  static bool is_place_wise(OpKind kind) {
    switch (kind) {
      case OpKind::map:
      case OpKind::convert:
      case OpKind::bitcast:
      case OpKind::stochastic_round:
      case OpKind::fill:
      case OpKind::reshape:
      case OpKind::transpose:
      case OpKind::chunk:
      case OpKind::unchunk:
        return true;
      default:
        return false;
    }
  }
  static bool is_leaf(OpKind kind) {
    return kind == OpKind::gradient || kind == OpKind::state || kind == OpKind::field;
  }
  // Reading a stored copy costs one array; making the value again may cost several.
  bool was_stored(ValueId value, std::size_t sweep) const {
    return std::any_of(sinks_.begin(), sinks_.end(), [&](const Sink& sink) {
      return sink.store && sink.value == value && sink.sweep < sweep;
    });
  }

  // docs/language_bits.md: rounding draws 16 bits, and more only where these tie.
  static std::int64_t words_of(OpKind kind, std::int64_t elements) {
    return kind == OpKind::stochastic_round ? (elements + 1) / 2 : elements;
  }
  // A draw made again in another sweep is the same words; its cost counts once.
  void note_draws(const Op& op, ValueId value, std::int64_t elements) {
    if (!ir::is_draw(op.kind)) return;
    std::int64_t& words = drawn_[value];
    words = std::max(words, words_of(op.kind, elements));
  }

  const ir::Program& program_;
  const ir::Function& function_;
  const FloorRequest& request_;
  HostExprPool exprs_;  // a copy: bounds are formulas of their own
  std::vector<std::size_t> ready_;
  std::vector<Sink> sinks_;
  std::map<ValueId, std::int64_t> drawn_;
};

}  // namespace

SweepBytes ForcedSweeps::bytes() const {
  SweepBytes total;
  for (const std::vector<Stream>& sweep : sweeps) {
    for (const Stream& stream : sweep) {
      if (stream.use != Stream::Use::Write) total.read += stream.size_bytes;
      if (stream.use != Stream::Use::Read) total.written += stream.size_bytes;
    }
  }
  return total;
}

ForcedSweeps find_forced_sweeps(const ir::Program& lowered, const FloorRequest& request) {
  return Floor(lowered, request).run();
}

}  // namespace cinch::analysis
