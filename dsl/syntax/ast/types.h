// Nodes of types.
#pragma once

#include <variant>
#include <vector>

#include "dsl/syntax/ast/ids.h"

namespace cinch::ast {

/// `f32`, `u7`, `bool`, or `int<bits>` / `uint<bits>` with `width`. The checker checks the names.
struct ScalarType {
  Name name;
  ExprId width;
};

/// `[element; d0]` or `[element; rows, cols]`. In the signature of a fn also `[element; ..]`, an
/// array of any sizes, without dims.
struct ArrayType {
  TypeId element;
  IdRange<ExprId> dims;
  bool is_any() const { return dims.is_empty(); }
};

/// `(f32, [f32; m])`: the result of a fn with several results.
struct TupleType {
  IdRange<TypeId> elements;
};

/// `{fast, exact}`: the words of a parameter.
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
