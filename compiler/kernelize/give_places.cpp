// Gives places to values in memory, once the schedule is known. A sink that works in the place of
// another (Sink::source) has the other's buffer.
#include "compiler/kernelize/planner.h"

namespace cinch::codegen {
namespace {

class Places {
 public:
  Places(FunctionContext& cx, RegionPlan& plan) : cx_(cx), pc_(cx.program), plan_(plan) {}

  void give() {
    for (int id = 0; id < num_sinks(); ++id) join(id);
    for (int id = 0; id < num_sinks(); ++id) give_to(id);
  }

 private:
  int num_sinks() const { return static_cast<int>(plan_.sinks.size()); }
  ir::ValueId result(const Sink& s, std::size_t i = 0) const { return cx_.op(s.op).results[i]; }
  bool works_in_source(const Sink& s) const { return s.kind == SinkKind::Scatter && s.source >= 0; }
  // The first sink in the chain of sinks that share this one's place.
  int first_in_place(int id) const {
    while (works_in_source(plan_.sinks[id])) id = plan_.sinks[id].source;
    return id;
  }

  // The shared place has the name of its last scatter, and is the requested buffer if one is
  // requested.
  void join(int id) {
    const Sink& s = plan_.sinks[id];
    if (!works_in_source(s)) return;
    Sink& first = plan_.sinks[first_in_place(id)];
    first.buffer = s.buffer;
    last_scatter_[first_in_place(id)] = id;
  }

  rt::BufferIndex room(ir::ValueId v, const char* otherwise) {
    const auto& name = cx_.value(v).name;
    return room(name.empty() ? otherwise : name, v);
  }
  rt::BufferIndex room(const std::string& name, ir::ValueId v) {
    const auto& t = cx_.value(v).type;
    return pc_.add_workspace(name, t.dtype, pc_.num_elems(t));
  }

  void give_to(int id) {
    Sink& s = plan_.sinks[id];
    switch (s.kind) {
      case SinkKind::Store:
      case SinkKind::Scatter:
      case SinkKind::ScatterAdd:
      case SinkKind::ScatterSum:
      case SinkKind::Histogram:
      case SinkKind::RowPlaces:
        return give_one(id);
      case SinkKind::Argsort:
        s.results = {
            plan_.sinks[s.source].buffer,
            pc_.add_workspace("sort_scratch", kU32, pc_.num_elems(cx_.value(result(s)).type))};
        s.buffer = cx_.in_buffer[result(s).index()] = room(result(s), "order");
        return;
      case SinkKind::CheckUnique:
        s.buffer = pc_.add_workspace("uses", kU32, cx_.op(s.op).attrs.size);
        return;
      case SinkKind::Nonzero:
        if (cx_.op(s.op).results.size() > 1) cx_.in_buffer[result(s, 1).index()] = s.buffer;
        return;
      case SinkKind::Reduce:
        return give_each(s, "reduced");
      case SinkKind::Scan:
        return give_each(s, "scanned");
      case SinkKind::Control:
        return give_each(s, "carried");
      case SinkKind::Collective:
        return give_collective(s);
      case SinkKind::Kept:
        cx_.in_buffer[result(s).index()] = plan_.sinks[s.source].buffer;
        return;
      default:
        return;
    }
  }

  void give_collective(Sink& s) {
    s.results = {plan_.sinks[s.source].buffer};
    for (std::size_t i = 0; i < cx_.op(s.op).results.size(); ++i) {
      s.results.push_back(room(result(s, i), "received"));
      cx_.in_buffer[result(s, i).index()] = s.results.back();
    }
  }

  void give_one(int id) {
    Sink& s = plan_.sinks[id];
    const auto last = last_scatter_.find(id);
    if (works_in_source(s)) {
      s.buffer = plan_.sinks[s.source].buffer;
    } else if (s.buffer == rt::kNoIndex && last != last_scatter_.end()) {
      s.buffer = room(result(plan_.sinks[last->second]), "scattered");
    } else if (s.buffer == rt::kNoIndex) {
      s.buffer = s.kind == SinkKind::Store       ? room(s.room, s.value)
                 : s.kind == SinkKind::Scatter   ? room(result(s), "scattered")
                 : s.kind == SinkKind::Histogram ? room(result(s), "histogram")
                 : s.kind == SinkKind::RowPlaces ? room(result(s), "places")
                                                 : room(result(s), "added");
    }
    if (s.kind == SinkKind::Store || s.adds_to_buffer) return;
    cx_.in_buffer[held_value(cx_, s).index()] = s.buffer;
  }

  void give_each(Sink& s, const char* otherwise) {
    s.results.resize(cx_.op(s.op).results.size(), rt::kNoIndex);
    for (std::size_t i = 0; i < s.results.size(); ++i) {
      if (s.results[i] == rt::kNoIndex) s.results[i] = room(result(s, i), otherwise);
      cx_.in_buffer[result(s, i).index()] = s.results[i];
    }
  }

  FunctionContext& cx_;
  ProgramContext& pc_;
  RegionPlan& plan_;
  std::unordered_map<int, int> last_scatter_;  // by sink: the last scatter in its place
};

}  // namespace

void give_places(FunctionContext& cx, RegionPlan& plan) {
  Places(cx, plan).give();
}

}  // namespace cinch::codegen
