// Nodes of types.
#pragma once

#include <variant>
#include <vector>

#include "dsl/syntax/ast/ids.h"

namespace cinch::ast {

/// `f32`, `u7`, `bool`, or `int<bits>` / `uint<bits>`: then `width` is set. Names are not checked
/// here.
struct ScalarType {
  Name name;
  ExprId width;
};

/// `[element; d0]`, `[element; rows, cols]`; in the signature of a fn also `[element; ..]`, an
/// array of any sizes, which has no dims.
struct ArrayType {
  TypeId element;
  IdRange<ExprId> dims;
  bool is_any() const { return dims.is_empty(); }
};

/// `(f32, [f32; m])`: the result of a fn that gives several values.
struct TupleType {
  IdRange<TypeId> elements;
};

/// `{fast, exact}`: the words that a parameter takes.
struct EnumType {
  std::vector<Name> names;
};

/// `compressor`, the type of a wrapper's parameter.
struct CompressorType {};

struct Type {
  Span span;
  std::variant<ScalarType, ArrayType, TupleType, EnumType, CompressorType> node;
};

}  // namespace cinch::ast
