// Two walks. The forward walk finds the sweep after which each value is known. The backward walk
// starts from everything that a sweep must end with (a reduction's result, a field, a state, an
// output) and finds the arrays that it reads.
#include "compiler/analysis/forced_sweeps.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "compiler/analysis/rank_sums.h"
#include "compiler/analysis/sweep_rules.h"
#include "compiler/ir/ops.h"
#include "compiler/ir/rewriter.h"
#include "runtime/core/check.h"

namespace cinch::analysis {
namespace {

using ir::Op;
using ir::OpKind;
using ir::ValueId;

// The end of a sweep: a value that is computed from arrays and, unless a reduction takes it,
// stored.
struct Sink {
  ValueId value;
  std::size_t sweep = 0;
  std::optional<Stream> store;
  std::optional<std::uint32_t> state;  // the state that the value replaces
  bool is_awaited = false;             // a later sweep or another rank reads the stored value
  std::int64_t rounds = 1;             // how often it runs
  dsl::Span span = {};                 // of a reduction; otherwise that of the value
};

constexpr std::int64_t kLineBytes = 64;

class Floor {
 public:
  Floor(const ir::Program& program, const FloorRequest& request)
      : program_(program),
        function_(*find(program, request.function)),
        request_(request),
        exprs_(program.info.exprs),
        ready_(function_.values.size(), 0) {}

  rt::Result<ForcedSweeps> run() {
    const std::size_t num_known = request_.loop_rounds.size();
    knows_rounds_ = num_known > 0 && num_known == num_loops(function_.body);
    visit(function_.body);
    add_result_sinks();
    delay_stores();
    keep_lists();
    ForcedSweeps found = gathered();
    for (const Sink& sink : sinks_) found.ends.push_back(end_of(sink));
    if (!status_) return tl::unexpected<rt::Error>(status_.error());
    return found;
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
    if (!bound && status_) status_ = tl::unexpected<rt::Error>(bound.error());
    return bound.value_or(0);
  }
  std::int64_t num_elems(const ir::Type& type) {
    constexpr std::int64_t kMostElems = std::int64_t{1} << 56;
    std::int64_t elements = 1;
    for (int d = 0; d < type.rank; ++d) {
      const bool overflows = __builtin_mul_overflow(elements, evaluated(type.dims[d]), &elements);
      if (!overflows && elements <= kMostElems) continue;
      if (status_) status_ = rt::fail(rt::ErrorKind::Overflow, "an array of 2^56 elements or more");
      return 0;
    }
    return elements;
  }
  bool is_array(ValueId value) const { return lies_in_memory(program_, type(value)); }
  std::int64_t size_bytes(ValueId value, std::int64_t elements) const {
    const auto travels = travelling_bytes_.find(value);
    return travels != travelling_bytes_.end() ? travels->second
                                              : packed_bytes(type(value).dtype, elements);
  }

  // ---- forward

  static bool is_loop(const Op& op) {
    return op.kind == OpKind::for_loop || op.kind == OpKind::while_loop;
  }
  std::size_t num_loops(ir::RegionId region) const {
    std::size_t loops = 0;
    for (const ir::OpId id : function_.regions[region.index()].ops) {
      const Op& op = function_.ops[id.index()];
      loops += is_loop(op) ? 1 : 0;
      for (const ir::RegionId held : op.regions) loops += num_loops(held);
    }
    return loops;
  }

  // Each round of an enclosing loop runs the region again.
  void visit_held(const Op& op) {
    const std::int64_t outside = rounds_;
    if (is_loop(op) && knows_rounds_) rounds_ = request_.loop_rounds[next_loop_++];
    for (const ir::RegionId held : op.regions) visit(held);
    rounds_ = outside;
  }

  void visit(ir::RegionId region) {
    for (const ir::OpId id : function_.regions[region.index()].ops) {
      const Op& op = function_.ops[id.index()];
      visit_held(op);
      const std::size_t from = operands_ready(op);
      if (ir::is_collective(op.kind)) {
        hand_over(op, from);
        continue;
      }
      const std::size_t more = sweeps_forced_by(program_, function_, op);
      for (std::size_t i = 0; i < more; ++i) add_reduction_sinks(op, from + i);
      if (more > 0 && is_made_whole(op.kind)) keep(op.results[0], from);
      for (const ValueId result : op.results) ready_[result.index()] = from + more;
    }
  }

  // Stores the result of a forced sweep, which later sweeps read from memory.
  void keep(ValueId value, std::size_t sweep) {
    if (!is_array(value)) return;
    const Stream store{place_of(value), Stream::Use::Write,
                       size_bytes(value, num_elems(type(value)))};
    sinks_.push_back({value, sweep, store, std::nullopt, /*is_awaited=*/true, rounds_});
  }

  // A collective's input and output lie in memory: in the same place if no other rank adds
  // anything.
  void hand_over(const Op& op, std::size_t from) {
    const ValueId sent = op.operands[0], received = op.results[0];
    const auto bytes = packed_sum_bytes(program_, function_, op, request_.env);
    if (bytes) travelling_bytes_[sent] = travelling_bytes_[received] = *bytes;
    if (is_array(sent) && !was_stored(sent, from)) keep(sent, from++);
    for (const ValueId result : op.results) ready_[result.index()] = from;
    places_[received] = place_of(sent);
  }
  std::string place_of(ValueId value) const {
    const auto place = places_.find(value);
    if (place != places_.end()) return place->second;
    return function_.values[value.index()].name + "%" + std::to_string(value.index());
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

  void add_reduction_sinks(const Op& op, std::size_t sweep) {
    for (const ValueId operand : op.operands) {
      if (!is_array(operand)) continue;
      sinks_.push_back(
          {operand, sweep, std::nullopt, std::nullopt, /*is_awaited=*/false, rounds_, op.span});
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
      if (def.kind == OpKind::state && def.attrs.index == i) continue;  // the state is unchanged
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

  // All of the gradient must be checked before a state changes.
  void check_gradient() {
    for (std::size_t v = 0; v < function_.values.size(); ++v) {
      const ValueId value(static_cast<std::uint32_t>(v));
      if (ir::defining_op(function_, value).kind != OpKind::gradient) continue;
      sinks_.push_back({value, 0, std::nullopt, std::nullopt});
    }
  }

  // A scatter stores its whole base, if that is known, and then the few elements that it changes.
  void add_store(ValueId value, const std::string& name, Stream::Use use = Stream::Use::Write) {
    if (!is_array(value)) return;
    const Op& def = ir::defining_op(function_, value);
    const std::int64_t elements = num_elems(type(value));
    if (use == Stream::Use::Write && store_where_made(value, name)) return;
    if (def.kind != OpKind::scatter) {
      add_sink(value, Stream{name, use, size_bytes(value, elements)});
      return;
    }
    const std::int64_t changed = std::min(elements, num_elems(type(def.operands[1])));
    const bool adds = request_.adds_output && name == "output";
    if (!adds) add_store(def.operands[0], name, use);  // adding zeros changes nothing
    add_sink(def.operands[1], std::nullopt);
    add_sink(def.operands[2], Stream{name, use, scattered_bytes(value, changed)});
    sinks_.back().sweep = std::max(sinks_.back().sweep, ready_[def.operands[1].index()]);
  }

  // If elements lie far apart, each access moves a line of the cache.
  std::int64_t scattered_bytes(ValueId value, std::int64_t elements) {
    const std::int64_t lines = std::min(elements, INT64_MAX / kLineBytes) * kLineBytes;
    return std::min(lines, size_bytes(value, num_elems(type(value))));
  }

  SweepEnd end_of(const Sink& sink) const {
    const Op& def = ir::defining_op(function_, sink.value);
    SweepEnd end{sink.span.has_file() ? sink.span : def.span, sink.sweep, "", 0};
    if (sink.store) end.stored = sink.store->name, end.stored_bytes = sink.store->size_bytes;
    return end;
  }

  // A value that a forced sweep makes is stored directly at its destination.
  bool store_where_made(ValueId value, const std::string& name) {
    const Op& def = ir::defining_op(function_, value);
    if (def.kind == OpKind::concat) {
      const auto is_made = [&](ValueId part) { return kept(part) != nullptr; };
      if (!std::ranges::all_of(def.operands, is_made)) return false;
      for (const ValueId part : def.operands) store_where_made(part, name + "%" + place_of(part));
      return true;
    }
    Sink* sink = kept(value);
    if (sink == nullptr) return false;
    sink->store->name = places_[value] = name;
    return true;
  }
  // The sink that makes the value, if a forced sweep does and nothing else uses its place.
  Sink* kept(ValueId value) {
    const auto sink = std::ranges::find_if(sinks_, [&](const Sink& each) {
      return each.is_awaited && each.value == value && !places_.contains(value);
    });
    return sink == sinks_.end() ? nullptr : &*sink;
  }

  void add_sink(ValueId value, std::optional<Stream> store) {
    sinks_.push_back({value, ready_[value.index()], std::move(store), std::nullopt});
  }

  // Stores a field in a later sweep if that reads the same arrays anyway: together with other
  // stores of that sweep, or alone.
  void delay_stores() {
    std::size_t last = 0;
    std::map<std::size_t, std::vector<Sink*>> by_sweep;
    for (Sink& sink : sinks_) {
      last = std::max(last, sink.sweep);
      if (sink.store && !sink.state && !sink.is_awaited) by_sweep[sink.sweep].push_back(&sink);
    }
    for (const auto& [sweep, group] : by_sweep) delay(group, sweep, last);
    for (const auto& [sweep, group] : by_sweep) {
      for (Sink* sink : group) delay({sink}, sink->sweep, last);
    }
  }
  void delay(const std::vector<Sink*>& group, std::size_t first, std::size_t last) {
    const auto move_to = [&](std::size_t sweep) {
      for (Sink* sink : group) sink->sweep = sweep;
    };
    std::int64_t least = total(gathered());
    std::size_t best = first;
    for (std::size_t sweep = first + 1; sweep <= last; ++sweep) {
      move_to(sweep);
      const std::int64_t bytes = total(gathered());
      if (bytes < least) least = bytes, best = sweep;
    }
    move_to(best);
  }
  // Keeps the result of a selection as a list if that is smaller than its source.
  void keep_lists() {
    for (const Op& op : function_.ops) {
      const bool selects = op.kind == OpKind::nonzero || op.kind == OpKind::top_k;
      if (!selects || op.attrs.axis == 1 || !is_array(op.results[0])) continue;
      const std::int64_t found_again = total(gathered());
      keep(op.results[0], ready_[op.results[0].index()]);
      if (total(gathered()) >= found_again) sinks_.pop_back();
    }
  }
  static std::int64_t total(const ForcedSweeps& sweeps) {
    const SweepBytes bytes = sweeps.bytes();
    return bytes.read + bytes.written;
  }

  // ---- backward

  struct Reads {
    // Elements that are read, of leaves and of stored values.
    std::map<ValueId, std::int64_t> elements;
    // The most elements that were requested of each value
    std::map<ValueId, std::int64_t> was_walked;
  };

  ForcedSweeps gathered() {
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

  std::int64_t rounds_of(std::size_t sweep) const {
    std::int64_t most = knows_rounds_ ? 0 : 1;
    for (const Sink& sink : sinks_) {
      if (sink.sweep == sweep) most = std::max(most, sink.rounds);
    }
    return most;
  }

  // The streams of this round of the sweep.
  std::vector<Stream> streams_of(std::size_t sweep, std::int64_t round) {
    Reads reads;
    std::vector<Stream> streams;
    std::set<std::uint32_t> updated;
    for (const Sink& sink : sinks_) {
      if (sink.sweep != sweep || sink.rounds <= round) continue;
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
        return place_of(value);
    }
  }

  // Notes that this sweep needs `elements` of the value.
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
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      walk_operand(op, i, elements, sweep, reads);
    }
    for (const ir::RegionId held : op.regions) {
      for (const ValueId v : yielded(held)) walk_all(v, sweep, reads);
    }
  }
  void walk_operand(const Op& op, std::size_t i, std::int64_t elements, std::size_t sweep,
                    Reads& reads) {
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
  // Needs as many elements as of the result from operands of the same length, and all elements of
  // others.
  void walk_all(ValueId value, std::size_t sweep, Reads& reads,
                std::optional<std::int64_t> of_result = {}) {
    const std::int64_t whole = num_elems(type(value));
    walk(value, of_result ? std::min(whole, *of_result) : whole, sweep, reads);
  }

  static bool is_leaf(OpKind kind) {
    return kind == OpKind::gradient || kind == OpKind::state || kind == OpKind::field ||
           ir::is_collective(kind);
  }
  // Reading a stored copy costs one array; recomputing the value may cost several.
  bool was_stored(ValueId value, std::size_t sweep) const {
    return std::any_of(sinks_.begin(), sinks_.end(), [&](const Sink& sink) {
      return sink.store && sink.value == value && sink.sweep < sweep;
    });
  }

  // docs/language_bits.md: rounding draws 16 bits, and more only on ties.
  static std::int64_t words_of(OpKind kind, std::int64_t elements) {
    return kind == OpKind::stochastic_round ? (elements + 1) / 2 : elements;
  }
  // A draw that is repeated in another sweep has the same words; its cost counts once.
  void note_draws(const Op& op, ValueId value, std::int64_t elements) {
    if (!ir::is_draw(op.kind)) return;
    std::int64_t& words = drawn_[value];
    words = std::max(words, words_of(op.kind, elements));
  }

  const ir::Program& program_;
  const ir::Function& function_;
  const FloorRequest& request_;
  HostExprPool exprs_;            // a copy: bounds are formulas of their own
  rt::Status status_ = rt::Ok{};  // the first size that could not be evaluated
  bool knows_rounds_ = false;
  std::size_t next_loop_ = 0;
  std::int64_t rounds_ = 1;  // of all enclosing loops together
  std::vector<std::size_t> ready_;
  std::vector<Sink> sinks_;
  std::map<ValueId, std::string> places_;             // of values that share a place with another
  std::map<ValueId, std::int64_t> travelling_bytes_;  // of values that ranks add up in fewer bits
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

rt::Result<ForcedSweeps> find_forced_sweeps(const ir::Program& lowered,
                                            const FloorRequest& request) {
  return Floor(lowered, request).run();
}

}  // namespace cinch::analysis
