// Caches values of one pool's host expressions for one env from call to call, since a session needs
// the same sizes at every step.
#pragma once

#include "runtime/core/sizes/host_expr.h"

namespace cinch {

/// For one thread at a time.
class HostMemo {
 public:
  /// Forgets values that differ for this env. HostEnv::memo then points to this. The pool must
  /// outlive the memo or its next bind.
  void bind(const HostExprPool& pool, const HostEnv& env);
  bool is_of(const HostExprPool& pool) const { return pool_ == &pool; }

  /// HostExprPool::eval for the bound env, perhaps with other counts. The time grows with the nodes
  /// that are unknown or use a count.
  rt::Result<HostValue> eval(HostExprId id, const HostEnv& env);

 private:
  static constexpr std::uint64_t kUnknown = 0, kAlways = 1;

  bool is_known(HostExprId id) const {
    return stamps_[id.index()] == kAlways || stamps_[id.index()] == now_;
  }
  HostExprId unknown_argument(const HostExprNode& node) const;
  rt::Result<HostValue> value_of(const HostExprNode& node, const HostEnv& env) const;

  const HostExprPool* pool_ = nullptr;
  HostEnv env_;  // as bound, without spans
  std::vector<HostValue> params_;
  // By node. Values that use a count are valid during one call of eval, whose number is their
  // stamp.
  std::vector<HostValue> values_;
  std::vector<std::uint64_t> stamps_;
  std::uint64_t now_ = kAlways;
  std::vector<HostExprId> waiting_;
};

}  // namespace cinch
