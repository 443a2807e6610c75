// The two checkers of the kernel IR. The verifier checks the rules on which every emitter relies.
// check_versions checks the contents of buffers.
#pragma once

#include <functional>
#include <string>

#include "codegen/kir/compute_type.h"
#include "codegen/kir/kir.h"

namespace cinch::kir {
/// Throws InternalError{Bug} with the kernel's text attached if a kernel breaks a rule: levels of
/// instructions, uses before definitions or out of their section, operand and result types, buffers
/// and tables out of range, attributes, group kinds; steps and entries that name what is not there.
/// `stage` says who made the program.
void verify(const KernelProgram& program, const std::string& stage);

/// The first complaint, or empty. For tests.
std::string first_complaint(const KernelProgram& program);

// ---- check_versions.cpp ----
// Checks the contents of buffers and trusts neither fusion nor the code that assigns buffers. It
// runs the steps of each entry over the contents of all buffers, as versions (kir.h), and compares
// these with what kernels and steps declare.

/// What the caller puts into a buffer before the call; kNothing for workspace and next states.
Version given_version(const rt::BufferInfo& buffer);

/// Throws InternalError{Bug} with the program's text attached if
/// - a kernel or a step may find other contents than it needs;
/// - a kernel's body loads or stores a buffer that it does not declare, or declares one that it
/// does
///   not touch;
/// - one lane of a kernel may load an element that another lane of the same launch stores;
/// - an entry's results are not in their places at its end.
/// `stage` says who made the program. Linear in steps times buffers.
void check_versions(const KernelProgram& program, const std::string& stage);

/// The first complaint, or empty. For tests.
std::string first_version_complaint(const KernelProgram& program);

// The verifier's rules for single instructions: numbers, types and levels of operands and results,
// buffers, attributes.

bool is_builtin_combiner(ScalarOp op);
/// Combiners only compute: constants, scalar operations, conversions, and loads from read-only
/// tables.
bool is_allowed_in_combiner(InstrKind kind);
/// Is the result a group value although the instruction is in an element section?
bool has_group_result(InstrKind kind, std::size_t result);

// Sets of compute types, a bit each.
constexpr unsigned compute_type_bit(ComputeType type) {
  return 1u << static_cast<unsigned>(type);
}
inline constexpr unsigned kBoolSet = compute_type_bit(ComputeType::Bool);
inline constexpr unsigned kU32Set = compute_type_bit(ComputeType::U32);
inline constexpr unsigned kI64Set = compute_type_bit(ComputeType::I64);
inline constexpr unsigned kIndexSet = kU32Set | kI64Set;
inline constexpr unsigned kTotalSet = kU32Set | compute_type_bit(ComputeType::U64);
inline constexpr unsigned kFloatSet =
    compute_type_bit(ComputeType::F32) | compute_type_bit(ComputeType::F64);
inline constexpr unsigned kIntSet =
    compute_type_bit(ComputeType::I32) | compute_type_bit(ComputeType::I64) |
    compute_type_bit(ComputeType::U32) | compute_type_bit(ComputeType::U64);
inline constexpr unsigned kAnySet = kBoolSet | kIntSet | kFloatSet;

class InstrVerifier {
 public:
  /// `level_of` gives the level of a defined value.
  InstrVerifier(const KernelProgram& program, const Kernel& kernel,
                std::function<SectionKind(ValueId)> level_of)
      : program_(program), kernel_(kernel), level_of_(std::move(level_of)) {}

  /// Returns the first complaint, or an empty text. Operands and results must be in range.
  std::string check(const Instr& instr);

 private:
  using TypeSet = unsigned;  // bit per ComputeType
  bool need(bool ok, std::string message);
  bool counts(const Instr& instr, std::size_t min_operands, std::size_t max_operands,
              std::size_t results);
  bool operand(const Instr& instr, std::size_t index, TypeSet types,
               SectionKind deepest = SectionKind::Elements);
  bool result(const Instr& instr, std::size_t index, ComputeType expected);
  bool buffers(const Instr& instr, std::size_t count);
  ComputeType type(ValueId value) const { return kernel_.values[value.index()].type; }
  const Combiner* combiner(const Instr& instr);
  bool tuple(const Combiner& combiner, const std::vector<ComputeType>& types);

  void leaf(const Instr& instr);
  void scalar(const Instr& instr);
  void conversion(const Instr& instr);
  void call_extern(const Instr& instr);
  void load(const Instr& instr);
  void store(const Instr& instr);
  void hist_add(const Instr& instr);
  void reduce(const Instr& instr);
  void running_sum(const Instr& instr);
  void look_back(const Instr& instr);
  void local(const Instr& instr);
  void local_scan(const Instr& instr);
  void local_transform(const Instr& instr);
  void local_largest(const Instr& instr);
  bool has_constant_rows() const;
  void finish(const Instr& instr);
  void argsort(const Instr& instr);
  void draw(const Instr& instr);
  void status(const Instr& instr);

  const KernelProgram& program_;
  const Kernel& kernel_;
  std::function<SectionKind(ValueId)> level_of_;
  std::string complaint_;
};

}  // namespace cinch::kir
