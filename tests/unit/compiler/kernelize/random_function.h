// One function of a random program: a growing list of values, and steps that add to it.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>

#include "compiler/ir/builder.h"
#include "compiler/ir/ir.h"

namespace cinch::codegen {

using ir::ValueId;

class RandomFunction {
 public:
  RandomFunction(ir::Program& program, ir::Function& function, std::mt19937& random,
                 bool needs_passes)
      : program_(program), b_(program, function), random_(random), needs_passes_(needs_passes) {}

  ir::Builder& builder() { return b_; }
  void add(ValueId v) { values_.push_back(v); }
  void add_steps(int num);
  /// Adds an array in memory that assignments may change; reads return its present value.
  void add_variable(ValueId v) { variables_.push_back(v); }
  const std::vector<ValueId>& variables() const { return variables_; }

  int below(int bound) { return static_cast<int>(random_() % static_cast<unsigned>(bound)); }
  bool maybe(int percent) { return below(100) < percent; }

  // Values with wanted properties, made from existing ones.
  ValueId any();
  ValueId array();
  ValueId vector();
  ValueId matrix();
  ValueId scalar(DType dtype);
  ValueId as(ValueId v, DType dtype) { return b_.convert(v, dtype); }
  /// f32 or f64.
  ValueId floats(ValueId v);
  /// A type that arithmetic is done in.
  ValueId computed(ValueId v);
  ValueId mask_like(ValueId v);
  /// `v` with the shape of `type` (its own element type).
  ValueId like(ValueId v, ir::Type to);
  ValueId flat(ValueId v);
  bool may_be_empty(ir::Type type);
  ir::Builder::Nonzero select(ValueId mask, std::uint32_t count, HostExprId limit = {}) {
    return b_.nonzero(mask, count, limit);
  }

 private:
  HostExprPool& pool() { return b_.exprs(); }
  ir::Type type(ValueId v) const { return b_.type(v); }
  HostExprId size(ValueId v) { return ir::element_count(pool(), type(v)); }
  HostExprId smaller(HostExprId size, int most) {
    return pool().min(size, pool().const_int(1 + below(most)));
  }
  ValueId size_u32(HostExprId size) { return b_.host_size(size, kU32); }
  ir::DrawSite site() { return {next_site_++, maybe(50)}; }
  ValueId iteration() { return maybe(70) ? iteration_ : ValueId(); }
  DType some_int();
  DType some_type();
  /// u32 indices below `below_size` (positive), as many as `size`.
  ValueId indices(HostExprId num, HostExprId below_size);
  /// Indices into a vector without repeats.
  ValueId distinct(ValueId base);
  ir::CombinerId lambda(DType dtype);

  void step();
  void add_map();
  void add_convert();
  void add_bitcast();
  void add_draw();
  void add_gather();
  void add_gather_along();
  void add_move();
  void add_shape();
  void add_packing();
  void add_reduce();
  void add_row_reduce();
  void add_scan();
  void add_selection();
  void add_sort();
  void add_scatter();
  void add_row_scatter();
  void add_assignment();
  void add_counting();
  void add_matrix();
  void add_check();
  void add_branch();
  void add_for();
  void add_while();
  void add_expanded();
  ir::ValueIds inner(int num_steps, const std::vector<ir::Type>& types);

  ir::Program& program_;
  ir::Builder b_;
  std::mt19937& random_;
  bool needs_passes_;
  std::vector<ValueId> values_, variables_;
  std::uint32_t next_site_ = 1;
  ValueId iteration_;
  int depth_ = 0;
};

// Random well-typed IR programs for tests of kernelize. Every operator kind that has kernels can
// occur anywhere, with valid operands: indices are in range, indices of scatters unique, sizes
// positive if n is. A seed gives the same program everywhere.

struct RandomIrOptions {
  std::uint32_t seed = 0;
  bool needs_passes = false;  // may use operators that passes expand: top_k, orthonormalize …
};

/// A program with encode, decode, states and their initial values.
ir::Program random_ir(const RandomIrOptions& options);

/// How often each operator kind and each scalar operation occurs.
using IrCoverage = std::map<std::string, int>;
void add_coverage(const ir::Program& program, IrCoverage& coverage);

}  // namespace cinch::codegen
