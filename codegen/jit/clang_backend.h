// The C-like door of the library `cinch_clang`, which alone links Clang, LLVM and LLD. It is opened
// with dlopen when source is first compiled or shown; everything that crosses is plain data, and
// no exception does.
#pragma once
#include <cstddef>
#include <cstdint>

extern "C" {

enum CinchClangOutput {
  kCinchSharedObject = 0,
  kCinchAssembly = 1,
  kCinchLlvmIr = 2,
  kCinchObject = 3
};

// CUDA text for the emulated GPU (codegen/emulator), with or without reports of its accesses.
enum CinchClangEmulation {
  kCinchNotEmulated = 0,
  kCinchEmulatedPlain = 1,
  kCinchEmulatedChecked = 2
};

struct CinchClangText {
  const char* text;  // one translation unit without includes
  std::size_t size;
};

struct CinchClangRequest {
  // Compiled at the same time, each on a thread, and linked into one. All outputs but
  // kCinchSharedObject take one source.
  const struct CinchClangText* sources;
  std::size_t num_sources;
  int links_helpers;       // 1: the sources go without the prelude and its helpers
  const char* file_name;   // for messages
  const char* cpu;         // "x86-64", "x86-64-v3", "x86-64-v4", "aarch64"
  int lanes;               // CINCH_LANES
  int output;              // CinchClangOutput
  int address_sanitizer;   // 1: kernels are instrumented; the host must have the ASan run time
  int optimization_level;  // 0 … 3
  int emulation;           // CinchClangEmulation
  // Objects for a library: stands in front of the names of kernels, which become hidden; all else
  // becomes local. Null: as emitted.
  const char* symbol_prefix;
  // Emulated: where in the one source the emitted text lies, between prelude and entries.
  std::size_t emulated_text_begin, emulated_text_size;
};

// Bytes with a name: of a symbol, or of a member of an archive.
struct CinchClangBytes {
  const char* name;
  const std::uint8_t* bytes;
  std::size_t size;
};

// Of all threads together.
struct CinchClangTimes {
  double front_end_ms, optimizer_ms, machine_code_ms, link_ms;
};

enum CinchClangFault {
  kCinchSourceFault = 1,
  kCinchLinkFault = 2,  // no place for the linker's files, most likely
  kCinchNoMemory = 3,
  kCinchBroken = 4  // memory ran out before, in this process
};

// Owned by the backend until `release`.
struct CinchClangReply {
  int ok;
  int fault;                  // CinchClangFault, where it is not ok
  const std::uint8_t* bytes;  // the output, or nothing
  std::size_t size;
  const char* log;  // diagnostics of the compiler and the linker
  struct CinchClangTimes times;
};

// A function of a C++ header that kernels call (`extern fn`), and what it must look like.
struct CinchExternRequest {
  const char* header;  // as an #include between quotes names it
  const char* name;
  const char* const* params;  // of "bool", "i8" … "u64", "f32", "f64"
  std::size_t num_params;
  const char* result;
  const char* const* include_folders;  // searched in this order
  std::size_t num_include_folders;
  const char* compile_commands;  // a compile_commands.json, or empty
};

struct CinchExternFile {
  const char* path;
  const char* text;  // as it was read
  std::size_t size;
};

// A sentence about bytes [begin, end) of a file; about no place where `path` is empty.
struct CinchExternNote {
  const char* text;
  const char* path;
  std::size_t begin, end;
};

// Owned by the backend until `release_extern`.
struct CinchExternReply {
  int outcome;  // rt::ExternOutcome
  const char* message;
  const char* source;  // self-contained text of the function, where it was found and may run
  std::uint64_t work;  // operations of a call, at most
  const struct CinchExternNote* notes;
  std::size_t num_notes;
  const struct CinchExternFile* files;  // everything that was read
  std::size_t num_files;
};

struct CinchClangBackend {
  unsigned abi;  // kCinchClangAbi
  struct CinchClangReply* (*compile)(const struct CinchClangRequest*);
  // C++ text in the style of emitted source. The reply's bytes are the text.
  struct CinchClangReply* (*format)(const char* text, std::size_t size);
  // An object with the bytes as hidden constants of those names, each at a multiple of 16.
  struct CinchClangReply* (*make_data)(const char* cpu, const struct CinchClangBytes* data,
                                       std::size_t num_data);
  // A shared library of objects that need nothing else; only `exports` can be seen from outside.
  struct CinchClangReply* (*link_library)(const struct CinchClangBytes* objects,
                                          std::size_t num_objects, const char* soname,
                                          const char* const* exports, std::size_t num_exports);
  // A static library with an index of its symbols.
  struct CinchClangReply* (*make_archive)(const struct CinchClangBytes* members,
                                          std::size_t num_members);
  void (*release)(struct CinchClangReply*);
  struct CinchExternReply* (*read_extern)(const struct CinchExternRequest*);
  void (*release_extern)(struct CinchExternReply*);
  // Headers are kept between calls of read_extern, as programs call several functions of one. They
  // may go.
  void (*forget_headers)();
  const char* version;  // "clang 19.1.7"
  // codegen::cpu_helpers_digest() of the prelude and the helpers within; empty if none can serve.
  const char* helpers_digest;
};

// The one exported symbol.
const struct CinchClangBackend* cinch_clang_backend();
}

inline constexpr unsigned kCinchClangAbi = 6;
