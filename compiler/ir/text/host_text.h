// Host expressions in the IR's text form: `clamp(int(ceil(f64(n) * ratio)), 1, n)`. Unlike formulas
// for people, this text parses back to the same expression: suffixes tell types (12, 0.5f, 0.5d)
// and casts are written. Named sizes are printed by name instead of their formula.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "compiler/ir/ir.h"

namespace cinch::ir {

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
