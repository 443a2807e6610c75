// Two walks. Forward, here: from which sweep on each value can be had. Backward, from everything
// that a sweep must end with (a reduction's result, a field, a state, an output): which arrays it
// reads (forced_sweeps.h).
#include "compiler/analysis/forced_sweeps.h"

#include <algorithm>

#include "compiler/analysis/rank_sums.h"
#include "compiler/ir/ops.h"
#include "runtime/core/check.h"

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

  // The first base is stored whole where that is known, and then the elements that scatters change
  // in place: all of them together at most the array once more.
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
    if (def.kind == OpKind::concat) {
      const auto is_made = [&](ValueId part) { return kept(part) != nullptr; };
      if (!std::ranges::all_of(def.operands, is_made)) return false;
      for (const ValueId part : def.operands)
        store_where_made(part, name + "%" + arrays_.place_of(part));
      return true;
    }
    Sink* sink = kept(value);
    if (sink == nullptr) return false;
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
