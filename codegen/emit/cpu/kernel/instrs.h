// Printers of instructions by family: values, reductions, memory, random draws; and of any
// instruction by its kind. What they share: the text so far, the current place in the kernel, and
// how values are spelled there.
#pragma once

#include <utility>

#include "codegen/emit/cpu/kernel/facts.h"

namespace cinch::codegen {
// Finds sections that only store selected lanes at running places, and what earlier phases know of
// these lanes.

class CpuCompaction {
 public:
  CpuCompaction(const CpuKernelFacts& facts, const CpuPhases& phases);

  /// The truth value by which such a section may skip vectors, or none.
  kir::ValueId placed_truth(const std::vector<kir::Instr>& instrs) const;
  /// Instructions of an element section that compute the truth value of its only running count, if
  /// vectors without a true lane have no effect. Otherwise none.
  std::set<std::size_t> needed_to_place(const std::vector<kir::Instr>& instrs) const;
  /// For truth values of earlier phases: the later section that places the lanes for which the
  /// value is true, and needs only vectors with such a lane.
  const std::map<std::uint32_t, std::size_t>& hits() const { return hits_; }
  bool is_placed_by_hits(std::size_t section) const;
  /// The instructions of such a section that only compute what the hits tell.
  std::set<std::size_t> known_by_hits(const std::vector<kir::Instr>& instrs) const;

 private:
  using Instr = kir::Instr;
  using ValueId = kir::ValueId;
  using KnownPairs = std::set<std::pair<std::uint32_t, std::uint32_t>>;

  std::optional<ValueId> same_truth(ValueId truth, std::size_t before_section) const;
  bool is_same_element(ValueId a, ValueId b, KnownPairs& known) const;
  bool is_only_read(rt::BufferIndex buffer) const;

  const CpuKernelFacts& facts_;
  std::map<std::uint32_t, std::size_t> hits_;
};

struct CpuContext {
  const CpuKernelFacts& facts;
  const CpuPhases& phases;
  const CpuCompaction& compaction;
  SourceWriter out;
  Level level = Level::Kernel;
  std::size_t section = 0, instr = 0;  // of the current instruction
  bool goes_by_columns = false;        // do whole tiles of the current section?
};

class CpuPrinter {
 public:
  explicit CpuPrinter(CpuContext& cx) : cx_(cx) {}

 protected:
  using Instr = kir::Instr;
  using ValueId = kir::ValueId;

  CpuContext& cx() const { return cx_; }
  const CpuKernelFacts& facts() const { return cx_.facts; }
  const kir::Kernel& kernel() const { return cx_.facts.kernel(); }

  void line(const std::string& text) { cx_.out.line(text); }
  template <typename First, typename... Rest>
  void line(fmt::format_string<First, Rest...> format, First&& argument, Rest&&... others) {
    cx_.out.line(format, std::forward<First>(argument), std::forward<Rest>(others)...);
  }
  kir::ComputeType type(ValueId value) const { return cx_.facts.type(value); }
  std::string name(ValueId value) const { return cx_.facts.name(value); }
  /// Are instructions printed for the lanes of a vector?
  bool is_lanes() const {
    return cx_.level == Level::Element || cx_.level == Level::Combiner || cx_.level == Level::Rows;
  }

  /// A scalar. Constants are literals.
  std::string uniform(ValueId value) const;
  std::string lanes(ValueId value) const;
  /// Lanes or a scalar, depending on the level.
  std::string operand(ValueId value) const;
  /// The lanes (or the truth value) for which the instruction acts: live and its predicate.
  std::string acting(ValueId pred) const;
  void define(ValueId value, const std::string& text);
  template <typename First, typename... Rest>
  void define(ValueId value, fmt::format_string<First, Rest...> format, First&& argument,
              Rest&&... others) {
    define(value,
           fmt::format(format, std::forward<First>(argument), std::forward<Rest>(others)...));
  }
  void assign(ValueId value, const std::string& text);

  std::string local(std::uint32_t index) const;
  std::string stage_name(const Instr& instr) const;
  std::string base_text(ValueId base, const char* place) const;
  std::string count_text(ValueId limit, const char* place, const char* count) const;

 private:
  CpuContext& cx_;
};

// Prints instructions that compute a value from others: element-wise operators, with shorter forms
// if more is known of their operands, calls of C++ functions, and leaves.

class CpuValues : public CpuPrinter {
 public:
  using CpuPrinter::CpuPrinter;
  void emit_element_wise(const Instr& instr);
  /// Declares once what divisions of elements by a shared number need.
  void need_divider(const Instr& instr);
  void emit_call_extern(const Instr& instr);
  void emit_leaf(const Instr& instr);

 private:
  // ---- bounds.cpp ----
  std::string bounded_text(const std::string& x, ValueId bound, bool is_least);
  /// Prints a min, max or clamp of float elements. Returns false for other instructions.
  bool emit_bounded(const Instr& instr);

  // ---- values.cpp ----
  /// Prints the bits of a float that is canonical already. Returns false for other instructions.
  bool emit_plain_bits(const Instr& instr);
  /// Prints a conversion to an integer type that can hold the value. Returns false for other
  /// instructions.
  bool emit_known_convert(const Instr& instr);

  ValueId narrow_form(ValueId wide) const;
  /// Prints a comparison of a u32 with a bound of 64 bits. Returns false for other instructions.
  bool emit_narrow_comparison(const Instr& instr);
  /// Prints the upper 32 bits of a product of 64 bits. Returns false for other instructions.
  bool emit_high_product(const Instr& instr);
  /// The divisor of u32 elements that is the same for the whole task, or none.
  ValueId shared_divisor(const Instr& instr) const;
  bool emit_shared_division(const Instr& instr);

  // ---- values.cpp ----
  struct Steps {
    ValueId of;
    std::vector<float> ends;
    std::set<std::uint32_t> seen;
  };
  struct Code {
    ValueId of;
    std::size_t num_instrs = 0;
    std::set<std::uint32_t> seen;
  };
  std::string value_literals(ValueId value, ValueId variable,
                             const std::vector<std::uint64_t>& elements) const;
  const Instr* find_end(ValueId value, ValueId& x, float& end) const;
  bool note_ends(ValueId value, Steps& steps) const;
  std::optional<Steps> find_steps(ValueId value) const;
  bool is_used_otherwise(ValueId value, const std::function<bool(ValueId)>& is_looked_up_too) const;
  /// Prints what only depends on the size of one float, in few steps. Returns false for other
  /// instructions.
  bool emit_steps(const Instr& instr);
  bool note_code(ValueId value, Code& code) const;
  /// Prints what only depends on one loaded integer of at most four bits. Returns false for other
  /// instructions.
  bool emit_code(const Instr& instr);

  std::set<std::uint32_t> dividers_done_;
};

// Prints reductions, running sums and scans, in the prelude's terms.
class CpuReductions : public CpuPrinter {
 public:
  /// `emit_instr` prints an instruction of a combiner's body.
  CpuReductions(CpuContext& cx, std::function<void(const kir::Instr&)> emit_instr)
      : CpuPrinter(cx), emit_instr_(std::move(emit_instr)) {}

  /// Declares the function of a region combiner, once.
  void need_combiner(std::uint32_t index);

  // ---- around the loops of an element section ----
  /// Declares the results outside of the section's block.
  void declare_results(const Instr& instr);
  void open_section(const Instr& instr);
  void open_tile(const Instr& instr);
  void end_row(const Instr& instr);
  void close_tile(const Instr& instr);
  void close_section(const Instr& instr);

  /// Prints a reduction, a running sum, what finishes partials, or an operation on a whole local
  /// array.
  void emit(const Instr& instr);

 private:
  void emit_reduce(const Instr& instr);
  void emit_running_sum(const Instr& instr);
  void emit_finish_reduce(const Instr& instr);
  void emit_finish_scan(const Instr& instr);
  void emit_local_scan(const Instr& instr);
  void emit_local_transform(const Instr& instr);
  std::string operation(ScalarOp op, kir::ComputeType type) const;
  std::string element_list(const std::vector<kir::ComputeType>& types) const;
  /// Declares the empty "Levels" or "Columns" of a reduction.
  void declare_folds(const Instr& instr, std::string_view kind);
  std::string tuple_text(const Instr& instr, unsigned shown) const;
  void emit_parts(const Instr& instr, const std::string& part);
  /// A tuple of W stored partials. With `is_part` a Part, whose last buffer is `has`.
  std::string stored_tuple(const Instr& instr, const std::string& place, bool is_part) const;

  std::function<void(const kir::Instr&)> emit_instr_;
  std::set<std::uint32_t> combiners_done_;
};

// Prints loads, stores, histograms, row sorts, and counted bytes. Packed elements go through a
// stage on the stack, which is filled before the vector loop of a tile and emptied after it.

class CpuMemory : public CpuPrinter {
 public:
  using CpuPrinter::CpuPrinter;
  void emit(const Instr& instr);
  /// Before the vector loop of a tile: prepares stages of packed elements, and counts bytes.
  void open_tile(const Instr& instr);
  /// In the vector loop, if it is printed both with and without masks: reads packed elements to
  /// their stages.
  void fill_stage(const Instr& instr);
  void fetch_ahead(const Instr& instr);
  /// After the vector loop: writes stages to packed buffers.
  void close_tile(const Instr& instr);
  /// Before and after the loop over the rows of a chunk (bounds.cpp): the stage of a store.
  void open_rows(const Instr& store);
  void close_rows(const Instr& store);

 private:
  void emit_load_linear(const Instr& instr);
  void emit_store_linear(const Instr& instr);
  void emit_load_at(const Instr& instr);
  std::int64_t elems_of_small_table(rt::BufferIndex buffer) const;
  std::string load_function(const Instr& load) const;
  void emit_store_at(const Instr& instr);
  std::pair<ValueId, ValueId> limited_pred(const Instr& store) const;
  void emit_add_at(const Instr& instr);
  void emit_max_at(const Instr& instr);
  void emit_argsort(const Instr& instr);
  std::string active_text(ValueId limit) const;
  std::string stored_text(const Storage& storage, ValueId value);
  void count_run(const Instr& instr, bool is_store);
  void count_lanes(const Instr& instr, bool is_store, ValueId pred);
};

/// Prints random draws. If the index runs with the elements, the words of a tile are drawn at once
/// into a stage. Otherwise each lane draws for itself.
class CpuDraws : public CpuPrinter {
 public:
  using CpuPrinter::CpuPrinter;
  /// Declares once what the draws of one site share.
  void need_stream(const Instr& instr);
  /// Prints draws to their stages, before the vector loop of a tile.
  void open_tile(const Instr& instr);
  void emit(const Instr& instr);
  /// If rows go beside one another: draws to the stage of all rows, before the loop over them, and
  /// prints what is drawn for one element of each.
  void open_rows(const Instr& instr);
  void emit_of_rows(const Instr& instr);

 private:
  void fill_stage(const Instr& instr, const std::string& first, const std::string& count);
  std::string stream_name(const Instr& instr) const;
  std::string first_of_run(ValueId value) const;
  void emit_staged_int(const Instr& round);

  std::set<std::string> streams_done_;
};

/// Prints any instruction of a kernel, and what it needs around the elements of a tile. Owns the
/// printers of the families of instructions.
class CpuInstrs : public CpuPrinter {
 public:
  explicit CpuInstrs(CpuContext& cx);
  void emit(const Instr& instr);
  /// Prints what an instruction of a group or an element section needs before the loop over groups.
  void prepare(const Instr& instr);
  void open_tile(const Instr& instr);
  void close_tile(const Instr& instr);
  CpuMemory& memory() { return memory_; }
  CpuReductions& reductions() { return reductions_; }

 private:
  void emit_status(const Instr& instr);
  void emit_local(const Instr& instr);

  CpuValues values_;
  CpuMemory memory_;
  CpuReductions reductions_;
  CpuDraws draws_;
};

}  // namespace cinch::codegen
