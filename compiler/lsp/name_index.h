// The names of one file: their declarations, uses and scopes. It is made from the tree alone, by
// the checker's rules for looking up names, so that files with errors have one, too.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dsl/sema/module_data.h"
#include "dsl/syntax/ast.h"

namespace cinch::lsp {
using dsl::Span;

enum class NameKind : std::uint8_t {
  Const,
  Fn,
  ExternFn,
  Compressor,
  Parameter,         // of a compressor
  InnerCompressor,   // a parameter that is a compressor
  FnParameter,       // of a fn or extern fn
  MethodParameter,   // of encode, finish and sync
  PayloadParameter,  // of decode
  Size,
  State,
  Input,
  Field,
  Count,
  Variable,
  MutableVariable,
  LoopVariable,
  LambdaParameter,
  GenericSize,  // of a fn's signature
  Word,         // a word that a parameter takes: `exact` of `{fast, exact}`
};

struct Declaration {
  NameKind kind;
  ast::Name name;
  Span whole;  // text of the declaration: a statement, an item, a parameter, a signature
  Span scope;  // where the name is visible
  std::string doc;
};

/// A declaration, by its file and the place of its name.
struct NamePlace {
  const sema::FileUnit* unit = nullptr;
  Span name;
  friend bool operator==(const NamePlace&, const NamePlace&) = default;
};

struct NameUse {
  Span span;
  NamePlace declared;
  bool is_shorthand = false;  // `value` of `wire { value }`: a field and the value that fills it
};

/// Names that the language defines.
enum class WordKind : std::uint8_t { Operator, Claim, BuiltinName };
struct WordUse {
  Span span;
  WordKind kind;
};

struct NameIndex {
  std::vector<Declaration> declarations;  // in source order, except names of the file
  std::vector<NameUse> uses;              // include declarations
  std::vector<WordUse> words;

  const Declaration* find(Span name) const;
  /// Uses whose text contains the offset or ends there: two for a shorthand, else one or none.
  std::vector<NameUse> uses_at(std::uint32_t offset) const;
  const WordUse* word_at(std::uint32_t offset) const;
};

/// `imports`: the file whose imports are used: the same file or, if its imports could not be read,
/// an earlier state of it.
NameIndex index_names(const sema::FileUnit& unit, const sema::FileUnit& imports);

}  // namespace cinch::lsp
