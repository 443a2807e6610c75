// The base of every part of elaboration: the files, the tree under construction, the visible names,
// the mode, and the parts that nearly all others use.
#pragma once

#include "dsl/sema/elaboration/environment.h"
#include "dsl/sema/elaboration/mode.h"
#include "dsl/sema/value.h"

namespace cinch::sema {

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

  HostExprPool& pool() const { return out_.info.exprs; }
  /// The tree of the file whose names are visible.
  const ast::Module& tree() const { return env_->unit->tree; }
  /// Is this in a compressor that works on every row of a matrix?
  bool is_by_rows() const { return env_->instance != nullptr && env_->instance->rows.is_valid(); }

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
