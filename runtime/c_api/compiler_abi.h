/* What the runtime library asks of the compiler library, which it opens when a program is first
 * compiled. Plain C, so that the two share no C++ types and may be of different builds; both sides
 * check `version`. */
#ifndef CINCH_COMPILER_ABI_H
#define CINCH_COMPILER_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* This is C: typedefs, enums of its own kind, and names with a prefix.
 * NOLINTBEGIN(modernize-*,readability-identifier-naming,performance-enum-size) */

#define CINCH_COMPILER_ABI_VERSION 5
#define CINCH_COMPILER_LIBRARY "libcinch_compiler.so"
#define CINCH_COMPILER_ENTRY "cinch_compiler_compile"

typedef struct cinch_compiler_request {
  uint32_t version;
  const char* program; /* as cinch_compile_options */
  const char* text;
  size_t text_size;
  const char* const* bindings;
  size_t num_bindings;
  const char* cpu; /* a level that this machine runs; NULL: `arch` */
  int32_t states;  /* of cinch_states */
  /* Called at most once, with an image's bytes, or with a status of cinch.h and its message. */
  void* context;
  void (*give_image)(void* context, const void* bytes, size_t size);
  void (*give_error)(void* context, int32_t status, const char* message, size_t size);
  const char* arch;                   /* of a GPU: "sm_90" */
  const char* const* include_folders; /* as cinch_compile_options */
  size_t num_include_folders;
  const char* compile_commands; /* NULL: none */
  /* Not 0: nothing is compiled; give_image gets the list of the standard library, as JSON. */
  int32_t lists_programs;
} cinch_compiler_request;

/* 0: one of the two functions was called; else the version is not the library's. */
typedef int32_t (*cinch_compiler_compile_fn)(const cinch_compiler_request* request);

/* NOLINTEND(modernize-*,readability-identifier-naming,performance-enum-size) */

#ifdef __cplusplus
}
#endif

#endif
