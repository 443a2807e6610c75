// One kernel of a CUDA program as text. Inside of the CUDA emitter: cuda.h is the door.
//
// Shape of the function, a template over the warps of a block: buffers, shared memory; the kernel
// section; streams of draws and combiners; the loop over this team's groups with their sections in
// order; what is left for the end (flags, histograms). In an element section every element value is
// an array of four, one per element that the lane owns in the row at hand, and every instruction a
// loop over them.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "codegen/emit/c_family.h"
#include "codegen/emit/cuda/places.h"
#include "codegen/emit/cuda/shape.h"
#include "codegen/emit/value_facts.h"
#include "codegen/kir/kir.h"

namespace cinch::codegen {

/// How many rows go through a turn of a section's loop over whole rows; 0 where it has none: what
/// is long, or neither loads nor stores neighbours. `longest_group`: see shape.h.
int rows_ahead(const kir::KernelProgram& program, const kir::Section& section,
               std::int64_t longest_group);
bool has_whole_rows(const kir::KernelProgram& program, const kir::Kernel& kernel);

/// A kernel's function. Between both parts of its text belong the lines of its places.
struct CudaFunction {
  std::string front, back;
  CudaPlaces places;
};

class CudaKernelEmitter {
 public:
  /// What is printed is called `name` and so on.
  CudaKernelEmitter(const kir::KernelProgram& program, const kir::Kernel& kernel,
                    std::uint32_t block_warps, std::string name);
  /// Tuples of reductions, the struct of what the function shares in a block, and the function,
  /// NAME_body, which the kernels of steps.h call.
  CudaFunction emit();

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
    // Any order gives the same bits: a lane needs no columns.
    bool is_unordered = false;
  };

  // ---- kernel.cpp: frame and groups ----
  void emit_signature();
  void emit_head();
  void emit_shared();
  void emit_extent();
  void emit_plain_groups();
  void emit_ordered_groups();
  void emit_group_body();
  void emit_sections();
  void emit_tail();

  // ---- operands.cpp: values, storage, combiners, streams ----
  ComputeType type(ValueId value) const { return kernel_.values[value.index()].type; }
  std::string name(ValueId value) const { return value_name(kernel_, value); }
  bool is_element(ValueId value) const;
  /// The value of element c, or of the uniform level at hand.
  std::string operand(ValueId value) const;
  /// The name of an array of four holding the value.
  std::string quad(ValueId value);
  std::string pred_text(const Instr& instr, std::size_t index) const;
  std::string storage(rt::BufferIndex buffer) const;
  std::string buffer_name(rt::BufferIndex buffer) const;
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
  static ValueId iteration(const Instr& instr);
  std::string stream_name(const Instr& instr) const;
  std::string permutation_name(const Instr& instr) const;

  // ---- uniform.cpp: kernel and group sections ----
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

  // ---- elements.cpp: element sections ----
  void emit_elements(const kir::Section& section);
  void open_reductions(const kir::Section& section);
  void open_tile(const kir::Section& section);
  void close_tile(const kir::Section& section);
  void close_reductions(const kir::Section& section);
  void emit_element(const Instr& instr);
  void emit_load(const Instr& instr);
  void emit_store_linear(const Instr& instr);
  void emit_store_at(const Instr& instr);
  void emit_add_at(const Instr& instr);
  void emit_max_at(const Instr& instr);
  void emit_hist_add(const Instr& instr);
  std::optional<std::string> counted_truth(const Instr& reduce) const;
  void emit_reduce(const Instr& instr);
  void emit_local(const Instr& instr);
  void emit_draw(const Instr& instr);
  void emit_round(const Instr& instr);
  void emit_status(const Instr& instr);
  std::string limited_live(ValueId limit) const;
  std::string base_text(ValueId base) const;
  std::string acting(const Instr& instr, std::size_t pred_index) const;

  // ---- short_rows.cpp ----
  /// Lanes that share a row; 0 where rows do not share a warp.
  std::uint32_t find_short_lanes() const;
  bool has_whole_words(const Instr& store) const;
  static bool loads_its_stores(const kir::Section& section);
  void emit_short_groups();
  using KeptKey = std::tuple<rt::BufferIndex, std::size_t, std::size_t>;
  static KeptKey kept_key(const Instr& load);
  void forget_stored(const kir::Section& section);
  void emit_short_load(const Instr& load);
  void emit_short_elements(const kir::Section& section);

  // ---- rows.cpp: several whole rows at a time ----
  bool emit_whole_rows(const kir::Section& section);
  std::set<std::string> whole_rows_conditions(const kir::Section& section, int num_rows) const;
  bool is_one_turn(int num_rows) const;
  void open_turn(int num_rows);
  std::set<std::size_t> emit_loads_ahead(const kir::Section& section, int num_rows);
  void emit_draws_ahead(const kir::Section& section, int num_rows);
  bool is_drawn_by_rows(const Instr& instr) const;
  void emit_alike_ahead(const kir::Section& section, int num_rows);
  void emit_alike(const Instr& instr);
  bool is_packed_by_rows(const kir::Section& section, const Instr& store) const;
  void open_packs(const kir::Section& section, int num_rows);
  void close_packs(const kir::Section& section, int num_rows);
  std::string lane_place(ValueId base) const;
  std::string row_place(ValueId base) const;
  std::string first_drawn(const Instr& draw) const;
  std::string rows_name(ValueId value) const;
  std::string halves_name(const Instr& round) const;

  /// Declares an array that the block shares; gives an expression.
  std::string share(const std::string& type, const std::string& name, const std::string& extents);
  std::string shared_type() const { return name_ + "_shared"; }
  std::string team_type() const;

  void line(const std::string& text) { out_.line(text); }

  const kir::KernelProgram& program_;
  const kir::Kernel& kernel_;
  const std::string name_;
  CudaShape shape_;
  CudaPlaces places_;
  SourceWriter preamble_, out_;
  std::vector<std::string> shared_members_;
  Level level_ = Level::Kernel;
  ValueFacts facts_;
  std::int64_t longest_;   // elements of a group, at most
  bool is_whole_ = false;  // what is printed now takes whole rows
  bool is_short_ = false;  // or several rows of a few elements
  std::uint32_t short_lanes_;
  bool rounds_again_ = false;  // and does tiles with rare draws again
  std::map<std::string, Item> items_;
  std::set<std::string> joins_done_, streams_done_;
  std::set<std::size_t> ahead_;          // values that the loop at hand has loaded for several rows
  std::map<KeptKey, std::string> kept_;  // what short rows have loaded, by name
  std::set<rt::BufferIndex> packed_;     // buffers to which several rows go at once
  int num_quads_ = 0;
};

}  // namespace cinch::codegen
