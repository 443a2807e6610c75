// What the arrays of a function take at given sizes, and where they lie: what both walks of
// forced_sweeps.cpp ask.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "compiler/analysis/forced_sweeps.h"
#include "compiler/ir/ir.h"
#include "compiler/ir/rewriter.h"

namespace cinch::analysis {

class FloorArrays {
 public:
  /// The program has the function that is asked for. All three outlive this object.
  FloorArrays(const ir::Program& program, const ir::Function& function, const FloorRequest& request)
      : program_(program), function_(function), request_(request), exprs_(program.info.exprs) {}

  const ir::Program& program() const { return program_; }
  const ir::Function& function() const { return function_; }

  const ir::Op& maker(ir::ValueId value) const { return ir::defining_op(function_, value); }
  const std::vector<ir::ValueId>& yielded(ir::RegionId region) const;

  bool is_array(ir::ValueId value) const;
  /// At most; 0 where there is no such number, which `status` then tells.
  std::int64_t num_elems(ir::ValueId value);
  std::int64_t size_bytes(ir::ValueId value, std::int64_t elements) const;
  /// Of all its elements.
  std::int64_t size_bytes(ir::ValueId value) { return size_bytes(value, num_elems(value)); }
  /// The value travels between ranks in fewer bytes than its elements take.
  void set_travelling_bytes(ir::ValueId value, std::int64_t bytes) { travelling_[value] = bytes; }

  /// The stream that holds the value: its own, unless it lies where another does.
  std::string place_of(ir::ValueId value) const;
  void set_place(ir::ValueId value, const std::string& place) { places_[value] = place; }
  bool has_place(ir::ValueId value) const { return places_.contains(value); }

  /// Of the first size that has no number.
  const rt::Status& status() const { return status_; }

 private:
  std::int64_t evaluated(HostExprId expr);

  const ir::Program& program_;
  const ir::Function& function_;
  const FloorRequest& request_;
  HostExprPool exprs_;  // a copy: bounds are formulas of their own
  rt::Status status_ = rt::Ok{};
  std::map<ir::ValueId, std::string> places_;
  std::map<ir::ValueId, std::int64_t> travelling_;
};

}  // namespace cinch::analysis
