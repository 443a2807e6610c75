// Where programs are: a PROGRAM of the command line to a file and a compressor in it, the folder of
// the standard library, and the files behind an import.
#pragma once
#include <string>
#include <vector>

#include "dsl/sema/sema.h"

namespace cinch::driver {

struct ProgramPlace {
  std::string path;
  std::string compressor;  // empty: the file's only one, or the one of the file's name
};

// `program` is a path, path:name, or a name of the standard library. Throws CommandError (AtFault)
// with what is nearly right where there is no such program.
ProgramPlace find_program(const std::string& program);

// CINCH_STDLIB, else the folder installed with this executable, else that of the tree it was built
// in. "" if none.
std::string stdlib_folder();

struct StdlibFile {
  std::string family, path;
};
// All programs of the standard library, by family and name.
std::vector<StdlibFile> stdlib_files();

// Imports: std.family, std.family.name and std.name from the standard library, paths relative to
// the importing file.
std::vector<sema::LoadedText> load_import(const sema::ImportRequest& request);

}  // namespace cinch::driver
