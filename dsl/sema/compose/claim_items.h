// Claims of compressors: which laws they promise, with their arguments, or those of what is
// wrapped.
#pragma once

#include <optional>
#include <string>

#include "dsl/sema/elaboration/part.h"

namespace cinch::sema {

class ClaimItems : Part {
 public:
  using Part::Part;

  /// One `claims` item.
  void elaborate_claims(Instance& instance, const ast::Claims& node);

 private:
  const ClaimInfo* find_claim(Span span, const std::string& name);
  std::optional<HostExprId> claimed_number(ast::ExprId id);
  /// Can gradients be added to the state?
  bool holds_gradient(const Instance& instance, const Type& state);
  bool read_claim_args(const Instance& instance, const ast::Call& call, Claim& claim);
  void add_claim(Instance& instance, Claim claim);
  void inherit_claim(Instance& instance, const ast::Expr& claim, const ast::FieldRef& member);
  void elaborate_claim(Instance& instance, ast::ExprId id);
};

}  // namespace cinch::sema
