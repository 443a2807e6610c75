// The sizes of one program: their names, one form for all sizes that are proved equal, and their
// text. It knows nothing of types of values, and reports nothing.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "dsl/sema/checked.h"
#include "dsl/sema/sizes/size_prover.h"

namespace cinch::sema {

class SizeScope {
 public:
  explicit SizeScope(rt::ProgramInfo& info) : info_(info) {}

  SizeProver& prover() { return prover_; }
  /// Names a size in messages. Returns false if it has a name already.
  bool name(HostExprId size, const std::string& text, Span span) {
    return names_.try_emplace(size, text, span).second;
  }
  void rename(HostExprId size, std::string text, Span span) {
    names_[size] = {std::move(text), span};
  }
  /// Returns the first of all sizes that are proved equal to this one, because the IR compares
  /// sizes by their ids. Types of expressions and variables have sizes of this form.
  HostExprId one_form(HostExprId size);
  /// Puts all sizes of a type into that form.
  Type in_one_form(Type type);
  /// Is the size proved to be 1?
  bool is_one(HostExprId size);
  /// Is every size proved to be equal to the other's?
  bool same_shape(const Type& a, const Type& b);
  /// The number of elements of a value of the type.
  HostExprId num_elems(const Type& type);
  /// Are all sizes constants?
  bool all_constant_sizes(const Type& type);
  /// A size without counts that is never smaller than this one; invalid if none is known.
  HostExprId without_counts(HostExprId size);
  /// Is the size negative whenever it is not zero? Beside unsigned integers that is a mistake.
  bool is_never_positive(HostExprId size);
  /// A new host expression about which nothing is known.
  HostExprId opaque_number(HostType type);
  HostExprId length_of(HostExprId begin, HostExprId end);
  /// The size as text, with the names of named sizes.
  std::string size_text(HostExprId id);
  /// The type as text: `[f32; n]`.
  std::string type_text(const Type& type);
  /// Collects the named sizes in a size, each with the place of its name.
  void collect_sizes(HostExprId id, std::vector<std::pair<std::string, Span>>& out,
                     std::set<HostExprId>& seen);

 private:
  std::string size_text_within(HostExprId id, int depth, int& left);

  HostExprPool& pool() const { return info_.exprs; }

  rt::ProgramInfo& info_;
  SizeProver prover_{info_.exprs};
  std::map<HostExprId, std::pair<std::string, Span>> names_;
  std::map<HostExprId, HostExprId> forms_;  // by normal form: the first size
  std::uint32_t next_generic_ = 0;
};

}  // namespace cinch::sema
