// Types of parameters, variables and results. All have the width and sign of x86-64, on all
// targets.
#include <clang/AST/DeclCXX.h>

#include "codegen/jit/clang/extern/translator.h"

namespace cinch::clang_backend {

namespace {

const char* integer_name(std::uint64_t bits, bool is_signed) {
  switch (bits) {
    case 8:
      return is_signed ? "i8" : "u8";
    case 16:
      return is_signed ? "i16" : "u16";
    case 32:
      return is_signed ? "i32" : "u32";
    case 64:
      return is_signed ? "i64" : "u64";
    default:
      return nullptr;
  }
}

// A name for a type that kernels do not support.
std::string refused_type(clang::QualType type) {
  if (type->isReferenceType()) return "a reference";
  if (type->isFunctionPointerType() || type->isMemberPointerType()) return "a function pointer";
  if (type->isPointerType() || type->isNullPtrType()) return "a pointer";
  if (type->isSpecificBuiltinType(clang::BuiltinType::LongDouble)) return "`long double`";
  if (type->isVectorType()) return "a vector type, which intrinsics compute with";
  if (type->isUnionType()) return "a union";
  if (const auto* record = type->getAsCXXRecordDecl(); record && record->isLambda()) {
    return "a lambda";
  }
  if (const auto* record = type->getAsCXXRecordDecl();
      record && record->hasDefinition() && record->isPolymorphic()) {
    return "virtual functions (`" + record->getNameAsString() + "`)";
  }
  return "the type `" + type.getAsString() + "`";
}

bool is_plain_struct(const clang::CXXRecordDecl& record) {
  return record.hasDefinition() && !record.isUnion() && !record.isLambda() &&
         record.getNumBases() == 0 && !record.isPolymorphic() && record.isTriviallyCopyable() &&
         record.hasTrivialDestructor();
}

}  // namespace

const char* scalar_name(const clang::ASTContext& context, clang::QualType given) {
  clang::QualType type = given.getCanonicalType();
  if (type.isVolatileQualified() || type->isAtomicType()) return nullptr;
  if (const auto* as_enum = type->getAs<clang::EnumType>()) {
    type = as_enum->getDecl()->getIntegerType();
    if (type.isNull()) return nullptr;
    type = type.getCanonicalType();
  }
  const auto* builtin = type->getAs<clang::BuiltinType>();
  if (!builtin) return nullptr;
  if (builtin->getKind() == clang::BuiltinType::Bool) return "bool";
  if (builtin->getKind() == clang::BuiltinType::Float) return "f32";
  if (builtin->getKind() == clang::BuiltinType::Double) return "f64";
  if (!builtin->isInteger()) return nullptr;
  return integer_name(context.getTypeSize(type), builtin->isSignedInteger());
}

clang::QualType Translator::value_type(clang::QualType type, clang::SourceLocation where) const {
  const auto* reference = type->getAs<clang::LValueReferenceType>();
  if (!reference) return type;
  const clang::QualType inner = reference->getPointeeType();
  // Nothing can change the value between the call and its use: there are no other references.
  const bool is_value = inner.isConstQualified() && !inner.isVolatileQualified();
  if (!is_value) throw Refusal{where, "a reference through which a variable may change"};
  return inner;
}

std::string Translator::type_text(clang::QualType type, clang::SourceLocation where) {
  if (type.isVolatileQualified()) throw Refusal{where, "a `volatile` variable"};
  if (const char* name = scalar_name(context_, type)) return name;
  if (const auto* record = type->getAs<clang::RecordType>()) {
    return struct_name(*record->getDecl(), where);
  }
  throw Refusal{where, refused_type(type.getCanonicalType())};
}

std::string Translator::struct_name(const clang::RecordDecl& given, clang::SourceLocation where) {
  const auto* record = llvm::dyn_cast<clang::CXXRecordDecl>(given.getDefinition());
  if (!record || !is_plain_struct(*record)) {
    throw Refusal{where, refused_type(context_.getRecordType(&given))};
  }
  if (const auto known = structs_.find(record); known != structs_.end()) return known->second;
  const std::string name = new_name('S');
  std::string fields;
  for (const clang::FieldDecl* field : record->fields()) {
    if (field->isBitField()) throw Refusal{field->getLocation(), "a bit-field"};
    const char* type = scalar_name(context_, field->getType());
    if (!type) {
      throw Refusal{field->getLocation(),
                    "a member of a struct that is " + refused_type(field->getType())};
    }
    fields += std::string(" ") + type + " m" + std::to_string(field->getFieldIndex()) + ";";
  }
  definitions_ += "struct " + name + " {" + fields + " };\n";
  structs_.emplace(record, name);
  return name;
}

std::string Translator::zero_of(clang::QualType type, clang::SourceLocation where) {
  const std::string text = type_text(type, where);
  return scalar_name(context_, type) ? text + "(0)" : text + "{}";
}

}  // namespace cinch::clang_backend
