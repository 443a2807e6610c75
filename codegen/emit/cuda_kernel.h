// One kernel of a CUDA program as text. Inside of the CUDA emitter: cuda.h is the door.
//
// Shape of the function, a template over the warps of a block: buffers, shared memory; the kernel
// section; streams of draws and combiners; the loop over this team's groups with their sections in
// order; what is left for the end (flags, histograms). In an element section every element value is
// an array of four, one per element that the lane owns in the row at hand, and every instruction a
// loop over them.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "codegen/emit/c_family.h"
#include "codegen/emit/cuda_shape.h"
#include "codegen/kir/kir.h"

namespace cinch::codegen {

/// The function that does what a kernel does.
inline std::string body_name(const kir::Kernel& kernel) {
  return kernel.info.symbol + "_body";
}

class CudaKernelEmitter {
 public:
  CudaKernelEmitter(const kir::KernelProgram& program, const kir::Kernel& kernel,
                    std::uint32_t block_warps);
  /// Tuples of reductions, the struct of what the function shares in a block, and the function,
  /// which the kernels of cuda_steps.h call.
  std::string emit();

 private:
  using Instr = kir::Instr;
  using ValueId = kir::ValueId;
  using ComputeType = kir::ComputeType;

  // How a reduction's items are spelled: a scalar, or an emitted tuple.
  struct Item {
    std::string type;   // "f32" or "sweep_item0"
    std::string join;   // the joining lambda
    std::string empty;  // an expression
    std::vector<ComputeType> types;
    bool is_tuple = false;
    bool has_flag = false;  // a tuple with `has`
  };

  // ---- cuda_kernel.cpp: frame and groups ----
  void emit_head();
  void emit_shared();
  void emit_extent();
  void emit_plain_groups();
  void emit_ordered_groups();
  void emit_group_body();
  void emit_sections();
  void emit_tail();
  std::string size_text(HostExprId expr) const {
    return codegen::size_text(program_, expr, "args.");
  }

  // ---- cuda_operands.cpp: values, storage, combiners, streams ----
  ComputeType type(ValueId value) const { return kernel_.values[value.index()].type; }
  std::string name(ValueId value) const { return value_name(kernel_, value); }
  bool is_element(ValueId value) const;
  /// The value of element c, or of the uniform level at hand.
  std::string operand(ValueId value) const;
  /// The name of an array of four holding the value.
  std::string quad(ValueId value);
  std::string pred_text(const Instr& instr, std::size_t index) const;
  std::string storage(rt::BufferIndex buffer) const;
  static std::string buffer_name(rt::BufferIndex buffer);
  /// Defines the instruction's one result from an expression per element (or uniform).
  void define(const Instr& instr, const std::string& text);
  void define_quad(ValueId value);
  const Item& item(const Instr& instr);
  std::string item_of(const Item& item, const std::vector<std::string>& parts) const;
  static std::string item_part(const Item& item, const std::string& text, std::size_t index);
  void emit_tuple(Item& item);
  void emit_builtin_join(Item& item, ScalarOp op);
  void emit_join(Item& item, const kir::Combiner& combiner);
  void prepare(const Instr& instr);
  void prepare_stream(const Instr& instr);
  static bool is_draw(kir::InstrKind kind);
  ValueId iteration(const Instr& instr) const;
  std::string stream_name(const Instr& instr) const;
  std::string permutation_name(const Instr& instr) const;

  // ---- cuda_uniform.cpp: kernel and group sections ----
  void emit_uniform(const Instr& instr);
  void emit_leaf(const Instr& instr);
  void emit_call_extern(const Instr& instr);
  void emit_uniform_memory(const Instr& instr);
  void emit_uniform_draw(const Instr& instr);
  void emit_look_back(const Instr& instr);
  void emit_finish_reduce(const Instr& instr);
  void emit_finish_scan(const Instr& instr);
  void emit_local_scan(const Instr& instr);
  void emit_local_transform(const Instr& instr);
  std::string only_once(const std::string& condition) const;

  // ---- cuda_elements.cpp: element sections ----
  void emit_elements(const kir::Section& section);
  static bool is_row_access(const Instr& instr);
  static const char* access_of(const Instr& instr);
  std::string whole_rows_condition(const kir::Section& section, int num_rows) const;
  void emit_whole_rows(const kir::Section& section);
  void open_turn(int num_rows);
  std::set<std::size_t> emit_loads_ahead(const kir::Section& section, int num_rows);
  void open_reductions(const kir::Section& section);
  void open_tile(const kir::Section& section);
  void close_tile(const kir::Section& section);
  void close_reductions(const kir::Section& section);
  void emit_element(const Instr& instr);
  void emit_load(const Instr& instr);
  void emit_store_linear(const Instr& instr);
  void emit_store_at(const Instr& instr);
  void emit_add_at(const Instr& instr);
  void emit_hist_add(const Instr& instr);
  void emit_reduce(const Instr& instr);
  void emit_local(const Instr& instr);
  void emit_draw(const Instr& instr);
  void emit_status(const Instr& instr);
  std::string limited_live(ValueId limit) const;
  std::string base_text(ValueId base) const;
  std::string acting(const Instr& instr, std::size_t pred_index) const;

  /// Declares an array that the block shares; gives an expression.
  std::string share(const std::string& type, const std::string& name, const std::string& extents);
  std::string shared_type() const { return kernel_.info.symbol + "_shared"; }
  std::string team_type() const;

  void line(const std::string& text) { out_.line(text); }

  const kir::KernelProgram& program_;
  const kir::Kernel& kernel_;
  CudaShape shape_;
  SourceWriter preamble_, out_;
  std::vector<std::string> shared_members_;
  Level level_ = Level::Kernel;
  std::vector<Level> value_levels_;
  std::map<std::string, Item> items_;
  std::set<std::string> joins_done_, streams_done_;
  std::set<std::size_t> ahead_;  // values that the loop at hand has loaded for several rows
  int num_quads_ = 0;
};

}  // namespace cinch::codegen
