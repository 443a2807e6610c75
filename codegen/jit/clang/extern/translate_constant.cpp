// Values that the compiler knows: literals, and the tables of constant arrays.
#include <clang/AST/APValue.h>
#include <llvm/ADT/SmallString.h>

#include <cstdio>

#include "codegen/jit/clang/extern/translator.h"

namespace cinch::clang_backend {
namespace {

constexpr std::uint64_t kMostTableElems = 1u << 14;

std::string float_text(const llvm::APFloat& value, bool is_f64) {
  char text[64];
  if (value.isFinite()) {
    value.convertToHexString(text, 0, false, llvm::APFloat::rmNearestTiesToEven);
    return std::string("f") + (is_f64 ? "64(" : "32(") + text + (is_f64 ? ")" : "f)");
  }
  const std::uint64_t nan = is_f64 ? 0x7ff8000000000000 : 0x7fc00000;
  const std::uint64_t bits = value.isNaN() ? nan : value.bitcastToAPInt().getZExtValue();
  std::snprintf(text, sizeof text, "f%d_bits(0x%llx%s)", is_f64 ? 64 : 32,
                static_cast<unsigned long long>(bits), is_f64 ? "ull" : "u");
  return text;
}

std::string integer_text(const llvm::APSInt& value, const std::string& type) {
  if (type == "bool") return value.getBoolValue() ? "true" : "false";
  llvm::SmallString<32> digits;
  value.toString(digits, 10);
  if (value.isUnsigned()) return type + "(" + digits.str().str() + "ull)";
  // The smallest 64-bit integer has no literal of its own.
  if (value.getBitWidth() == 64 && value.isMinSignedValue())
    return "i64(-9223372036854775807ll - 1)";
  return type + "(" + digits.str().str() + "ll)";
}

clang::QualType element_type(const clang::ASTContext& context, clang::QualType type) {
  while (const clang::ArrayType* array = context.getAsArrayType(type)) {
    type = array->getElementType();
  }
  return type;
}

// std::array holds one array.
const clang::APValue& inner_array(const clang::APValue& value) {
  const bool wraps = value.isStruct() && value.getStructNumBases() == 0 &&
                     value.getStructNumFields() == 1 && value.getStructField(0).isArray();
  return wraps ? value.getStructField(0) : value;
}

void flatten(const clang::APValue& value, std::vector<const clang::APValue*>& elements) {
  if (!value.isArray()) return elements.push_back(&value);
  const unsigned size = value.getArraySize();
  for (unsigned i = 0; i < size && elements.size() <= kMostTableElems; ++i) {
    flatten(i < value.getArrayInitializedElts() ? value.getArrayInitializedElt(i)
                                                : value.getArrayFiller(),
            elements);
  }
}

}  // namespace

std::string Translator::literal(const clang::APValue& value, clang::QualType type,
                                clang::SourceLocation where) {
  const char* name = scalar_name(context_, type);
  if (name && value.isInt()) return integer_text(value.getInt(), name);
  if (name && value.isFloat()) return float_text(value.getFloat(), std::string(name) == "f64");
  throw Refusal{where, "a constant that is not a number"};
}

std::optional<std::string> Translator::constant(const clang::Expr& expr) {
  if (expr.isGLValue() || !scalar_name(context_, expr.getType())) return std::nullopt;
  clang::Expr::EvalResult result;
  if (!expr.EvaluateAsRValue(result, context_)) return std::nullopt;
  if (result.HasSideEffects || result.HasUndefinedBehavior) return std::nullopt;
  if (!result.Val.isInt() && !result.Val.isFloat()) return std::nullopt;
  return literal(result.Val, expr.getType(), expr.getBeginLoc());
}

const clang::APValue& Translator::constant_value(const clang::VarDecl& variable,
                                                 clang::SourceLocation use) {
  const std::string name = "`" + variable.getNameAsString() + "`";
  if (variable.getTLSKind() != clang::VarDecl::TLS_None) {
    throw Refusal{use, "the thread-local variable " + name};
  }
  const clang::QualType type = variable.getType();
  if (element_type(context_, type).isVolatileQualified()) {
    throw Refusal{use, "the `volatile` variable " + name};
  }
  const bool is_fixed = variable.isConstexpr() || type.isConstant(context_);
  if (!is_fixed) {
    throw Refusal{
        use,
        (variable.isStaticLocal() ? "the static local variable " : "the global variable ") + name};
  }
  const clang::VarDecl* definition = variable.getInitializingDeclaration();
  const clang::APValue* value = definition ? definition->evaluateValue() : nullptr;
  if (!value) throw Refusal{use, "the constant " + name + ", whose value is not known"};
  return *value;
}

std::string Translator::table_name(const clang::VarDecl& variable, clang::SourceLocation use) {
  const clang::VarDecl* key = variable.getCanonicalDecl();
  if (const auto known = tables_.find(key); known != tables_.end()) return known->second;
  const clang::APValue& value = inner_array(constant_value(variable, use));
  std::vector<const clang::APValue*> elements;
  flatten(value, elements);
  if (elements.size() > kMostTableElems) {
    throw Refusal{use, "a table of more than " + std::to_string(kMostTableElems) + " elements"};
  }
  clang::QualType type = variable.getType();
  if (const auto* record = type->getAsCXXRecordDecl(); record && !record->field_empty()) {
    type = record->field_begin()->getType();
  }
  type = element_type(context_, type);
  const char* element = scalar_name(context_, type);
  if (!element) throw Refusal{use, "a table of elements that are not numbers"};
  const std::string name = new_name('t');
  std::string text;
  for (const clang::APValue* each : elements) {
    text += (text.empty() ? "" : ", ") + literal(*each, type, use);
  }
  definitions_ += "CINCH_LANG_TABLE " + std::string(element) + " " + name + "[" +
                  std::to_string(elements.size()) + "] = {" + text + "};\n";
  tables_.emplace(key, name);
  return name;
}

}  // namespace cinch::clang_backend
