// The C-like interface of the library `cinch_clang`, which alone links Clang, LLVM and LLD. It is
// opened with dlopen when source is first compiled or shown. Only plain data crosses it, and no
// exceptions.
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
  // Sources, compiled at the same time, each on a thread, and linked into one output. Only
  // kCinchSharedObject takes several.
  const struct CinchClangText* sources;
  std::size_t num_sources;
  int links_helpers;       // 1: the sources lack the prelude and its helpers
  const char* file_name;   // for messages
  const char* cpu;         // "x86-64", "x86-64-v3", "x86-64-v4", "aarch64"
  int lanes;               // CINCH_LANES
  int output;              // CinchClangOutput
  int address_sanitizer;   // 1: kernels are instrumented; the host must have the ASan run time
  int optimization_level;  // 0 … 3
  int is_quick;            // 1: few passes and the quickest code generator, at any level but 0
  int emulation;           // CinchClangEmulation
  // For objects of a library: a prefix of the names of kernels, which become hidden; all else
  // becomes local. Null: names stay as emitted.
  const char* symbol_prefix;
  // Emulated: the emitted text's place in the one source, between prelude and entries.
  std::size_t emulated_text_begin, emulated_text_size;
};

// Named bytes: of a symbol, or of a member of an archive.
struct CinchClangBytes {
  const char* name;
  const std::uint8_t* bytes;
  std::size_t size;
};

// Summed over all threads.
struct CinchClangTimes {
  double front_end_ms, optimizer_ms, machine_code_ms, link_ms;
};

enum CinchClangFault {
  kCinchSourceFault = 1,
  kCinchLinkFault = 2,  // most likely no place for the linker's files
  kCinchNoMemory = 3,
  kCinchBroken = 4  // memory ran out earlier in this process
};

// Owned by the backend until `release`.
struct CinchClangReply {
  int ok;
  int fault;                  // CinchClangFault, if it is not ok
  const std::uint8_t* bytes;  // the output, or nothing
  std::size_t size;
  const char* log;  // diagnostics of the compiler and the linker
  struct CinchClangTimes times;
};

// A function of a C++ header that kernels call (`extern fn`), and its required signature.
struct CinchExternRequest {
  const char* header;  // as in an #include with quotes
  const char* name;
  const char* const* params;  // from "bool", "i8" … "u64", "f32", "f64"
  std::size_t num_params;
  const char* result;
  const char* const* include_folders;  // searched in this order
  std::size_t num_include_folders;
  const char* compile_commands;  // a compile_commands.json, or empty
  const char* confine;           // rt::HeaderSearch::confine
};

struct CinchExternFile {
  const char* path;
  const char* text;  // as it was read
  std::size_t size;
};

// A sentence about bytes [begin, end) of a file; without a place if `path` is empty.
struct CinchExternNote {
  const char* text;
  const char* path;
  std::size_t begin, end;
};

// Owned by the backend until `release_extern`.
struct CinchExternReply {
  int outcome;  // rt::ExternOutcome
  const char* message;
  const char* source;  // self-contained text of the function, if it was found and may run
  std::uint64_t work;  // the most operations of a call
  const struct CinchExternNote* notes;
  std::size_t num_notes;
  const struct CinchExternFile* files;  // all files that were read
  std::size_t num_files;
};

struct CinchClangBackend {
  unsigned abi;  // kCinchClangAbi
  struct CinchClangReply* (*compile)(const struct CinchClangRequest*);
  // Formats C++ text in the style of emitted source. The reply's bytes are the text.
  struct CinchClangReply* (*format)(const char* text, std::size_t size);
  // Makes an object with the bytes as hidden constants of these names, each at a multiple of 16.
  struct CinchClangReply* (*make_data)(const char* cpu, const struct CinchClangBytes* data,
                                       std::size_t num_data);
  // Makes a shared library of objects that need nothing else; only `exports` are visible from
  // outside.
  struct CinchClangReply* (*link_library)(const struct CinchClangBytes* objects,
                                          std::size_t num_objects, const char* soname,
                                          const char* const* exports, std::size_t num_exports);
  // Makes a static library with an index of its symbols.
  struct CinchClangReply* (*make_archive)(const struct CinchClangBytes* members,
                                          std::size_t num_members);
  void (*release)(struct CinchClangReply*);
  struct CinchExternReply* (*read_extern)(const struct CinchExternRequest*);
  void (*release_extern)(struct CinchExternReply*);
  // Frees the headers that read_extern keeps between calls, since programs call several functions
  // of one.
  void (*forget_headers)();
  const char* version;  // "clang 19.1.7"
  // codegen::cpu_helpers_digest() of the built-in prelude and helpers; empty if they cannot be
  // used.
  const char* helpers_digest;
};

// The only exported symbol.
const struct CinchClangBackend* cinch_clang_backend();
}

inline constexpr unsigned kCinchClangAbi = 8;
