// Answers a request: reads, finds, translates.
#include "codegen/jit/clang/extern/read_extern.h"

#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/thread.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <mutex>

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

}  // namespace cinch::clang_backend
