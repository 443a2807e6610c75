// Host expressions in the IR's text form: `clamp(int(ceil(f64(n) * ratio)), 1, n)`. Unlike the
// formulas that people are shown, this text reads back to the same expression: types are told by
// suffix (12, 0.5f, 0.5d) and casts are written. Named sizes stand for their formula.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "compiler/ir/ir.h"

namespace cinch::ir {

/// Prints expressions of one program. Names are used only where they mean one thing.
class HostPrinter {
 public:
  /// Sizes from `visible_sizes` on are not used as names (the definition of a size uses only those
  /// before it).
  explicit HostPrinter(const rt::ProgramInfo& info, std::size_t visible_sizes = ~std::size_t{0});

  /// From now on the size's name stands for its formula.
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
  /// The name where it is clear, else callee(index, more).
  std::string print_named(std::string_view callee, std::uint32_t index, const std::string& name,
                          const std::string& more) const;

  const rt::ProgramInfo& info_;
  std::unordered_map<std::string, int> uses_;              // of each name
  std::unordered_map<HostExprId, std::string> size_name_;  // of named formulas
  mutable std::size_t num_printed_ = 0;                    // parts of the formula at hand
};

/// Whether the text form can write the name bare: [A-Za-z_][A-Za-z0-9_.]*.
bool is_plain_name(std::string_view name);
/// In double quotes, with \" \\ \n and \xNN for other control bytes.
std::string quote(std::string_view text);

}  // namespace cinch::ir
