// One kernel of a CPU program as text. Inside of the CPU emitter: cpu.h is the door.
//
// Shape of the function: buffers and sizes; the kernel section; combiners and draw streams; the
// loop over groups, cut into phases at each look-back (a chunk of groups runs one phase, then the
// look-back, then the next phase); what the task reports at its end. An element section is a loop
// over tiles of 1024 and in it a loop over vectors.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "codegen/emit/c_family.h"
#include "codegen/emit/cpu.h"
#include "codegen/emit/cpu/storage.h"
#include "codegen/kir/builder.h"
#include "codegen/kir/kir.h"
#include "codegen/kir/value_ranges.h"

namespace cinch::codegen {

using kir::kRowElems;

class CpuKernelEmitter {
 public:
  CpuKernelEmitter(const kir::KernelProgram& program, const kir::Kernel& kernel,
                   const CpuOptions& options);
  /// The function's text.
  std::string emit();

 private:
  using Instr = kir::Instr;
  using ValueId = kir::ValueId;

  // A run of instructions of one section inside a phase.
  struct Piece {
    std::size_t section, begin, end;
  };
  struct Phase {
    std::vector<Piece> pieces;
    const Instr* look_back = nullptr;  // ends the phase; null for the last
  };

  // ---- kernel.cpp: facts and the function's frame ----
  void find_phases();
  void note_uses(const Instr& instr, std::size_t phase);
  void emit_head();
  void emit_extent();
  void emit_kernel_section();
  void note_histogram(const Instr& instr);
  void emit_task_state();
  void emit_tail();
  std::string size_text(HostExprId expr) const {
    return codegen::size_text(program_, expr, "args->");
  }
  bool has_many_tiles() const;

  // ---- groups.cpp: groups, phases, sections ----
  void emit_groups();
  void emit_plain_groups();
  void emit_chunked_groups();
  void emit_phase(std::size_t phase);
  void emit_look_back(const Instr& instr);
  void emit_group_values();
  void emit_piece(const Piece& piece);
  void emit_elements(const Piece& piece);
  void emit_vector(const std::vector<Instr>& instrs);
  bool is_placed_by_hits(std::size_t section) const;
  std::string is_whole_text(const std::vector<Instr>& instrs) const;
  void emit_vectors(const std::vector<Instr>& instrs);
  void open_loops(const std::vector<Instr>& instrs, bool has_rows, bool is_placed);
  void emit_lanes_of_vector();

  // ---- loops.cpp ----
  /// Which loops over a tile's vectors are printed: without masks, with them, or both to choose
  /// from.
  enum class Loops : std::uint8_t { Both, Whole, Masked };
  Loops loops_of(const std::vector<Instr>& instrs) const;
  bool has_whole_tiles_only() const;
  int unrolled(const std::vector<Instr>& instrs) const;
  bool can_go_by_columns(const std::vector<Instr>& instrs) const;
  /// Prints a line for each ordered reduction of the section; {0} is its result.
  void each_column(const std::vector<Instr>& instrs, std::string_view pattern);

  // ---- alike.cpp ----
  /// Instructions whose results are the same for all elements of a row of a tile.
  std::set<std::size_t> alike_in_rows(const std::vector<Instr>& instrs) const;
  void begin_row(const std::vector<Instr>& instrs);
  /// Is an integer the same in all lanes of each vector?
  bool is_alike_in_vectors(ValueId value) const;

  // ---- instr.cpp: operands and dispatch ----
  kir::ComputeType type(ValueId value) const { return kernel_.values[value.index()].type; }
  std::string name(ValueId value) const { return value_name(kernel_, value); }
  bool is_element(ValueId value) const;
  std::string uniform(ValueId value) const;
  std::string lanes(ValueId value) const;
  std::string operand(ValueId value) const;
  /// The lanes (or the truth) under which the instruction acts: live and its predicate.
  std::string acting(ValueId pred) const;
  void define(ValueId value, const std::string& text);
  void assign(ValueId value, const std::string& text);
  void emit_instr(const Instr& instr);
  void emit_element_wise(const Instr& instr);
  void emit_leaf(const Instr& instr);
  void emit_status(const Instr& instr);
  void emit_local(const Instr& instr);
  std::string local(std::uint32_t index) const;

  // ---- bounds.cpp ----
  bool is_constant(ValueId value) const;
  std::string bounded_text(const std::string& x, ValueId bound, bool is_least);
  // Neither NaN nor a zero?
  bool is_plain_bound(ValueId element);
  /// Prints a min, max or clamp of float elements; false for all else.
  bool emit_bounded(const Instr& instr);
  std::vector<ValueId> uniform_bounds(const std::vector<Instr>& instrs) const;

  // ---- known.cpp: what is known of values ----
  bool is_flagged(ValueId value) const;
  /// A float that was made by taking a sign away?
  bool is_magnitude(ValueId value) const;
  /// Prints the bits of a float that need not be made canonical; false for all else.
  bool emit_plain_bits(const Instr& instr);
  /// Prints a conversion to an integer that holds the value; false for all else.
  bool emit_known_convert(const Instr& instr);
  void emit_call_extern(const Instr& instr);

  // ---- steps.cpp ----
  struct Steps {
    ValueId of;
    std::vector<float> ends;
  };
  const Instr* scalar_of(ValueId value, ScalarOp op) const;
  bool note_ends(ValueId value, Steps& steps) const;
  std::string step_literal(ValueId value, const float* end) const;
  /// Prints a choice among constants that depends on one value's size; false for all else.
  bool emit_steps(const Instr& instr);

  // ---- memory.cpp ----
  Storage storage(rt::BufferIndex buffer) const;
  void emit_memory(const Instr& instr);
  void emit_load_linear(const Instr& instr);
  void emit_store_linear(const Instr& instr);
  void emit_load_at(const Instr& instr);
  const char* load_function(const Instr& load) const;
  void emit_store_at(const Instr& instr);
  std::pair<ValueId, ValueId> limited_pred(const Instr& store) const;
  void emit_add_at(const Instr& instr);
  void emit_max_at(const Instr& instr);
  void emit_argsort(const Instr& instr);
  bool is_bit(const Storage& storage) const { return storage.is_packed && storage.bits == 1; }
  std::string base_text(ValueId base, const char* place) const;
  // The limit of a linear access, where it has one.
  ValueId linear_limit(const Instr& instr) const;
  std::string active_text(ValueId limit) const;
  std::string stored_text(const Storage& storage, ValueId value);
  std::string count_text(ValueId limit, const char* place, const char* count) const;
  std::string stage_name(const Instr& instr) const;
  /// Before the vector loop of a tile: packed elements and draws to their stages, counted bytes.
  void open_tile(const Instr& instr);
  /// Does the instruction load packed elements that masked loops take from a stage?
  bool is_staged_load(const Instr& instr) const;
  void fill_stage(const Instr& instr);
  void fetch_ahead(const Instr& instr);
  /// After it: stages to packed buffers.
  void close_tile(const Instr& instr);
  void count_run(const Instr& instr, bool is_store);
  void count_lanes(const Instr& instr, bool is_store, ValueId pred);

  // ---- reduce.cpp ----
  std::string operation(ScalarOp op, kir::ComputeType type) const;
  std::string element_list(const std::vector<kir::ComputeType>& types) const;
  std::vector<kir::ComputeType> combined_types(const kir::Combiner& combiner) const;
  void need_combiner(std::uint32_t index);
  void declare_results(const Instr& instr);
  void open_section(const Instr& instr);
  void close_section(const Instr& instr);
  void open_reduce_tile(const Instr& instr);
  /// The cleared "Levels" or "Columns" of a reduction.
  void declare_folds(const Instr& instr, std::string_view kind);
  /// Is the result the same in whatever order elements are taken in?
  bool is_any_order(const Instr& instr) const;
  /// Members of a region combiner's tuples that are the same for all elements of a row of a whole
  /// tile: a bit for each; 0 where there are none, or not all elements take part.
  unsigned same_in_rows(const Instr& instr) const;
  void end_row(const Instr& instr);
  std::string tuple_text(const Instr& instr, unsigned shown) const;
  void close_reduce_tile(const Instr& instr);
  void emit_reduce(const Instr& instr);
  void emit_running_sum(const Instr& instr);
  void emit_finish_reduce(const Instr& instr);
  void emit_finish_scan(const Instr& instr);
  void emit_local_scan(const Instr& instr);
  void emit_local_transform(const Instr& instr);
  void emit_parts(const Instr& instr, const std::string& part);
  /// A tuple (or with `is_part` a Part, its last buffer being `has`) of W stored partials.
  std::string stored_tuple(const Instr& instr, const std::string& place, bool is_part) const;

  // ---- places.cpp: compaction ----
  /// The truth value whose lanes a running sum counts (it sums 1 where true, else 0), or none.
  ValueId counted_truth(const Instr& running_sum) const;
  /// Which instructions of an element section give the truth value of its only running count, if
  /// vectors where that holds nowhere have no effect; else none.
  std::set<std::size_t> needed_to_place(const std::vector<Instr>& instrs) const;
  /// The truth value by which vectors of such a section may be left out, or none.
  ValueId placed_truth(const std::vector<Instr>& instrs) const;
  /// Sections that need to see only vectors with a lane that an earlier phase found to hold.
  void find_hits();
  std::optional<ValueId> same_truth(ValueId truth, std::size_t before_section) const;
  using KnownPairs = std::set<std::pair<std::uint32_t, std::uint32_t>>;
  bool is_same_element(ValueId a, ValueId b, KnownPairs& known) const;
  bool is_only_read(rt::BufferIndex buffer) const;
  void note_hits(const Instr& instr);

  // ---- draw.cpp ----
  void need_stream(const Instr& instr);
  std::string stream_name(const Instr& instr) const;
  void emit_draw(const Instr& instr);
  /// May whole tiles be rounded without the rare lanes, and again where there were some? That is
  /// where doing a tile twice does no harm.
  bool rounds_again(const std::vector<Instr>& instrs) const;
  /// Is it a staged draw that gives an integer?
  bool is_staged_int(const Instr& instr) const;
  void emit_staged_int(const Instr& round);
  void open_draw_tile(const Instr& instr);
  /// Where the draw is of consecutive elements, made for a tile at once: the first element's text.
  std::optional<std::string> first_of_staged_draw(const Instr& instr) const;
  std::optional<std::string> first_of_run(ValueId value) const;

  void line(const std::string& text) { out_.line(text); }

  const kir::KernelProgram& program_;
  const kir::Kernel& kernel_;
  const CpuOptions& options_;
  SourceWriter out_;
  Level level_ = Level::Kernel;
  std::size_t section_ = 0;  // of the instruction that is being emitted
  std::size_t instr_ = 0;
  std::vector<Level> value_levels_;
  std::vector<const Instr*> definitions_;
  kir::ValueRanges ranges_{program_, kernel_, definitions_};
  std::vector<Phase> phases_;
  std::vector<std::size_t> def_phase_;
  std::set<std::uint32_t> crossing_;  // group values used in a later phase than their own
  std::map<std::uint32_t, std::set<std::size_t>> local_phases_;
  // A truth value of an earlier phase to the later section that places the lanes where it holds.
  std::map<std::uint32_t, std::size_t> hits_;
  std::set<std::uint32_t> combiners_done_;
  std::set<std::string> streams_done_;
  std::set<std::uint32_t> failures_;                     // messages of element-level fail_if
  std::map<rt::BufferIndex, std::uint64_t> histograms_;  // bins of each hist_add's buffer
  bool goes_by_columns_ = false;  // do whole tiles of the section that is being emitted?
  std::set<std::size_t> alike_;   // of the section that is being emitted: computed once for a row
  std::set<rt::BufferIndex> cells_;  // of sums in any order
};

}  // namespace cinch::codegen
