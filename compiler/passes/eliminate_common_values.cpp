// eliminate_common_values: merges ops that compute the same from the same operands. Draws count:
// equal sites draw equally. Ops in a region see those of enclosing regions, not the other way
// round.
//
//   before:  %1 = map.abs %0              after:  %1 = map.abs %0
//            %2 = map.abs %0                      uses of %2 become %1
#include <fmt/format.h>

#include <map>
#include <unordered_map>

#include "compiler/ir/ops.h"
#include "compiler/ir/rewriter.h"
#include "compiler/ir/types.h"
#include "compiler/passes/passes.h"

namespace cinch::passes {
namespace {

using ir::OpKind;

// Collectives are a protocol, and control flow is left alone. Two nonzeros are the same if they
// find the same count.
bool is_eligible(const ir::Op& op) {
  return ir::op_info(op.kind).effect == ir::Effect::Pure && op.kind != OpKind::arg &&
         op.kind != OpKind::yield && !ir::is_collective(op.kind);
}

// A text that is equal for ops that compute the same. Values inside a combiner's region are named
// by their place in it.
class Key {
 public:
  explicit Key(const ir::Function& function) : function_(function) {}

  std::string of(const ir::Op& op) {
    text_.clear();
    local_.clear();
    add(op);
    return text_;
  }

 private:
  template <typename... T>
  void put(const T&... parts) {
    ((text_ += fmt::format("{} ", parts)), ...);
  }

  void add(const ir::Op& op) {
    put(static_cast<int>(op.kind));
    for (ir::ValueId value : op.operands) add_value(value);
    for (ir::ValueId value : op.results) add_type(ir::type_of(function_, value));
    add_attrs(op);
  }

  void add_value(ir::ValueId value) {
    const auto found = local_.find(value);
    if (found == local_.end()) return put('%', value.index());
    put('^', found->second);
  }

  void add_type(const ir::Type& type) {
    put(static_cast<int>(type.dtype.kind), type.dtype.bits, type.rank);
    for (int d = 0; d < type.rank; ++d) put(type.dims[d].index());
  }

  void add_attrs(const ir::Op& op) {
    const ir::Attrs& a = op.attrs;
    const auto has = [&](std::uint32_t use) { return ir::uses_attr(op.kind, use); };
    if (has(ir::AttrUse::Scalar)) put(static_cast<int>(a.scalar_op));
    if (has(ir::AttrUse::Value | ir::AttrUse::Width)) put(a.bits);
    if (has(ir::AttrUse::Index)) put(a.index);
    if (has(ir::AttrUse::Size)) put(a.size.index());
    if (has(ir::AttrUse::Limit) && a.has_limit) put('l', a.size.index());
    if (has(ir::AttrUse::Axis)) put(static_cast<int>(a.axis));
    if (has(ir::AttrUse::Exclusive | ir::AttrUse::Descending)) put(a.exclusive, a.descending);
    if (has(ir::AttrUse::Proved)) put(a.proved);
    if (has(ir::AttrUse::InRows)) put(a.in_rows);
    if (has(ir::AttrUse::Draw)) put(a.draw.site, a.draw.shared);
    if (has(ir::AttrUse::Combiner)) add_combiner(function_.combiners[a.combiner.index()]);
  }

  void add_combiner(const ir::Combiner& combiner) {
    if (combiner.op) return put('c', static_cast<int>(*combiner.op));
    put('{');
    for (ir::OpId id : function_.regions[combiner.region.index()].ops) {
      const ir::Op& op = function_.ops[id.index()];
      add(op);
      for (ir::ValueId value : op.results) local_[value] = local_.size();
    }
    put('}');
  }

  const ir::Function& function_;
  std::string text_;
  std::unordered_map<ir::ValueId, std::size_t> local_;
};

class CommonValues {
 public:
  CommonValues(ir::Function& function, PassContext& context)
      : function_(function), uses_(function), context_(context) {}

  void run() { visit(function_.body); }

 private:
  using Known = std::map<std::string, ir::OpId>;

  // Knowledge from inside a region ends with it.
  void visit(ir::RegionId region) {
    const std::size_t num_before = added_.size();
    std::vector<ir::OpId> kept;
    const std::vector<ir::OpId> ops = function_.regions[region.index()].ops;
    for (ir::OpId id : ops) {
      for (ir::RegionId inner : ir::held_regions(function_, function_.ops[id.index()])) {
        visit(inner);
      }
      if (!join(id)) kept.push_back(id);
    }
    function_.regions[region.index()].ops = std::move(kept);
    for (; added_.size() > num_before; added_.pop_back()) known_.erase(added_.back());
  }

  bool join(ir::OpId id) {
    const ir::Op& op = function_.ops[id.index()];
    if (!is_eligible(op)) return false;
    const auto [found, is_new] = known_.emplace(Key(function_).of(op), id);
    if (is_new) added_.emplace_back(found);
    if (is_new || !context_.may_rewrite()) return false;
    const ir::Op& first = function_.ops[found->second.index()];
    for (std::size_t i = 0; i < op.results.size(); ++i) {
      uses_.replace(op.results[i], first.results[i]);
    }
    return true;
  }

  ir::Function& function_;
  ir::UseLists uses_;
  PassContext& context_;
  Known known_;
  std::vector<Known::const_iterator> added_;
};

}  // namespace

void eliminate_common_values(ir::Program& program, PassContext& context) {
  for (auto* functions : {&program.state_inits, &program.functions}) {
    for (ir::Function& function : *functions) CommonValues(function, context).run();
  }
}

}  // namespace cinch::passes
