// From the request to the answer: read, find, translate.
#include "codegen/jit/clang/extern/read_extern.h"

#include <llvm/Support/thread.h>

#include <exception>

#include "codegen/jit/clang/extern/find_function.h"
#include "codegen/jit/clang/extern/translator.h"

namespace cinch::clang_backend {
namespace {

using rt::ExternOutcome;

constexpr unsigned kStackBytes = 64u << 20;

void note(ExternAnswer& answer, const clang::ASTUnit& tree, clang::SourceLocation where,
          std::string text) {
  answer.notes.push_back({std::move(text), place_of(tree.getSourceManager(), where)});
}

// True where the header is whole.
bool is_whole(HeaderUnit& unit, ExternAnswer& answer) {
  if (unit.tree) answer.files = files_of(unit.tree->getSourceManager());
  const bool failed = !unit.tree || unit.tree->getDiagnostics().hasErrorOccurred();
  if (!failed) return true;
  answer.outcome = ExternOutcome::HeaderBroken;
  answer.message = unit.errors.empty() ? "it cannot be read" : unit.errors.front().text;
  answer.notes = std::move(unit.errors);
  return false;
}

// The last ones called are named first: what is refused, then the function of the program.
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

// Of a template the one instance that the types ask for.
void instantiate(const CinchExternRequest& request, const Candidates& candidates,
                 const clang::ASTUnit& tree, ExternAnswer& answer) {
  answer.outcome = ExternOutcome::Mismatch;
  if (candidates.templates.size() == 1) {
    const std::string text = instantiation_text(*candidates.templates[0], request);
    HeaderUnit unit = read_header(request, text);
    const bool is_good = unit.tree && !unit.tree->getDiagnostics().hasErrorOccurred();
    const clang::FunctionDecl* found =
        is_good ? find_instance(unit.tree->getASTContext()) : nullptr;
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
  HeaderUnit unit = read_header(request, "");
  if (!is_whole(unit, answer)) return answer;
  const clang::ASTUnit& tree = *unit.tree;
  clang::ASTContext& context = unit.tree->getASTContext();
  const Candidates candidates = find_candidates(context, request.name);
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

}  // namespace

ExternAnswer read_extern(const CinchExternRequest& request) {
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

}  // namespace cinch::clang_backend
