// What elaboration is doing at the moment, as far as rules depend on it.
#pragma once

#include <cstdint>

#include "dsl/sema/checked.h"

namespace cinch::sema {

/// Which body is elaborated: what it may see.
enum class BodyKind : std::uint8_t { Encode, Decode, Finish, Sync, StateInit, Host };

/// Set with a ModeScope.
struct Mode {
  BodyKind body = BodyKind::Host;
  bool in_host = false;            // parameters are host values: sizes, loop bounds
  bool encodes_in_finish = false;  // an encode inlined in finish
  bool in_set = false;             // parameters of what is wrapped are seen
  bool in_leaves = false;          // loop variables are leaves of host expressions
  bool is_check = false;           // nothing will be compiled
  bool in_claim = false;           // whole numbers divide exactly
  bool in_constant = false;        // nothing but constants can be seen
  bool in_decode_body = false;     // of the program
  bool is_of_fn = false;           // a fn is checked with sizes of its own
  int lambda_depth = 0;
  const Type* wanted = nullptr;  // state inits: the shape that operators without a size take
};

/// Changes of the mode last until the end of the scope.
class ModeScope {
 public:
  explicit ModeScope(Mode& mode) : mode_(mode), outer_(mode) {}
  ~ModeScope() { mode_ = outer_; }
  ModeScope(const ModeScope&) = delete;
  ModeScope& operator=(const ModeScope&) = delete;
  const Mode& outer() const { return outer_; }

 private:
  Mode& mode_;
  Mode outer_;
};

}  // namespace cinch::sema
