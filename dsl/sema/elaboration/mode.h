// The state of elaboration that rules depend on.
#pragma once

#include <cstdint>

#include "dsl/sema/checked.h"

namespace cinch::sema {

/// The body under elaboration, which decides what is visible.
enum class BodyKind : std::uint8_t { Encode, Decode, Finish, Sync, StateInit, Host };

/// Set with a ModeScope.
struct Mode {
  BodyKind body = BodyKind::Host;
  bool in_host = false;            // parameters are host values: sizes, loop bounds
  bool encodes_in_finish = false;  // an encode inlined in finish
  bool in_set = false;             // parameters of the wrapped compressor are visible
  bool in_leaves = false;          // loop variables are leaves of host expressions
  bool is_tried = false;           // what the host does not know is no mistake
  bool is_check = false;           // nothing will be compiled
  bool in_claim = false;           // whole numbers divide exactly
  bool in_constant = false;        // only constants are visible
  bool in_decode_body = false;     // in the program's own decode
  bool is_of_fn = false;           // a fn is checked with unknown sizes
  int lambda_depth = 0;
  const Type* wanted = nullptr;  // state inits: the shape that operators without a size take
};

/// Changes of the mode last until the scope ends.
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
