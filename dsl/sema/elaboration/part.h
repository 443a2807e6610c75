// The base of every part of elaboration: the files, the tree under construction, the visible names,
// the mode, and the parts that nearly all others use.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "dsl/sema/checked.h"
#include "dsl/sema/value.h"

namespace cinch::sema {
// The state of elaboration that rules depend on.

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
  // In functions that the compiler calls: what `T` means. Their numbers stay exact, and a
  // reshape is right.
  std::optional<DType> element;
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

// What elaboration passes along beside values: visible names, the arguments of a call, and measures
// of growth.

/// The visible names in one method, or in one inlined fn.
struct Environment {
  const FileUnit* unit = nullptr;
  Instance* instance = nullptr;  // nullptr in a fn
  std::vector<Scope> scopes;
  std::uint32_t shared_draws = 0;  // so far in the inlined method
  std::uint32_t method = 0;        // the number of the inlined method
  Instance* draw_instance =
      nullptr;  // the instance whose draws these are (in a fn: of the method that calls it)
};

/// The sorted arguments of a call of a named operator.
struct CallArgs {
  std::string name;
  BuiltinId id{};
  Span span;
  std::vector<ast::ExprId> positional;
  std::map<std::string, const ast::Arg*, std::less<>> named;
  bool is_bad = false;  // a mistake was reported
};

struct Scatter {
  BuiltinId id;
  Keep keep = Keep::Only;

  bool needs_unique() const { return id == BuiltinId::scatter && keep == Keep::Only; }
};

/// Is this scatter, scatter_add or one of their variants?
inline bool is_scatter(BuiltinId id) {
  return id >= BuiltinId::scatter && id <= BuiltinId::scatter_max;
}

/// How many operations were made, and how many expressions were visited for them.
struct Growth {
  std::size_t operations = 0, steps = 0;
};

class Conversions;
class Descriptions;
class SizeProver;
class SizeScope;
class TreeBuilder;
class TypeRules;
struct Elaboration;

class Part {
 public:
  explicit Part(Elaboration& all);
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;

 protected:
  ~Part() = default;

  HostExprPool& pool() const { return *out_.info.exprs; }
  /// The tree of the file whose names are visible.
  const ast::Module& tree() const { return env_->unit->tree; }
  /// Is this in a compressor that works on every row of a matrix?
  bool is_by_rows() const { return env_->instance != nullptr && env_->instance->rows.is_valid(); }

  /// Reports a mistake, after which the caller has nothing to return.
  template <dsl::DiagKind kKind, class... Args>
  Nothing mistake(Span span, Args&&... args) {
    reporter_.report<kKind>(span, std::forward<Args>(args)...);
    return {};
  }

  Elaboration& all_;
  ModuleData& module_;
  Reporter& reporter_;
  CheckedProgram& out_;
  Mode& mode_;
  Environment*& env_;
  SizeScope& sizes_;
  SizeProver& prover_;
  TypeRules& types_;
  TreeBuilder& build_;
  Descriptions& text_;
  Conversions& conversions_;
};

}  // namespace cinch::sema
