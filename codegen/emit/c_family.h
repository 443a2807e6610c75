// What the emitters of C-like text share: names of values and types, literals, and element-wise
// instructions as calls of the prelude (codegen/prelude/scalar_ops.h). The prelude's functions take
// scalars and, under Clang, vectors. An emitter first brings all operands into one shape, scalars
// or lanes. Bool operands are `bool`, or lanes of i32 that hold 0 and -1.
#pragma once
#include <fmt/format.h>

#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/kir/kir.h"

namespace cinch::codegen {

/// "f32", "i64", "bool": the scalar type's name in emitted text (typedefs of the prelude).
const char* c_type(kir::ComputeType type);

/// "v12", or "v12_norm" if the value has a name that is an identifier.
std::string value_name(const kir::Kernel& kernel, kir::ValueId value);

/// How many instructions of this kind do the kernel's sections contain?
std::size_t count_of(const kir::Kernel& kernel, kir::InstrKind kind);
inline bool uses(const kir::Kernel& kernel, kir::InstrKind kind) {
  return count_of(kernel, kind) > 0;
}

/// Where a value is computed: once per kernel, per group or per element, or in a combiner's body.
enum class Level {
  Kernel,
  Group,
  Element,
  Combiner,
  Rows,  // CPU emitter: prints group values for a vector of groups; no value has this level
};
/// The level of each value of the kernel, by index. Results of reductions are group values.
std::vector<Level> value_levels(const kir::Kernel& kernel);

/// A host expression in i64: a literal, or an entry of the table of sizes that `args` ("args->")
/// holds.
std::string size_text(const kir::KernelProgram& program, HostExprId expr, std::string_view args);

/// A scalar literal of exactly these bits: "0x1.8p+1f", "f32_bits(0x7fc00000u)", "-3", "7ull".
std::string literal(kir::ComputeType type, std::uint64_t bits);

/// The text of a scalar, convert or bitcast instruction. `operands` are expressions of one shape
/// (all scalars, or all lanes) with the compute types `types`.
///   scalar   "op_add(v1, v2)", "op_shl<5>(v1, v2)" (integer widths that are not their container's
///            are wrapped: "wrap_to<5>(op_add(v1, v2))")
///   convert  "convert_to_int<i32, 4>(v1)", "convert_to_f16(v1)", … in compute types
///   bitcast  "bitcast_f32_u32(v1)", …
std::string element_wise(const kir::Instr& instr, std::span<const kir::ComputeType> types,
                         std::span<const std::string> operands);

/// The same; `type` and `text` give the operands' types and expressions.
std::string element_wise(const kir::Instr& instr,
                         const std::function<kir::ComputeType(kir::ValueId)>& type,
                         const std::function<std::string(kir::ValueId)>& text);

/// Converts `rounded`, a number of stochastic_round's operand type, to the instruction's integer.
std::string as_integer(const kir::Instr& round, const std::string& rounded);

/// Lines of text with indentation: `line("if (x) {")` indents what follows until `line("}")`. With
/// arguments the text is a format of fmt's.
class SourceWriter {
 public:
  void line(const std::string& text);
  template <typename First, typename... Rest>
  void line(fmt::format_string<First, Rest...> format, First&& argument, Rest&&... others) {
    line(fmt::format(format, std::forward<First>(argument), std::forward<Rest>(others)...));
  }
  void blank() { text_ += '\n'; }
  /// Appends text with its own line ends, such as a prelude file.
  void raw(const std::string& text) { text_ += text; }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
  int depth_ = 0;
};

// ---- C++ functions of `extern fn` (c_family.cpp) ----
// Each function is in a namespace of its own, so names of different headers do not clash.

/// Entries of ProgramInfo::externs that the kernels call.
std::set<std::uint32_t> called_externs(std::span<const kir::Kernel* const> kernels);

/// Definitions to print inside namespace cinch, after the language's own functions.
std::string extern_definitions(const rt::ProgramInfo& info, const std::set<std::uint32_t>& which);
std::string extern_definition(const rt::ExternInfo& function, std::uint32_t index);

/// A call over scalars in compute types. Returns an expression of the result's compute type.
std::string extern_call(const rt::ProgramInfo& info, std::uint32_t index,
                        std::span<const std::string> operands);

}  // namespace cinch::codegen
