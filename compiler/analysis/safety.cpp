// Pairs each access with the checks of its index. The checker of the language has proved accesses
// without a check.
#include "compiler/analysis/proofs.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "compiler/ir/ops.h"
#include "compiler/ir/rewriter.h"
#include "compiler/ir/text/text.h"

namespace cinch::analysis {
namespace {

using ir::Op;
using ir::OpKind;

class Facts {
 public:
  Facts(const ir::Program& program, const ir::Function& function, std::vector<SafetyFact>& out)
      : program_(program), function_(function), host_(program.info), out_(out) {}

  void run() {
    // Notes the values that checks read, and their operands.
    ir::walk(function_, [&](ir::OpId id, ir::RegionId) {
      const Op& check = op(id);
      if (check.kind == OpKind::check_index || check.kind == OpKind::check) {
        note_sources(check.operands[0], bounds_checked_);
      }
      if (check.kind == OpKind::check_unique) note_sources(check.operands[0], unique_checked_);
    });
    ir::walk(function_, [&](ir::OpId id, ir::RegionId) { note_access(op(id)); });
  }

 private:
  const Op& op(ir::OpId id) const { return function_.ops[id.index()]; }

  void note_sources(ir::ValueId value, std::set<ir::ValueId>& seen) {
    if (!seen.insert(value).second) return;
    for (ir::ValueId source : ir::defining_op(function_, value).operands) {
      note_sources(source, seen);
    }
  }

  void note_access(const Op& each) {
    switch (each.kind) {
      case OpKind::gather:
      case OpKind::gather_along:
        return add_index(each, each.operands[1], "read of " + name(each.operands[0]));
      case OpKind::scatter: {
        const std::string what = "store into " + target(each);
        add_index(each, each.operands[1], what);
        return add(each, SafetyKind::NoRepeats, way(each.operands[1], unique_checked_, true), what);
      }
      case OpKind::scatter_add:
        return add_index(each, each.operands[0], "sum into " + target(each));
      case OpKind::scatter_reduce:
        return add_index(each, each.operands[0], "reduction into " + target(each));
      case OpKind::slice:
        return add_size(each, "slice of " + name(each.operands[0]));
      case OpKind::unchunk:
        return add_size(each, "unchunk of " + name(each.operands[0]));
      case OpKind::top_k:
      case OpKind::kth_largest:
        return add_size(each, "selection from " + name(each.operands[0]));
      case OpKind::for_loop:
        return add_loop(each, fmt::format("loop over {}..{}", host_.print(each.attrs.size),
                                          host_.print(each.attrs.size2)));
      case OpKind::while_loop:
        return add_loop(each, "loop of at most " + host_.print(each.attrs.size) + " turns");
      default:
        return;
    }
  }

  // The source's name for a value, or the operation that makes it.
  std::string name(ir::ValueId value) const {
    const std::string& given = function_.values[value.index()].name;
    if (!given.empty()) return "'" + given + "'";
    const Op& def = ir::defining_op(function_, value);
    const rt::ProgramInfo& info = program_.info;
    if (def.kind == OpKind::gradient) return "the gradient";
    if (def.kind == OpKind::state) return "'" + info.states[def.attrs.index].name + "'";
    if (def.kind == OpKind::field) return "field '" + info.wire.fields[def.attrs.index].name + "'";
    if (def.kind == OpKind::const_array) return "a table";
    return "an array";
  }

  // The target of a store: a named value, a state, the output; otherwise its base.
  std::string target(const Op& store) const {
    const ir::ValueId result = store.results[0];
    const ir::Results& handed_out = function_.results;
    if (!function_.values[result.index()].name.empty()) return name(result);
    if (handed_out.output == result) return "the output";
    const auto state = std::find(handed_out.states.begin(), handed_out.states.end(), result);
    if (state != handed_out.states.end()) {
      const auto index = static_cast<std::size_t>(state - handed_out.states.begin());
      return "'" + program_.info.states[index].name + "'";
    }
    return name(store.kind == OpKind::scatter ? store.operands[0] : result);
  }

  SafetyWay way(ir::ValueId index, const std::set<ir::ValueId>& checked, bool is_unique) const {
    if (checked.contains(index)) return SafetyWay::OnDevice;
    const rt::FieldInfo* field = field_of(index);
    const bool by_reader = field && (is_unique ? field->ascending : field->index_limit.has_value());
    return by_reader ? SafetyWay::PayloadReader : SafetyWay::Proved;
  }

  // The wire field that is used as an index, perhaps through conversions.
  const rt::FieldInfo* field_of(ir::ValueId value) const {
    const Op* def = &ir::defining_op(function_, value);
    while (def->kind == OpKind::convert || def->kind == OpKind::reshape ||
           def->kind == OpKind::bitcast) {
      def = &ir::defining_op(function_, def->operands[0]);
    }
    return def->kind == OpKind::field ? &program_.info.wire.fields[def->attrs.index] : nullptr;
  }

  void add_index(const Op& each, ir::ValueId index, std::string what) {
    add(each, SafetyKind::InBounds, way(index, bounds_checked_, false), std::move(what));
  }

  // A bound on a size is proved, or there is a check_host at the same place of the source.
  void add_size(const Op& each, std::string what) {
    const bool is_checked =
        std::any_of(function_.ops.begin(), function_.ops.end(), [&](const Op& other) {
          return other.kind == OpKind::check_host && other.span == each.span &&
                 each.span.has_file();
        });
    add(each, SafetyKind::InBounds, is_checked ? SafetyWay::BeforeLaunch : SafetyWay::Proved,
        std::move(what));
  }

  void add_loop(const Op& each, std::string what) {
    add(each, SafetyKind::Ends, SafetyWay::Proved, std::move(what));
  }

  void add(const Op& each, SafetyKind kind, SafetyWay how, std::string what) {
    const auto is_same = [&](const SafetyFact& fact) {
      return std::tie(fact.function, fact.kind, fact.way, fact.what) ==
             std::tie(function_.kind, kind, how, what);
    };
    if (std::any_of(out_.begin(), out_.end(), is_same)) return;
    out_.push_back({function_.kind, kind, how, std::move(what), each.span});
  }

  const ir::Program& program_;
  const ir::Function& function_;
  ir::HostPrinter host_;
  std::vector<SafetyFact>& out_;
  std::set<ir::ValueId> bounds_checked_, unique_checked_;
};

}  // namespace

const char* safety_kind_name(SafetyKind kind) {
  constexpr const char* kNames[] = {"in bounds", "free of repeats", "ends"};
  return kNames[static_cast<int>(kind)];
}

const char* safety_way_name(SafetyWay way) {
  constexpr const char* kNames[] = {"proved", "checked by the payload's reader",
                                    "checked before launch", "checked on the device"};
  return kNames[static_cast<int>(way)];
}

std::vector<SafetyFact> find_safety(const ir::Program& program) {
  std::vector<SafetyFact> facts;
  for (const ir::Function& function : program.functions) Facts(program, function, facts).run();
  return facts;
}

}  // namespace cinch::analysis
