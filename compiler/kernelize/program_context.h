// What all kernels of a program share during kernelization: buffers, size slots, messages,
// constants.
#pragma once
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "codegen/kir/kir.h"
#include "compiler/ir/ir.h"
#include "compiler/kernelize/kernelize.h"
#include "runtime/core/step_limit.h"

namespace cinch::codegen {

class ProgramContext {
 public:
  explicit ProgramContext(const ir::Program& program);

  HostExprPool& exprs() { return out.info.exprs; }
  // Adds a buffer for one call. Booleans take a byte each; other types whole 8, 16, 32 or 64 bits.
  rt::BufferIndex add_workspace(const std::string& name, DType dtype, HostExprId num_elems);
  rt::BufferIndex field(std::uint32_t index) const { return fields_.at(index); }
  rt::BufferIndex state(std::uint32_t index) const { return states_.at(index); }
  rt::BufferIndex state_next(std::uint32_t index) const { return states_next_.at(index); }
  rt::BufferIndex count(std::uint32_t index) const { return counts_.at(index); }
  rt::BufferIndex table(std::uint32_t index);
  rt::BufferIndex gradient() const { return gradient_; }
  rt::BufferIndex output() const { return output_; }
  const rt::BufferInfo& buffer(rt::BufferIndex index) const { return out.buffers.at(index); }
  bool is_packed(rt::BufferIndex index) const;

  // The number of a value's contents, wherever it lies (kir::Version).
  kir::Version version_of(const ir::Function& fn, ir::ValueId v);
  // Gives `v` the version of `other`.
  void set_version(const ir::Function& fn, ir::ValueId v, kir::Version version);
  // The version of a count: from its selection if the function has one, else from outside.
  kir::Version count_version(const ir::Function& fn, std::uint64_t index);
  kir::Version new_version() { return next_version_++; }

  std::uint32_t message(const std::string& text);
  HostExprId num_elems(const ir::Type& type);
  bool is_const(HostExprId id, std::int64_t value) const;
  std::optional<std::int64_t> const_int(HostExprId id) const;
  // Is the size a constant, or the minimum of a constant and something else?
  bool is_at_most_constant(HostExprId id) const;
  std::string unique_symbol(const std::string& stem);

  const ir::Program& program;
  kir::KernelProgram out;
  rt::StepLimit steps;
  std::vector<SweepsApart> apart;

 private:
  rt::BufferIndex add_buffer(rt::BufferInfo info);
  std::vector<rt::BufferIndex> fields_, states_, states_next_, counts_;
  std::map<std::uint32_t, rt::BufferIndex> tables_;
  std::map<std::pair<const ir::Function*, std::uint32_t>, kir::Version> versions_;
  std::map<std::pair<const ir::Function*, std::uint64_t>, kir::Version> count_versions_;
  // Counts that selections of the function find
  std::map<const ir::Function*, std::set<std::uint64_t>> found_counts_;
  kir::Version next_version_ = kir::kFirstMadeVersion;
  std::map<std::string, int> symbol_uses_;
  rt::BufferIndex gradient_ = 0, output_ = 0;
};

}  // namespace cinch::codegen
