/* The interface between the runtime library and the compiler library, which the runtime opens
 * when a program is first compiled. It is plain C: the two share no C++ types and may come from
 * different builds. Both sides check `version`. */
#ifndef CINCH_COMPILER_ABI_H
#define CINCH_COMPILER_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* This is C: typedefs, enums of its own kind, and names with a prefix.
 * NOLINTBEGIN(modernize-*,readability-identifier-naming,performance-enum-size) */

#define CINCH_COMPILER_ABI_VERSION 9
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
  /* The compiler calls one of these, at most once: with an image's bytes, or with a status of
   * cinch.h and its message. */
  void* context;
  void (*give_image)(void* context, const void* bytes, size_t size);
  void (*give_error)(void* context, int32_t status, const char* message, size_t size);
  const char* arch;                   /* of a GPU: "sm_90" */
  const char* const* include_folders; /* as cinch_compile_options */
  size_t num_include_folders;
  const char* compile_commands; /* NULL: none */
  /* Not 0: the compiler compiles nothing; give_image gets the list of the standard library, as
   * JSON. */
  int32_t lists_programs;
  /* Called before give_image if the image's code was compiled quickly and better code is on its
   * way: with bytes that name that code. NULL: the caller keeps the code that it gets, so code for
   * CPUs is fully optimised. */
  void (*give_better)(void* context, const void* name, size_t size);
  /* Not NULL: the compiler compiles nothing. give_image gets the code of this name if it has been
   * made; else neither function is called. */
  const void* better;
  size_t better_size;
  int32_t is_ahead_of_time; /* not 0: nobody waits, so the code is fully optimised */
  int32_t is_carrier;       /* not 0: compiles the program that carries sums of this one */
  /* Called before give_image if the compiler warns of the program: with text for people. */
  void (*give_warnings)(void* context, const char* text, size_t size);
  const char* confine; /* as cinch_compile_options */
} cinch_compiler_request;

/* Returns 0, or another number if `version` is not the library's. */
typedef int32_t (*cinch_compiler_compile_fn)(const cinch_compiler_request* request);

/* NOLINTEND(modernize-*,readability-identifier-naming,performance-enum-size) */

#ifdef __cplusplus
}
#endif

#endif
