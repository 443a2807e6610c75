// What the printers of a kernel's parts share: the text so far, the current place in the kernel,
// and how values and buffers are spelled there.
#pragma once

#include <map>

#include "codegen/emit/cuda/kernel/facts.h"

namespace cinch::codegen {
struct CudaContext {
  const CudaKernelFacts& facts;
  const std::string name;  // of the printed function
  CudaPlaces places;
  SourceWriter preamble, out;
  std::vector<std::string> shared_members;
  Level level = Level::Kernel;

  // ---- the rows that are being printed ----
  bool is_whole = false;             // whole rows of a tile
  bool is_short = false;             // several short rows in a warp
  bool rounds_again = false;         // tiles with rare draws are done again
  std::set<std::size_t> ahead;       // values that the loop has loaded for several rows
  std::set<rt::BufferIndex> packed;  // buffers to which several rows go at once
  int num_quads = 0;
};

class CudaPrinter {
 public:
  explicit CudaPrinter(CudaContext& cx) : cx_(cx) {}

 protected:
  using Instr = kir::Instr;
  using ValueId = kir::ValueId;
  using ComputeType = kir::ComputeType;

  CudaContext& cx() const { return cx_; }
  const CudaKernelFacts& facts() const { return cx_.facts; }
  const kir::Kernel& kernel() const { return cx_.facts.kernel(); }
  const CudaShape& shape() const { return cx_.facts.shape(); }

  void line(const std::string& text) { cx_.out.line(text); }
  template <typename First, typename... Rest>
  void line(fmt::format_string<First, Rest...> format, First&& argument, Rest&&... others) {
    cx_.out.line(format, std::forward<First>(argument), std::forward<Rest>(others)...);
  }
  const kir::KernelProgram& program() const { return cx_.facts.program(); }

  // ---- values ----
  ComputeType type(ValueId value) const { return cx_.facts.type(value); }
  std::string name(ValueId value) const { return cx_.facts.name(value); }
  /// The value of element c, or the value at the current uniform level.
  std::string operand(ValueId value) const;
  /// The name of an array of four that holds the value.
  std::string quad(ValueId value);
  std::string pred_text(const Instr& instr, std::size_t index) const;
  /// "c < live" and the predicate.
  std::string acting(const Instr& instr, std::size_t pred_index) const;
  /// Defines the instruction's only result by an expression for each element (or a uniform one).
  void define(const Instr& instr, const std::string& text);
  template <typename First, typename... Rest>
  void define(const Instr& instr, fmt::format_string<First, Rest...> format, First&& argument,
              Rest&&... others) {
    define(instr,
           fmt::format(format, std::forward<First>(argument), std::forward<Rest>(others)...));
  }
  void define_quad(ValueId value);
  /// The array that holds a value's elements in several rows.
  std::string rows_name(ValueId value) const { return "rows_" + name(value); }

  // ---- memory ----
  std::string storage(rt::BufferIndex buffer) const;
  std::string buffer_name(rt::BufferIndex buffer) const;
  std::string base_text(ValueId base) const;
  /// How many of the lane's live elements are also below an optional limit.
  std::string limited_live(ValueId limit) const;
  /// The places of the lane's neighbours, and of the row. Whole rows are a constant apart.
  std::string lane_place(ValueId base) const;
  /// Declares an array that the block shares. Returns an expression for it.
  std::string share(const std::string& type, const std::string& name, const std::string& extents);
  std::string team_type() const;

 private:
  CudaContext& cx_;
};

// Prints the items that reductions and scans join (scalars or tuples), and the functions that join
// two.

/// How a reduction's items are spelled.
struct CudaItem {
  std::string type;   // "f32" or "sweep_item0"
  std::string join;   // the joining lambda
  std::string empty;  // an expression
  std::vector<kir::ComputeType> types;
  bool is_tuple = false;
  bool has_flag = false;  // a tuple with `has`
  // Any order gives the same bits, so a lane needs no columns.
  bool is_unordered = false;

  /// An item that takes part.
  std::string of(const std::vector<std::string>& parts) const;
  std::string part(const std::string& text, std::size_t index) const;
};

class CudaItems : public CudaPrinter {
 public:
  /// `emit_instr` prints an instruction of a combiner's body.
  CudaItems(CudaContext& cx, std::function<void(const kir::Instr&)> emit_instr)
      : CudaPrinter(cx), emit_instr_(std::move(emit_instr)) {}
  /// The item of the instruction's combiner. The first call declares it.
  const CudaItem& item(const Instr& instr);

 private:
  void emit_tuple(const CudaItem& item);
  void emit_builtin_join(CudaItem& item, ScalarOp op);
  void emit_join(CudaItem& item, const kir::Combiner& combiner);

  std::function<void(const kir::Instr&)> emit_instr_;
  std::map<std::string, CudaItem> items_;
};

}  // namespace cinch::codegen
