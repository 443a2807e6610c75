// What is asked about a C++ function that kernels call (`extern fn`), and the answer. Plain data:
// the checker asks, whoever has a C++ compiler at hand answers.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runtime/core/numbers/dtype.h"

namespace cinch::rt {

/// What is passed to and from C++: bool, f32, f64, and integers of 8, 16, 32 or 64 bits.
constexpr bool is_cpp_type(DType type) {
  const bool is_whole = type.bits == 8 || type.bits == 16 || type.bits == 32 || type.bits == 64;
  return is_bool(type) || type == kF32 || type == kF64 || (is_int(type) && is_whole);
}

/// Where headers are searched, behind the folder of the program's file.
struct HeaderSearch {
  std::vector<std::string> include_folders;
  std::string compile_commands;  // a compile_commands.json; empty: none
};

struct ExternRequest {
  std::string header;  // as the program names it
  std::string from;    // name of the program's file
  std::string name;
  std::vector<DType> params;  // is_cpp_type, as is the result
  DType result;
};

enum class ExternOutcome : std::uint8_t {
  Found,
  HeaderBroken,  // it was not found, does not compile, or changed while it was read
  NotFound,      // the header has no function of that name
  Ambiguous,     // several namespaces have one
  Mismatch,      // it takes or returns other types
  Refused,       // it does what no kernel may do
  NoMemory,
};

/// A sentence about bytes [begin, end) of a file; `path` is empty where it has no place.
struct ExternNote {
  std::string text, path;
  std::size_t begin = 0, end = 0;
};

struct ExternFile {
  std::string path, text;
};

struct ExternReply {
  ExternOutcome outcome = ExternOutcome::HeaderBroken;
  std::string message;     // what is wrong, as the end of a sentence
  std::string source;      // Found: text that defines `call`, over the language's own functions
  std::uint64_t work = 0;  // Found: operations of a call, at most
  std::vector<ExternNote> notes;
  std::vector<ExternFile> files;  // everything that was read
};

using ExternReader = std::function<ExternReply(const ExternRequest&)>;

}  // namespace cinch::rt
