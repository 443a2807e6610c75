// The names of one file: what declares them, where they are used, and where they can be seen. Made
// of the tree alone, by the rules by which the checker looks names up, so that a file with mistakes
// has them, too.
#pragma once
#include <cstdint>
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
  Field,
  Count,
  Variable,
  MutableVariable,
  LoopVariable,
  LambdaParameter,
  GenericSize,  // of a fn's signature
};

struct Declaration {
  NameKind kind;
  ast::Name name;
  Span whole;  // the text that declares it: a statement, an item, a parameter, a signature
  Span scope;  // where the name can be seen
  std::string doc;
};

/// A declaration, by the file and the place of its name.
struct NamePlace {
  const sema::FileUnit* unit = nullptr;
  Span name;
  friend bool operator==(const NamePlace&, const NamePlace&) = default;
};

struct NameUse {
  Span span;
  NamePlace declared;
  bool is_shorthand = false;  // `value` of `wire { value }`: a field and what it is filled with
};

/// Names that the language gives.
enum class WordKind : std::uint8_t { Operator, Claim, BuiltinName };
struct WordUse {
  Span span;
  WordKind kind;
};

struct NameIndex {
  std::vector<Declaration> declarations;  // in source order, but for names of the file
  std::vector<NameUse> uses;              // declarations are uses of themselves
  std::vector<WordUse> words;

  const Declaration* find(Span name) const;
  /// Uses whose text holds the offset, or ends there: two of a shorthand, else one or none.
  std::vector<NameUse> uses_at(std::uint32_t offset) const;
  const WordUse* word_at(std::uint32_t offset) const;
};

/// `imports`: the file whose imports are used, the same one or, where its own could not be read, an
/// earlier state of it.
NameIndex index_names(const sema::FileUnit& unit, const sema::FileUnit& imports);

}  // namespace cinch::lsp
