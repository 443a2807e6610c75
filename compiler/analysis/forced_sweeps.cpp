// Two walks. Forward (Floor): from which sweep on each value can be had. Backward (FloorStreams),
// from everything that a sweep must end with (a reduction's result, a field, a state, an output):
// which arrays it reads.
#include "compiler/analysis/forced_sweeps.h"

#include <algorithm>
#include <set>

#include "compiler/analysis/rank_sums.h"
#include "compiler/ir/ops.h"
#include "runtime/core/check.h"
#include "runtime/core/sizes/host_expr.h"

namespace cinch::analysis {
namespace {

constexpr std::int64_t kLineBytes = 64;

using ir::Op;
using ir::OpKind;
using ir::ValueId;

bool is_loop(const Op& op) {
  return op.kind == OpKind::for_loop || op.kind == OpKind::while_loop;
}

std::size_t num_loops(const ir::Function& function, ir::RegionId region) {
  std::size_t loops = 0;
  for (const ir::OpId id : function.regions[region.index()].ops) {
    const Op& op = function.ops[id.index()];
    loops += is_loop(op) ? 1 : 0;
    for (const ir::RegionId held : op.regions) loops += num_loops(function, held);
  }
  return loops;
}

using ir::Forces;

// Digits that an exact selection reads before it knows its threshold.
constexpr std::size_t kSelectionSweeps = 2;

// Does the array lie in memory? Small arrays (tables, histograms) of constant size are finished on
// chip.
bool lies_in_memory(const ir::Program& program, const ir::Type& type) {
  for (int d = 0; d < type.rank; ++d) {
    if (!program.info.exprs->is_const(type.dims[d])) return true;
  }
  return false;
}

// How many sweeps over its operands the op needs before its result is known; 0: none.
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
      return program.info.exprs->is_const(ir::type_of(function, op.operands[0]).dims[1]) ? 0 : 1;
  }
  return 0;
}

// Does recomputing a part of the result cost as much as recomputing all of it? If so, a result
// that a forced sweep made lies in memory for later ones.
bool is_made_whole(OpKind kind) {
  const Forces forces = ir::op_info(kind).forces;
  return forces != Forces::Free && forces != Forces::Selection;
}

// What the arrays of a function take at given sizes, and where they lie: what both walks ask.
class FloorArrays {
 public:
  /// The program has the function that is asked for. All three outlive this object.
  FloorArrays(const ir::Program& program, const ir::Function& function, const FloorRequest& request)
      : program_(program), function_(function), request_(request), exprs_(*program.info.exprs) {}

  const ir::Program& program() const { return program_; }
  const ir::Function& function() const { return function_; }

  const ir::Op& maker(ir::ValueId value) const { return ir::defining_op(function_, value); }
  const std::vector<ir::ValueId>& yielded(ir::RegionId region) const {
    return function_.ops[function_.regions[region.index()].ops.back().index()].operands;
  }

  bool is_array(ir::ValueId value) const {
    return lies_in_memory(program_, ir::type_of(function_, value));
  }

  /// At most; 0 where there is no such number, which `status` then tells.
  std::int64_t num_elems(ir::ValueId value) {
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

  std::int64_t size_bytes(ir::ValueId value, std::int64_t elements) const {
    const auto travels = travelling_.find(value);
    return travels != travelling_.end()
               ? travels->second
               : packed_bytes(ir::type_of(function_, value).dtype, elements);
  }

  /// Of all its elements.
  std::int64_t size_bytes(ir::ValueId value) { return size_bytes(value, num_elems(value)); }
  /// The value travels between ranks in fewer bytes than its elements take.
  void set_travelling_bytes(ir::ValueId value, std::int64_t bytes) { travelling_[value] = bytes; }

  /// The stream that holds the value: its own, unless it lies where another does.
  std::string place_of(ir::ValueId value) const {
    const auto place = places_.find(value);
    if (place != places_.end()) return place->second;
    return function_.values[value.index()].name + "%" + std::to_string(value.index());
  }

  void set_place(ir::ValueId value, const std::string& place) { places_[value] = place; }
  bool has_place(ir::ValueId value) const { return places_.contains(value); }

  /// Of the first size that has no number.
  const rt::Status& status() const { return status_; }

 private:
  std::int64_t evaluated(HostExprId expr) {
    if (!request_.env.counts.empty()) {
      if (const auto exact = exprs_.eval_int(expr, request_.env)) return *exact;
    }
    const auto bound = exprs_.eval_int(exprs_.upper_bound(expr), request_.env);
    if (!bound && status_) status_ = tl::unexpected<rt::Error>(bound.error());
    return bound.value_or(0);
  }

  const ir::Program& program_;
  const ir::Function& function_;
  const FloorRequest& request_;
  HostExprPool exprs_;  // a copy: bounds are formulas of their own
  rt::Status status_ = rt::Ok{};
  std::map<ir::ValueId, std::string> places_;
  std::map<ir::ValueId, std::int64_t> travelling_;
};

// What a sweep ends with: a value that is computed from arrays and, unless it is a reduction's,
// stored.
struct Sink {
  ir::ValueId value;
  std::size_t sweep = 0;
  std::optional<Stream> store;
  std::optional<std::uint32_t> state;  // the state that it replaces
  bool is_awaited = false;             // a later sweep or another rank reads what is stored
  std::int64_t rounds = 1;             // how often it is met
  dsl::Span span = {};                 // of a reduction; else the value's
};

// Was the value stored in a sweep before this one? Reading the copy costs one array; making the
// value again may cost several.
bool was_stored(const std::vector<Sink>& sinks, ValueId value, std::size_t sweep) {
  return std::ranges::any_of(sinks, [&](const Sink& sink) {
    return sink.store && sink.value == value && sink.sweep < sweep;
  });
}

// Walks backward from the sinks to the arrays that they are made of.
class FloorStreams {
 public:
  /// Rounds of loops count where they are known; else all of a loop is met once.
  FloorStreams(FloorArrays& arrays, const std::vector<Sink>& sinks, bool knows_rounds)
      : arrays_(arrays), sinks_(sinks), knows_rounds_(knows_rounds) {}

  /// The sweeps of all sinks as they are now; `ends` is left empty.
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

  /// Bytes read and written by them.
  std::int64_t total_bytes() {
    const SweepBytes bytes = gathered().bytes();
    return bytes.read + bytes.written;
  }

 private:
  struct Reads {
    std::map<ir::ValueId, std::int64_t> elements;    // of leaves and of stored values
    std::map<ir::ValueId, std::int64_t> was_walked;  // the most elements asked of each value
  };

  std::int64_t rounds_of(std::size_t sweep) const {
    std::int64_t most = knows_rounds_ ? 0 : 1;
    for (const Sink& sink : sinks_) {
      if (sink.sweep == sweep) most = std::max(most, sink.rounds);
    }
    return most;
  }

  // Of what is met in this round of the sweep.
  std::vector<Stream> streams_of(std::size_t sweep, std::int64_t round) {
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

  std::string leaf_name(const Op& op, ValueId value) const {
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
  void walk(ValueId value, std::int64_t elements, std::size_t sweep, Reads& reads) {
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

  // Of operands of the same length as much as of the result, of others all.
  void walk_all(ValueId value, std::size_t sweep, Reads& reads,
                std::optional<std::int64_t> of_result = {}) {
    const std::int64_t whole = arrays_.num_elems(value);
    walk(value, of_result ? std::min(whole, *of_result) : whole, sweep, reads);
  }

  FloorArrays& arrays_;
  const std::vector<Sink>& sinks_;
  bool knows_rounds_;
  std::map<ir::ValueId, std::int64_t> drawn_;
};

class Floor {
 public:
  Floor(const ir::Program& program, const FloorRequest& request)
      : program_(program),
        function_(*find(program, request.function)),
        request_(request),
        arrays_(program, function_, request),
        knows_rounds_(!request.loop_rounds.empty() &&
                      request.loop_rounds.size() == num_loops(function_, function_.body)),
        streams_(arrays_, sinks_, knows_rounds_),
        uses_(function_),
        ready_(function_.values.size(), 0) {}

  rt::Result<ForcedSweeps> run() {
    visit(function_.body);
    add_result_sinks();
    delay_stores();
    keep_lists();
    ForcedSweeps found = streams_.gathered();
    for (const Sink& sink : sinks_) {
      const Op& def = arrays_.maker(sink.value);
      SweepEnd end{sink.span.has_file() ? sink.span : def.span, sink.sweep, "", 0};
      if (sink.store) end.stored = sink.store->name, end.stored_bytes = sink.store->size_bytes;
      found.ends.push_back(std::move(end));
    }
    if (!arrays_.status()) return tl::unexpected<rt::Error>(arrays_.status().error());
    return found;
  }

 private:
  static const ir::Function* find(const ir::Program& program, ir::FunctionKind kind) {
    const ir::Function* function = program.find(kind);
    CINCH_CHECK(function != nullptr, "the floor of a function that the program lacks");
    return function;
  }

  void visit(ir::RegionId region) {
    for (const ir::OpId id : function_.regions[region.index()].ops) {
      const Op& op = function_.ops[id.index()];
      // Each round of a loop around it meets the region again.
      const std::int64_t outside = rounds_;
      if (is_loop(op) && knows_rounds_) rounds_ = request_.loop_rounds[next_loop_++];
      for (const ir::RegionId held : op.regions) visit(held);
      rounds_ = outside;
      const std::size_t from = operands_ready(op);
      if (ir::is_collective(op.kind)) {
        hand_over(op, from);
        continue;
      }
      const std::size_t more = sweeps_forced_by(program_, function_, op);
      for (std::size_t i = 0; i < more; ++i) add_reduction_sinks(op, from + i);
      if (more > 0 && is_made_whole(op.kind)) keep(op.results[0], from);
      for (const ValueId result : op.results) ready_[result.index()] = from + more;
      if (!is_counted(op)) continue;
      // The number is known behind the mask's end. The indices are known one after the other.
      add_reduction_sinks(op, from);
      ready_[op.results[1].index()] = from + 1;
    }
  }

  // Does the function use how many elements a mask selects? A limit may end the counting early. A
  // count of the wire alone is known once the indices are.
  bool is_counted(const Op& op) const {
    if (op.kind != OpKind::nonzero || op.attrs.has_limit) return false;
    const ValueId count = op.results[1];
    const auto& fields = function_.results.fields;
    const bool is_used =
        !uses_.of(count).empty() || std::ranges::find(fields, count) != fields.end();
    return is_used && arrays_.is_array(op.operands[0]);
  }

  // A result of a forced sweep that later ones read from memory.
  void keep(ValueId value, std::size_t sweep) {
    if (!arrays_.is_array(value)) return;
    const Stream store{arrays_.place_of(value), Stream::Use::Write, arrays_.size_bytes(value)};
    sinks_.push_back({value, sweep, store, std::nullopt, /*is_awaited=*/true, rounds_});
  }

  // A collective's input and output lie in memory: in the same place if no other rank adds
  // anything.
  void hand_over(const Op& op, std::size_t from) {
    const ValueId sent = op.operands[0], received = op.results[0];
    if (const auto bytes = packed_sum_bytes(program_, function_, op, request_.env)) {
      arrays_.set_travelling_bytes(sent, *bytes);
      arrays_.set_travelling_bytes(received, *bytes);
    }
    if (arrays_.is_array(sent) && !was_stored(sinks_, sent, from)) keep(sent, from++);
    for (const ValueId result : op.results) ready_[result.index()] = from;
    arrays_.set_place(received, arrays_.place_of(sent));
  }

  std::size_t operands_ready(const Op& op) const {
    std::size_t latest = 0;
    const auto note = [&](ValueId v) { latest = std::max(latest, ready_[v.index()]); };
    for (const ValueId v : op.operands) note(v);
    for (const ir::RegionId held : op.regions) {
      for (const ValueId v : arrays_.yielded(held)) note(v);
    }
    return latest;
  }

  void add_reduction_sinks(const Op& op, std::size_t sweep) {
    for (const ValueId operand : op.operands) {
      if (!arrays_.is_array(operand)) continue;
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
      const Op& def = arrays_.maker(states[i]);
      if (def.kind == OpKind::state && def.attrs.index == i) continue;  // stays what it is
      if (!arrays_.is_array(states[i])) continue;
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
      if (arrays_.maker(value).kind != OpKind::gradient) continue;
      sinks_.push_back({value, 0, std::nullopt, std::nullopt});
    }
  }

  void add_store(ValueId value, const std::string& name, Stream::Use use = Stream::Use::Write) {
    if (!arrays_.is_array(value)) return;
    if (use == Stream::Use::Write && store_where_made(value, name)) return;
    if (arrays_.maker(value).kind == OpKind::scatter) return add_scatters(value, name, use);
    sinks_.push_back(
        {value, ready_[value.index()], Stream{name, use, arrays_.size_bytes(value)}, std::nullopt});
  }

  // The first base is stored whole where that is known, and then the elements that scatters
  // change in place: all of them together at most the array once more.
  void add_scatters(ValueId value, const std::string& name, Stream::Use use) {
    const bool adds = request_.adds_output && name == "output";
    std::int64_t room = arrays_.size_bytes(value);
    std::vector<Sink> scattered;  // the last one first
    ValueId base = value;
    do {
      const Op& scatter = arrays_.maker(base);
      const ValueId at = scatter.operands[1], values = scatter.operands[2];
      const std::int64_t elements = std::min(arrays_.num_elems(base), arrays_.num_elems(at));
      // Elements that lie far apart move a line of the cache each.
      const std::int64_t bytes = std::min(room, std::min(elements, room) * kLineBytes);
      room -= bytes;
      const std::size_t sweep = std::max(ready_[at.index()], ready_[values.index()]);
      const Stream store{name, use, bytes};
      scattered.push_back({values, sweep, store, std::nullopt});
      scattered.push_back({at, ready_[at.index()], std::nullopt, std::nullopt});
      base = scatter.operands[0];
    } while (arrays_.maker(base).kind == OpKind::scatter && kept(base) == nullptr);
    const Op& first = arrays_.maker(base);
    const bool is_own_state = use == Stream::Use::Update && first.kind == OpKind::state &&
                              program_.info.states[first.attrs.index].name == name;
    const bool changes_nothing = is_own_state || (adds && is_zeros(base));
    if (!changes_nothing) add_store(base, name, use);
    sinks_.insert(sinks_.end(), scattered.rbegin(), scattered.rend());
  }

  bool is_zeros(ValueId value) const {
    const Op& def = arrays_.maker(value);
    if (def.kind == OpKind::const_scalar) return def.attrs.bits == 0;
    const bool keeps_zeros = def.kind == OpKind::fill || def.kind == OpKind::convert;
    return keeps_zeros && is_zeros(def.operands[0]);
  }

  // A value that a forced sweep makes is stored directly at its destination.
  bool store_where_made(ValueId value, const std::string& name) {
    const Op& def = arrays_.maker(value);
    if (def.kind == OpKind::concat && def.attrs.axis != 1) {
      const auto is_made = [&](ValueId part) { return kept(part) != nullptr; };
      if (!std::ranges::all_of(def.operands, is_made)) return false;
      for (const ValueId part : def.operands)
        store_where_made(part, name + "%" + arrays_.place_of(part));
      return true;
    }
    Sink* sink = kept(value);
    if (sink == nullptr || !sink->store) return false;
    sink->store->name = name;
    arrays_.set_place(value, name);
    return true;
  }
  // The sink that makes the value, if a forced sweep does and nothing else uses its place.
  Sink* kept(ValueId value) {
    const auto sink = std::ranges::find_if(sinks_, [&](const Sink& each) {
      return each.is_awaited && each.value == value && !arrays_.has_place(value);
    });
    return sink == sinks_.end() ? nullptr : &*sink;
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
    std::int64_t least = streams_.total_bytes();
    std::size_t best = first;
    for (std::size_t sweep = first + 1; sweep <= last; ++sweep) {
      move_to(sweep);
      const std::int64_t bytes = streams_.total_bytes();
      if (bytes < least) least = bytes, best = sweep;
    }
    move_to(best);
  }
  // Keeps the result of a selection as a list if that is smaller than its source.
  void keep_lists() {
    for (const Op& op : function_.ops) {
      const bool selects = op.kind == OpKind::nonzero || op.kind == OpKind::top_k;
      if (!selects || op.attrs.axis == 1 || !arrays_.is_array(op.results[0])) continue;
      const std::int64_t found_again = streams_.total_bytes();
      keep(op.results[0], ready_[op.results[0].index()]);
      if (streams_.total_bytes() >= found_again) sinks_.pop_back();
    }
  }

  const ir::Program& program_;
  const ir::Function& function_;
  const FloorRequest& request_;
  FloorArrays arrays_;
  bool knows_rounds_;
  std::vector<Sink> sinks_;
  FloorStreams streams_;  // of the sinks as they are
  ir::Uses uses_;
  std::size_t next_loop_ = 0;
  std::int64_t rounds_ = 1;  // of all enclosing loops together
  std::vector<std::size_t> ready_;
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
