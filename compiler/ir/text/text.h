// The IR as text: printed and parsed.
#pragma once
#include <string>
#include <string_view>
#include <unordered_map>

#include "compiler/ir/ir.h"
#include "runtime/core/error.h"

namespace cinch::ir {

class HostPrinter;

// Printing. The text is stable (values are numbered in its order) and complete: parse returns the
// same program, except for spans and for formulas of more than 10,000 parts. It is safe on broken
// programs, which the verifier prints.

/// The whole program: facts, tables, initial values of states, functions.
std::string print(const Program& program);
/// One function of it.
std::string print(const Program& program, const Function& function);
/// "[f32; n]", "u32".
std::string print_type(const rt::ProgramInfo& info, const Type& type);
/// The same by a printer that serves many calls; making one takes as long as the program has names.
std::string print_type(const HostPrinter& host, const Type& type);
/// A short title of an op for messages, without its regions: "map.add".
std::string op_title(const Op& op);
/// The name of Attrs::size in the text of this kind: "begin", "at_most", …
std::string_view size_attr_name(OpKind kind);

// Parsing. The text may be untrusted: a fault is an error with line and column, never a crash.

/// Returns the program, not yet verified. Errors (InvalidArgument): "line 3, column 7: expected
/// ':'".
rt::Result<Program> parse(std::string_view text);

// Host expressions in the IR's text form: `clamp(int(ceil(f64(n) * ratio)), 1, n)`. Unlike formulas
// for people, this text parses back to the same expression: suffixes tell types (12, 0.5f, 0.5d)
// and casts are written. Named sizes are printed by name instead of their formula.

/// Prints expressions of one program. It uses a name only if the name is unambiguous.
class HostPrinter {
 public:
  /// Does not use the names of sizes from `visible_sizes` on: the definition of a size uses only
  /// earlier ones.
  explicit HostPrinter(const rt::ProgramInfo& info, std::size_t visible_sizes = ~std::size_t{0});

  /// Prints the size's name for its formula from now on.
  void name_size(const rt::SizeInfo& size);

  std::string print(HostExprId id) const {
    num_printed_ = 0;
    return print(id, false);
  }

 private:
  std::string print(HostExprId id, bool is_nested) const;
  std::string print_node(HostExprId id, bool is_nested) const;
  std::string print_constant(HostExprId id) const;
  std::string print_call(const HostExprNode& node) const;
  /// The name if it is unambiguous, else callee(index, more).
  std::string print_named(std::string_view callee, std::uint32_t index, const std::string& name,
                          const std::string& more) const;

  const rt::ProgramInfo& info_;
  std::unordered_map<std::string, int> uses_;              // how often each name is used
  std::unordered_map<HostExprId, std::string> size_name_;  // by formula
  mutable std::size_t num_printed_ = 0;                    // parts of the present formula
};

/// Can the text form write the name without quotes: [A-Za-z_][A-Za-z0-9_.]*?
bool is_plain_name(std::string_view name);
/// The text in double quotes, with \" \\ \n and \xNN for other control bytes.
std::string quote(std::string_view text);

}  // namespace cinch::ir
