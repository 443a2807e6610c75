// Questions about a C++ function that kernels call (`extern fn`), and the answers. Plain data: the
// checker asks, and code with a C++ compiler answers.
#pragma once
#include <functional>
#include <vector>

#include "runtime/core/numbers/dtype.h"

namespace cinch::rt {

/// Can values of the type be passed to and from C++? bool, f32, f64, and integers of 8, 16, 32 or
/// 64 bits can.
constexpr bool is_cpp_type(DType type) {
  const bool is_whole = type.bits == 8 || type.bits == 16 || type.bits == 32 || type.bits == 64;
  return is_bool(type) || type == kF32 || type == kF64 || (is_int(type) && is_whole);
}

/// Folders to search for headers, after the folder of the program's file.
struct HeaderSearch {
  std::vector<std::string> include_folders;
  std::string compile_commands;  // a compile_commands.json; empty: none
  // Imports and headers lie below this folder, or in folders that are searched; empty: anywhere.
  std::string confine;
};

struct ExternRequest {
  std::string header;  // as the program writes it
  std::string from;    // name of the program's file
  std::string name;
  std::vector<DType> params;  // is_cpp_type, like the result
  DType result;
};

enum class ExternOutcome : std::uint8_t {
  Found,
  HeaderBroken,  // not found, does not compile, or changed while it was read
  NotFound,      // the header has no function with that name
  Ambiguous,     // several namespaces have one
  Mismatch,      // other argument or result types
  Refused,       // does something that kernels must not do
  NoMemory,
};

/// A sentence about bytes [begin, end) of a file; `path` is empty if it has no place.
struct ExternNote {
  std::string text, path;
  std::size_t begin = 0, end = 0;
};

struct ExternFile {
  std::string path, text;
};

struct ExternReply {
  ExternOutcome outcome = ExternOutcome::HeaderBroken;
  std::string message;     // the fault, as the end of a sentence
  std::string source;      // Found: text that defines `call`, over the language's own functions
  std::uint64_t work = 0;  // Found: the most operations of a call
  std::vector<ExternNote> notes;
  std::vector<ExternFile> files;  // all files that were read
};

using ExternReader = std::function<ExternReply(const ExternRequest&)>;

}  // namespace cinch::rt
