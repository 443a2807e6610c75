// Host expressions by number, for those that hold or hand on formulas and look into none.
#pragma once
#include <memory>

#include "runtime/core/ids.h"

namespace cinch {

using HostExprId = Id<struct HostExprTag>;

class HostExprPool;
struct HostEnv;
struct HostValue;

/// A pool as a member: it is copied and moved with what holds it, and stays where it is when it is
/// assigned to, so that references to it hold. Only sources that look into formulas include
/// host_expr.h.
class HostExprs {
 public:
  HostExprs();
  HostExprs(HostExprPool pool);
  HostExprs(const HostExprs& other);
  HostExprs(HostExprs&& other);  // NOLINT(*-noexcept-move*): allocates
  HostExprs& operator=(const HostExprs& other);
  HostExprs& operator=(HostExprs&& other) noexcept;
  ~HostExprs();

  HostExprPool& operator*() { return *pool_; }
  const HostExprPool& operator*() const { return *pool_; }
  HostExprPool* operator->() { return pool_.get(); }
  const HostExprPool* operator->() const { return pool_.get(); }

 private:
  std::unique_ptr<HostExprPool> pool_;
};

}  // namespace cinch
