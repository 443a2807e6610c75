// A program under test: its text, and directives in its comments.
//   // KERNELS: encode=2 decode=1    sweeps over memory that the compiled entries launch
//   // SHAPES: 3x5 64x64             shapes of a matrix gradient (else a list of the harness)
//   // WORLD: 4                      ranks; the session is worker 1
//   // SET: ratio=0.1                values of parameters
// The tested compressor has the file's name.
#pragma once
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cinch::testing {

struct ProgramFile {
  std::string path, name, text;
  std::map<std::string, int> kernels;  // by entry name
  std::vector<std::pair<std::int64_t, std::int64_t>> shapes;
  std::uint32_t world = 1;
  std::vector<std::pair<std::string, double>> bindings;
  bool is_carrier = false;  // what carries the program's sums is meant
};

/// Reads a file and its directives. Nothing if it cannot be read or a directive is invalid.
std::optional<ProgramFile> read_program(const std::filesystem::path& path);

/// Makes a program from text without a file.
std::optional<ProgramFile> make_program(std::string name, std::string text);

/// A file that defines a wrapper and no compressor to run.
bool is_wrapper(const ProgramFile& program);

/// A file whose compressor has a `sync` body: it runs over ranks.
bool is_protocol(const ProgramFile& program);

/// error_feedback around every compressor of the standard library without states and momentum
/// around some, as programs of their own.
std::vector<ProgramFile> library_compositions();

/// Programs of a folder that can be read and are neither wrappers nor protocols.
std::vector<ProgramFile> compressors_of(const std::filesystem::path& folder);
std::vector<ProgramFile> protocols_of(const std::filesystem::path& folder);

/// All of them; in a sample run the first, the fourth and so on.
std::vector<ProgramFile> sample_of(std::vector<ProgramFile> programs);
/// Every n-th of them, in a long run all, in a sample run a sample_of these. For tests that take
/// seconds a program and whose subject another test meets in every program.
std::vector<ProgramFile> everyday_part_of(std::vector<ProgramFile> programs, std::size_t n);

/// Programs for tests of CUDA text: the standard library including protocols, and each wrapper
/// around one of its compressors; in a long run also all library_compositions and the programs of
/// tests/programs; in a sample run a sample_of these.
std::vector<ProgramFile> programs_for_cuda(bool is_long);

/// All `.cinch` files below a folder, by path.
std::vector<std::filesystem::path> find_programs(const std::filesystem::path& folder);

}  // namespace cinch::testing
