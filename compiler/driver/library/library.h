// A library that links like any other: `cinch build` without --emit.
#pragma once
#include <exception>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

#include "codegen/aot/library.h"
#include "compiler/driver/options.h"
#include "compiler/driver/process/files.h"

namespace cinch::driver {

ExitCode build_library(const BuildOptions& options);

// Throws CommandError(Usage) if `why` is not empty: `what` may not have the name, for this reason.
void require_name(const std::string& why, const std::string& what, const std::string& name);

// Turns the programs from text into kernels, several at a time.
class LibraryFrontEnds final : public codegen::LibraryPrograms {
 public:
  // `before_printing` is called before diagnostics go to standard error.
  LibraryFrontEnds(const BuildOptions& options, std::function<void()> before_printing);

  std::size_t count() const override { return programs_.size(); }
  // Keeps exceptions and diagnostics for take().
  void prepare(std::size_t index) override;
  // Shows the program's diagnostics. Throws ServiceError for a program with errors, and
  // CommandError(Usage) for a name that no compressor may have or that another one has.
  codegen::LibraryProgram take(std::size_t index) override;

  // The name of a library's only program. Prepares and shows as take() does.
  std::string name_of_first();
  // Absolute paths of all files from which the taken programs were read, imports and headers too.
  const std::set<std::string>& files() const { return files_; }

 private:
  struct Program {
    ProgramOptions options;
    std::string diagnostics;
    std::exception_ptr failure;
    bool is_prepared = false;
    codegen::LibraryProgram made;
    std::vector<std::string> files;
  };
  static void make(Program& program);
  // Returns the program's name. Throws as take() does.
  const std::string& show(Program& program);

  std::vector<Program> programs_;
  std::function<void()> before_printing_;
  std::map<std::string, std::string> taken_;  // by name: the program with that name
  std::set<std::string> files_;
};

// NAME.json: the inputs and outputs of the library's compressors. Formulas are in elements `n`,
// rows and columns, parameters and counts; they are added to the programs' pools.
nlohmann::json library_report(const codegen::LibraryRequest& request, codegen::Library& library);

}  // namespace cinch::driver
