// Answers a request: reads, finds, translates.
#include <clang/AST/DeclCXX.h>
#include <clang/Basic/SourceManager.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/thread.h>

#include <algorithm>
#include <exception>
#include <mutex>
#include <set>
#include <string_view>

#include "codegen/jit/clang/extern/read_extern.h"
#include "codegen/jit/clang/extern/translator.h"

namespace cinch::clang_backend {
namespace {

using rt::ExternOutcome;

constexpr unsigned kStackBytes = 64u << 20;

// Finds a function by name in all namespaces, then by type. A template is instantiated by a
// conversion to a pointer of the wanted type, as C++ itself selects from overloads.

struct Candidates {
  std::vector<const clang::FunctionDecl*> functions;
  std::vector<const clang::FunctionTemplateDecl*> templates;
};

constexpr const char* kChosen = "cinch_chosen_instance";

// All functions and templates with the name outside the system's headers, in any namespace, each
// once.
class Search {
 public:
  Search(clang::ASTContext& context, std::string_view name) : context_(context), name_(name) {}

  void visit(const clang::DeclContext& in) {
    for (const clang::Decl* decl : in.decls()) {
      if (const auto* inner = llvm::dyn_cast<clang::NamespaceDecl>(decl)) {
        visit(*inner);
      } else if (const auto* linkage = llvm::dyn_cast<clang::LinkageSpecDecl>(decl)) {
        visit(*linkage);
      } else if (const auto* made = llvm::dyn_cast<clang::FunctionTemplateDecl>(decl)) {
        if (is_wanted(*made)) found.templates.push_back(made);
      } else if (const auto* function = llvm::dyn_cast<clang::FunctionDecl>(decl)) {
        if (is_wanted(*function)) found.functions.push_back(function);
      }
    }
  }

  Candidates found;

 private:
  bool is_wanted(const clang::NamedDecl& decl) {
    const bool is_named = decl.getDeclName().isIdentifier() && decl.getName().str() == name_;
    if (!is_named || context_.getSourceManager().isInSystemHeader(decl.getLocation())) return false;
    return seen_.insert(decl.getCanonicalDecl()).second;
  }

  clang::ASTContext& context_;
  std::string_view name_;
  std::set<const clang::Decl*> seen_;
};

// A parameter or result by value, or by a const reference.
const char* passed_name(const clang::ASTContext& context, clang::QualType type) {
  const auto* reference = type->getAs<clang::LValueReferenceType>();
  if (reference && !reference->getPointeeType().isConstQualified()) return nullptr;
  return scalar_name(context, type.getNonReferenceType());
}

const char* c_name(std::string_view type) {
  constexpr std::pair<std::string_view, const char*> kNames[] = {
      {"bool", "bool"},          {"i8", "signed char"}, {"u8", "unsigned char"}, {"i16", "short"},
      {"u16", "unsigned short"}, {"i32", "int"},        {"u32", "unsigned int"}, {"i64", "long"},
      {"u64", "unsigned long"},  {"f32", "float"},      {"f64", "double"}};
  for (const auto& [name, text] : kNames) {
    if (name == type) return text;
  }
  return "void";
}

// Does the function have the types that the program declares?
bool matches(const clang::ASTContext& context, const clang::FunctionDecl& function,
             const CinchExternRequest& request) {
  const auto is = [&](clang::QualType type, const char* wanted) {
    const char* name = passed_name(context, type);
    return name && std::string_view(name) == wanted;
  };
  if (function.getNumParams() != request.num_params || function.isVariadic()) return false;
  for (unsigned i = 0; i < function.getNumParams(); ++i) {
    if (!is(function.getParamDecl(i)->getType(), request.params[i])) return false;
  }
  return is(function.getReturnType(), request.result);
}

// "takes (float, double) and returns float".
std::string describe(const clang::FunctionDecl& function) {
  std::string types;
  for (const clang::ParmVarDecl* parameter : function.parameters()) {
    types += (types.empty() ? "" : ", ") + parameter->getType().getAsString();
  }
  return "takes (" + types + ") and returns " + function.getReturnType().getAsString();
}

// Text, after the header, that instantiates a template for the request.
std::string instantiation_text(const clang::FunctionTemplateDecl& wanted,
                               const CinchExternRequest& request) {
  std::string types;
  for (std::size_t i = 0; i < request.num_params; ++i) {
    types += (i ? ", " : "") + std::string(c_name(request.params[i]));
  }
  return "static const auto " + std::string(kChosen) + " = static_cast<" + c_name(request.result) +
         " (*)(" + types + ")>(&::" + wanted.getQualifiedNameAsString() + ");\n";
}

// The function that this text selects.
const clang::FunctionDecl* find_instance(clang::ASTContext& context) {
  for (const clang::Decl* decl : context.getTranslationUnitDecl()->decls()) {
    const auto* variable = llvm::dyn_cast<clang::VarDecl>(decl);
    if (!variable || variable->getName() != kChosen || !variable->getInit()) continue;
    const clang::Expr* expr = variable->getInit();
    while (true) {
      const clang::Expr* inner = expr->IgnoreParenCasts()->IgnoreImplicit();
      if (const auto* address = llvm::dyn_cast<clang::UnaryOperator>(inner)) {
        inner = address->getSubExpr();
      }
      if (inner == expr) break;
      expr = inner;
    }
    const auto* name = llvm::dyn_cast<clang::DeclRefExpr>(expr);
    return name ? llvm::dyn_cast<clang::FunctionDecl>(name->getDecl()) : nullptr;
  }
  return nullptr;
}

void note(ExternAnswer& answer, const clang::ASTUnit& tree, clang::SourceLocation where,
          std::string text) {
  answer.notes.push_back({std::move(text), place_of(tree.getSourceManager(), where)});
}

bool is_unchanged(const HeaderFile& file) {
  const auto now = llvm::MemoryBuffer::getFile(file.path);
  return now && (*now)->getBuffer() == file.text;
}

// The header that was read last, since programs call several functions of one.
class LastHeader {
 public:
  const HeaderUnit& read(const CinchExternRequest& request) {
    std::string key =
        std::string(request.header) + '\n' + request.compile_commands + '\n' + request.confine;
    for (std::size_t i = 0; i < request.num_include_folders; ++i) {
      key += std::string("\n") + request.include_folders[i];
    }
    const bool is_known =
        unit_ && key == key_ && std::all_of(unit_->files.begin(), unit_->files.end(), is_unchanged);
    if (!is_known) {
      forget();
      unit_ = std::make_unique<HeaderUnit>(read_header(request, ""));
      key_ = std::move(key);
    }
    return *unit_;
  }
  void forget() { unit_.reset(); }
  std::mutex& mutex() { return mutex_; }

 private:
  std::mutex mutex_;
  std::string key_;
  std::unique_ptr<HeaderUnit> unit_;
};

LastHeader& last_header() {
  // Never destroyed: Clang's own global state might be gone before.
  static auto* const kHeader = new LastHeader;
  return *kHeader;
}

// Names the innermost call first: what is rejected, and last the program's function.
void translate(const clang::FunctionDecl& function, const clang::ASTUnit& tree,
               ExternAnswer& answer) {
  Translator translator(function.getASTContext());
  try {
    answer.source = translator.run(function);
    answer.work = translator.work();
    answer.outcome = ExternOutcome::Found;
  } catch (const Refusal& refusal) {
    answer.outcome = ExternOutcome::Refused;
    answer.message = refusal.why;
    note(answer, tree, refusal.where, "found here");
    note(answer, tree, function.getLocation(),
         "in `" + function.getNameAsString() + "` or what it calls");
  }
}

void list(const Candidates& candidates, const clang::ASTUnit& tree, ExternAnswer& answer) {
  for (const clang::FunctionDecl* each : candidates.functions) {
    note(answer, tree, each->getLocation(), "this one " + describe(*each));
  }
  for (const clang::FunctionTemplateDecl* each : candidates.templates) {
    note(answer, tree, each->getLocation(), "this template");
  }
}

// Instantiates a template for the requested types.
void instantiate(const CinchExternRequest& request, const Candidates& candidates,
                 const clang::ASTUnit& tree, ExternAnswer& answer) {
  answer.outcome = ExternOutcome::Mismatch;
  if (candidates.templates.size() == 1) {
    const std::string text = instantiation_text(*candidates.templates[0], request);
    HeaderUnit unit = read_header(request, text);
    const clang::FunctionDecl* found =
        unit.is_whole() ? find_instance(unit.tree->getASTContext()) : nullptr;
    if (found) return translate(*found, *unit.tree, answer);
    list(candidates, tree, answer);
    for (HeaderError& error : unit.errors) answer.notes.push_back(std::move(error));
    return;
  }
  if (candidates.templates.size() > 1) answer.outcome = ExternOutcome::Ambiguous;
  list(candidates, tree, answer);
}

ExternAnswer answer_request(const CinchExternRequest& request) {
  ExternAnswer answer;
  const HeaderUnit& unit = last_header().read(request);
  answer.files = unit.files;
  if (!unit.is_whole()) {
    answer.message = unit.errors.empty() ? "it cannot be read" : unit.errors.front().text;
    answer.notes = unit.errors;
    // A note without a place would repeat the message.
    if (!answer.notes.empty() && answer.notes[0].place.path.empty()) {
      answer.notes.erase(answer.notes.begin());
    }
    return answer;
  }
  const clang::ASTUnit& tree = *unit.tree;
  clang::ASTContext& context = unit.tree->getASTContext();
  Search search(context, request.name);
  search.visit(*context.getTranslationUnitDecl());
  const Candidates& candidates = search.found;
  Candidates fitting;
  for (const clang::FunctionDecl* each : candidates.functions) {
    if (matches(context, *each, request)) fitting.functions.push_back(each);
  }
  if (fitting.functions.size() == 1) {
    translate(*fitting.functions[0], tree, answer);
  } else if (fitting.functions.size() > 1) {
    answer.outcome = ExternOutcome::Ambiguous;
    list(fitting, tree, answer);
  } else if (candidates.functions.empty() && candidates.templates.empty()) {
    answer.outcome = ExternOutcome::NotFound;
  } else {
    instantiate(request, candidates, tree, answer);
  }
  return answer;
}

struct OwnReply : CinchExternReply {
  ExternAnswer answer;
  std::vector<CinchExternNote> own_notes;
  std::vector<CinchExternFile> own_files;
};

}  // namespace

void forget_headers() {
  const std::lock_guard lock(last_header().mutex());
  last_header().forget();
}

ExternAnswer read_extern(const CinchExternRequest& request) {
  const std::lock_guard lock(last_header().mutex());
  ExternAnswer answer;
  std::exception_ptr failure;
  llvm::thread reader(std::optional<unsigned>(kStackBytes), [&] {
    try {
      answer = answer_request(request);
    } catch (...) {
      failure = std::current_exception();
    }
  });
  reader.join();
  if (failure) std::rethrow_exception(failure);
  return answer;
}

CinchExternReply* make_reply(ExternAnswer answer) {
  auto* reply = new OwnReply{};
  reply->answer = std::move(answer);
  for (const HeaderError& each : reply->answer.notes) {
    reply->own_notes.push_back(
        {each.text.c_str(), each.place.path.c_str(), each.place.begin, each.place.end});
  }
  for (const HeaderFile& each : reply->answer.files) {
    reply->own_files.push_back({each.path.c_str(), each.text.data(), each.text.size()});
  }
  reply->outcome = static_cast<int>(reply->answer.outcome);
  reply->message = reply->answer.message.c_str();
  reply->source = reply->answer.source.c_str();
  reply->work = reply->answer.work;
  reply->notes = reply->own_notes.data();
  reply->num_notes = reply->own_notes.size();
  reply->files = reply->own_files.data();
  reply->num_files = reply->own_files.size();
  return reply;
}

CinchExternReply* no_memory_reply() {
  ExternAnswer answer;
  answer.outcome = rt::ExternOutcome::NoMemory;
  return make_reply(std::move(answer));
}

void release_extern(CinchExternReply* reply) {
  delete static_cast<OwnReply*>(reply);
}

}  // namespace cinch::clang_backend
