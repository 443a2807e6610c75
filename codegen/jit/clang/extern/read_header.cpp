// Clang's front end on a user's header. The driver finds the standard library. Options that change
// the meaning of a header come only from the request and its compile_commands.json. Only regular
// files of a sensible size are read: a header may name a device or a pipe.
#include <clang/Basic/DiagnosticOptions.h>
#include <clang/Frontend/CompilerInvocation.h>
#include <clang/Frontend/Utils.h>
#include <clang/Lex/Lexer.h>
#include <clang/Lex/PreprocessorOptions.h>
#include <clang/Serialization/PCHContainerOperations.h>
#include <clang/Tooling/JSONCompilationDatabase.h>
#include <llvm/Support/VirtualFileSystem.h>

#include <algorithm>

#include "codegen/jit/clang/extern/read_extern.h"
#include "runtime/core/files/file_bytes.h"

namespace cinch::clang_backend {
namespace {

constexpr const char* kMainFile = "cinch_extern.cpp";
constexpr std::uint64_t kMostBytes = std::uint64_t{64} << 20;
constexpr std::size_t kMostErrors = 4;

class RegularFiles : public llvm::vfs::ProxyFileSystem {
 public:
  using ProxyFileSystem::ProxyFileSystem;
  /// From now on only files below one of these folders are there.
  void confine(std::vector<std::string> folders) { folders_ = std::move(folders); }
  llvm::ErrorOr<llvm::vfs::Status> status(const llvm::Twine& path) override {
    if (is_hidden(path.str())) return std::make_error_code(std::errc::no_such_file_or_directory);
    return ProxyFileSystem::status(path);
  }
  llvm::ErrorOr<std::unique_ptr<llvm::vfs::File>> openFileForRead(
      const llvm::Twine& path) override {
    if (is_hidden(path.str())) return std::make_error_code(std::errc::no_such_file_or_directory);
    const auto status = ProxyFileSystem::status(path);
    if (!status) return status.getError();
    if (!status->isRegularFile()) return std::make_error_code(std::errc::invalid_argument);
    if (status->getSize() > kMostBytes) return std::make_error_code(std::errc::file_too_large);
    return ProxyFileSystem::openFileForRead(path);
  }

 private:
  bool is_hidden(const std::string& path) const {
    return !folders_.empty() && std::ranges::none_of(folders_, [&](const std::string& folder) {
      return rt::lies_below(path, folder);
    });
  }

  std::vector<std::string> folders_;
};

class FirstErrors : public clang::DiagnosticConsumer {
 public:
  explicit FirstErrors(std::vector<HeaderError>& errors) : errors_(errors) {}
  void HandleDiagnostic(clang::DiagnosticsEngine::Level level,
                        const clang::Diagnostic& diagnostic) override {
    DiagnosticConsumer::HandleDiagnostic(level, diagnostic);
    const bool is_shown = level >= clang::DiagnosticsEngine::Error ||
                          (level == clang::DiagnosticsEngine::Note && !errors_.empty());
    if (!is_shown || errors_.size() >= kMostErrors) return;
    llvm::SmallString<128> text;
    diagnostic.FormatDiagnostic(text);
    HeaderPlace place;
    if (diagnostic.hasSourceManager() && diagnostic.getLocation().isValid()) {
      place = place_of(diagnostic.getSourceManager(), diagnostic.getLocation());
    }
    errors_.push_back({text.str().str(), place});
  }

 private:
  std::vector<HeaderError>& errors_;
};

// Is it an option whose value may be the next word?
bool takes_option(const std::vector<std::string>& words, std::size_t& at, const std::string& folder,
                  std::vector<std::string>& args) {
  const std::string& word = words[at];
  for (const char* option : {"-isystem", "-iquote", "-I", "-D", "-U"}) {
    if (!llvm::StringRef(word).starts_with(option)) continue;
    std::string given = word.substr(std::char_traits<char>::length(option));
    if (given.empty() && at + 1 < words.size()) given = words[++at];
    const bool is_folder = option[1] == 'i' || option[1] == 'I';
    if (is_folder && !given.empty() && given[0] != '/') given.insert(0, folder + "/");
    args.insert(args.end(), {option, given});
    return true;
  }
  return false;
}

// Adds options of the command that compiles the file most like the header.
bool add_command(const CinchExternRequest& request, std::vector<std::string>& args,
                 HeaderUnit& unit) {
  std::string message = "it cannot be read";
  RegularFiles files(llvm::vfs::getRealFileSystem());
  const auto text = files.getBufferForFile(request.compile_commands);
  std::unique_ptr<clang::tooling::CompilationDatabase> database;
  if (text) {
    unit.files.push_back({request.compile_commands, (*text)->getBuffer().str()});
    database = clang::tooling::JSONCompilationDatabase::loadFromBuffer(
        (*text)->getBuffer(), message, clang::tooling::JSONCommandLineSyntax::AutoDetect);
  }
  if (!database) {
    unit.errors.push_back({std::string(request.compile_commands) + ": " + message, {}});
    return false;
  }
  const auto all = clang::tooling::inferMissingCompileCommands(std::move(database));
  const auto commands = all->getCompileCommands(request.header);
  if (commands.empty()) return true;
  const clang::tooling::CompileCommand& command = commands.front();
  for (std::size_t i = 1; i < command.CommandLine.size(); ++i) {
    const std::string& word = command.CommandLine[i];
    if (takes_option(command.CommandLine, i, command.Directory, args)) continue;
    if (llvm::StringRef(word).starts_with("-std=c++")) args.push_back(word);
  }
  return true;
}

// One target for all machines, so that a header's meaning does not depend on who compiles the
// program.
std::vector<std::string> driver_args(const CinchExternRequest& request) {
  const std::string clang = std::string(CINCH_CLANG_TOOLS) + "/clang++";
  std::vector<std::string> args = {clang,        "-x",
                                   "c++",        "--target=x86_64-unknown-linux-gnu",
                                   "-std=c++20", "-fsyntax-only",
                                   "-w",         "-ffp-contract=off"};
  for (std::size_t i = 0; i < request.num_include_folders; ++i) {
    args.insert(args.end(), {"-I", request.include_folders[i]});
  }
  return args;
}

std::shared_ptr<clang::CompilerInvocation> make_invocation(
    const std::vector<std::string>& args, clang::DiagnosticsEngine& engine,
    llvm::IntrusiveRefCntPtr<llvm::vfs::FileSystem> files) {
  std::vector<const char*> words;
  words.reserve(args.size());
  for (const std::string& arg : args) words.push_back(arg.c_str());
  clang::CreateInvocationOptions options;
  options.VFS = std::move(files);
  options.Diags = &engine;
  std::unique_ptr<clang::CompilerInvocation> made =
      clang::createInvocation(words, std::move(options));
  return {std::move(made)};
}

// The folder to which a text is confined, those that the user names, and the system's.
std::vector<std::string> searched_folders(const clang::CompilerInvocation& invocation,
                                          const std::string& confine) {
  const clang::HeaderSearchOptions& search = invocation.getHeaderSearchOpts();
  std::vector<std::string> folders = {confine, search.ResourceDir};
  for (const auto& entry : search.UserEntries) folders.push_back(entry.Path);
  std::erase_if(folders, [](const std::string& folder) { return folder.empty(); });
  return folders;
}

void add_files(const clang::SourceManager& sources, std::vector<HeaderFile>& found) {
  for (auto file = sources.fileinfo_begin(); file != sources.fileinfo_end(); ++file) {
    const auto main = sources.getFileEntryRefForID(sources.getMainFileID());
    if (main && file->first == *main) continue;
    const auto text = file->second->getBufferDataIfLoaded();
    if (text) found.push_back({file->first.getName().str(), text->str()});
  }
  std::sort(found.begin(), found.end(),
            [](const HeaderFile& a, const HeaderFile& b) { return a.path < b.path; });
}

}  // namespace

HeaderUnit read_header(const CinchExternRequest& request, const std::string& more) {
  HeaderUnit unit;
  std::vector<std::string> args = driver_args(request);
  if (*request.compile_commands && !add_command(request, args, unit)) return unit;
  args.emplace_back(kMainFile);
  llvm::IntrusiveRefCntPtr<clang::DiagnosticsEngine> engine(new clang::DiagnosticsEngine(
      new clang::DiagnosticIDs, new clang::DiagnosticOptions, new FirstErrors(unit.errors), true));
  const auto files = llvm::makeIntrusiveRefCnt<RegularFiles>(llvm::vfs::getRealFileSystem());
  const auto memory = llvm::makeIntrusiveRefCnt<llvm::vfs::InMemoryFileSystem>();
  const auto both = llvm::makeIntrusiveRefCnt<llvm::vfs::OverlayFileSystem>(files);
  both->pushOverlay(memory);
  const std::string text = "#include \"" + std::string(request.header) + "\"\n" + more;
  memory->addFile(kMainFile, 0, llvm::MemoryBuffer::getMemBufferCopy(text, kMainFile));
  if (const auto folder = files->getCurrentWorkingDirectory()) {
    (void)memory->setCurrentWorkingDirectory(*folder);
    memory->addFile(kMainFile, 0, llvm::MemoryBuffer::getMemBufferCopy(text, kMainFile));
  }
  const auto invocation = make_invocation(args, *engine, both);
  if (!invocation) return unit;
  if (*request.confine) files->confine(searched_folders(*invocation, request.confine));
  unit.tree = clang::ASTUnit::LoadFromCompilerInvocation(
      invocation, std::make_shared<clang::PCHContainerOperations>(), engine,
      new clang::FileManager(invocation->getFileSystemOpts(), both));
  if (unit.tree) add_files(unit.tree->getSourceManager(), unit.files);
  return unit;
}

HeaderPlace place_of(const clang::SourceManager& sources, clang::SourceLocation where) {
  const clang::SourceLocation at = sources.getExpansionLoc(where);
  const auto [file, offset] = sources.getDecomposedLoc(at);
  const auto entry = sources.getFileEntryRefForID(file);
  if (!entry || file == sources.getMainFileID()) return {};
  const unsigned size = clang::Lexer::MeasureTokenLength(at, sources, clang::LangOptions());
  return {entry->getName().str(), offset, offset + std::max(size, 1u)};
}

}  // namespace cinch::clang_backend
