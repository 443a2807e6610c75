// A random program around random functions: parameters, states, wire, encode and decode.
#include "compiler/ir/ops.h"
#include "tests/unit/compiler/kernelize/random_function.h"

namespace cinch::codegen {
namespace {

using ir::OpKind;

class RandomProgram {
 public:
  explicit RandomProgram(const RandomIrOptions& options)
      : random_(options.seed), needs_passes_(options.needs_passes) {}

  ir::Program make() {
    program_.info.name = "random";
    program_.info.is_matrix = below(5) == 0;
    add_params();
    add_counts();
    add_states();
    add_encode();
    add_decode();
    return std::move(program_);
  }

 private:
  HostExprPool& pool() { return *program_.info.exprs; }
  int below(int bound) { return static_cast<int>(random_() % static_cast<unsigned>(bound)); }

  void add_params() {
    program_.info.params.push_back({"alpha", kF32, 0.75, {}});
    program_.info.params.push_back({"shift", kU32, 3, {}});
  }

  void add_counts() {
    const int num = below(3);
    for (int i = 0; i < num; ++i) {
      const auto elems = element_count();
      const auto bound = below(2) == 0 ? elems : pool().min(elems, pool().const_int(300));
      program_.info.wire.counts.push_back({"m" + std::to_string(i), bound});
      program_.info.counts.push_back({"m" + std::to_string(i), bound});
    }
  }
  HostExprId element_count() {
    return program_.info.is_matrix ? pool().mul(pool().rows(), pool().cols()) : pool().n();
  }
  ir::Type tensor(DType dtype) {
    return program_.info.is_matrix ? ir::matrix_type(dtype, pool().rows(), pool().cols())
                                   : ir::vector_type(dtype, pool().n());
  }

  void add_states() {
    static const std::vector<DType> kTypes = {kF32,  kF32,         kF32,  kF16,
                                              kBF16, *make_int(5), kBool, kF64};
    const int num = below(4);
    for (int i = 0; i < num; ++i) {
      ir::Type t = tensor(kTypes[below(8)]);
      if (below(6) == 0) t = ir::vector_type(t.dtype, pool().const_int(1 + below(20)));
      if (below(8) == 0)
        t = ir::matrix_type(t.dtype, pool().ceil_div(pool().n(), pool().const_int(4)),
                            pool().const_int(4));
      program_.info.states.push_back({"s" + std::to_string(i), t});
      auto init = ir::make_function(ir::FunctionKind::Encode);
      ir::Builder b(program_, init);
      const auto value = below(2) == 0
                             ? b.fill(b.constant(kF32, below(3)), t)
                             : b.draw(OpKind::random, t, {static_cast<std::uint32_t>(i), true});
      init.results.output = b.convert(value, t.dtype);
      b.yield({});
      program_.state_inits.push_back(init);
    }
  }

  void add_encode() {
    auto fn = ir::make_function(ir::FunctionKind::Encode);
    RandomFunction f(program_, fn, random_, needs_passes_);
    f.add(f.builder().gradient());
    for (std::uint32_t i = 0; i < program_.info.states.size(); ++i) {
      f.add(f.builder().state(i));
      f.add_variable(f.builder().state(i));
    }
    f.add_steps(4 + below(16));
    add_wire(f, fn);
    fn.results.states = f.variables();
    if (fn.results.states.size() > 1 && below(3) == 0) swap_states(f, fn);
    f.builder().yield({});
    program_.functions.push_back(std::move(fn));
  }

  // a = old b, b = old a.
  void swap_states(RandomFunction& f, ir::Function& fn) const {
    auto& s = fn.results.states;
    if (!ir::types_agree(program_.info, f.builder().type(s[0]), f.builder().type(s[1]))) return;
    s[0] = f.builder().state(1);
    s[1] = f.builder().state(0);
  }

  void add_wire(RandomFunction& f, ir::Function& fn) {
    auto& b = f.builder();
    auto& info = program_.info;
    for (std::uint32_t i = 0; i < info.wire.counts.size(); ++i) {
      const auto bound = info.wire.counts[i].bound;
      const auto mask = f.mask_like(f.flat(b.gradient()));
      const bool has_limit = !(bound == element_count());
      const auto own = below(2) == 0 ? i : b.new_count("own", bound);
      const auto selected = f.select(mask, own, has_limit ? bound : HostExprId());
      fn.results.counts.push_back(selected.count);
      f.add(selected.index);
      const int num = 1 + below(3);
      for (int k = 0; k < num; ++k) {
        if (k > 0) f.add_steps(1);
        const auto v = f.like(k == 0 ? selected.index : f.any(), b.type(selected.index));
        const auto x = k == 1 ? b.gather(f.like(f.any(), b.type(mask)), selected.index) : v;
        add_field(fn, b, x);
        info.wire.fields.back().type.dims[0] = pool().count(i, bound);
      }
    }
    const int num = 1 + below(4);
    for (int k = 0; k < num; ++k) {
      auto v = f.any();
      if (f.may_be_empty(b.type(v))) v = f.like(v, tensor(kF32));
      add_field(fn, b, v);
      if (below(6) == 0) add_field(fn, b, v);
    }
    if (below(8) == 0) add_field(fn, b, b.gradient());
  }
  void add_field(ir::Function& fn, ir::Builder& b, ValueId v) {
    auto& fields = program_.info.wire.fields;
    fields.push_back({"f" + std::to_string(fields.size()), b.type(v)});
    fn.results.fields.push_back(v);
  }

  void add_decode() {
    auto fn = ir::make_function(ir::FunctionKind::Decode);
    RandomFunction f(program_, fn, random_, needs_passes_);
    f.add(f.builder().fill(f.builder().constant(kF32, 0), tensor(kF32)));
    for (std::uint32_t i = 0; i < program_.info.wire.fields.size(); ++i)
      f.add(f.builder().field(i));
    f.add_steps(below(10));
    fn.results.output = f.as(f.like(f.any(), tensor(kF32)), kF32);
    fn.results.output = f.builder().fill(fn.results.output, tensor(kF32));
    f.builder().yield({});
    program_.info.decode_draws = true;
    program_.functions.push_back(std::move(fn));
  }

  std::mt19937 random_;
  bool needs_passes_;
  ir::Program program_;
};

void count(const ir::Function& fn, IrCoverage& coverage) {
  for (const auto& op : fn.ops) {
    ++coverage[std::string(ir::op_info(op.kind).name)];
    if (op.kind == OpKind::map)
      ++coverage["map." + std::string(scalar_op_info(op.attrs.scalar_op).name)];
  }
}

}  // namespace

ir::Program random_ir(const RandomIrOptions& options) {
  return RandomProgram(options).make();
}

void add_coverage(const ir::Program& program, IrCoverage& coverage) {
  for (const auto& fn : program.functions) count(fn, coverage);
}

}  // namespace cinch::codegen
