/* Compressors that were compiled ahead of time: what `cinch build` puts into a library, and how to
 * open a program from it. C11 and C++20. Such a library consists of code and tables that libcinch
 * runs; it calls no function of Cinch.
 *
 * A library NAME has one constant per compressor, NAME_COMPRESSOR (`compressors_dgc`), and one for
 * all of them, NAME_library; its own header NAME.h declares them. */
#ifndef CINCH_LIBRARY_H
#define CINCH_LIBRARY_H

#include "cinch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* This is C: typedefs and names with a prefix.
 * NOLINTBEGIN(modernize-*,readability-identifier-naming,performance-enum-size) */

/* Version of the tables below, of the calling convention of kernels, and of the images in a
 * library. */
#define CINCH_LIBRARY_VERSION 1

typedef void (*cinch_kernel)(const void* arguments, uint64_t first_group, uint64_t end_group);

typedef struct cinch_cpu_code {
  const char* level; /* "x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4" */
  const cinch_kernel* kernels;
  size_t num_kernels;
} cinch_cpu_code;

typedef struct cinch_gpu_code {
  const char* arch; /* "sm_80" */
  /* not 0: PTX, for that architecture and newer ones; 0: machine code, for it and later minors */
  int32_t is_ptx;
  const unsigned char* image;
  size_t image_size; /* bytes */
} cinch_gpu_code;

/* A compressor of a library. Only `cinch build` makes these. */
typedef struct cinch_compressor {
  /* CINCH_LIBRARY_VERSION of the maker; the first field in all versions */
  uint32_t library_version;
  uint32_t struct_size;
  const char* name;
  const unsigned char* image; /* the image for CPUs, without code */
  size_t image_size;          /* bytes */
  const cinch_cpu_code* cpu;  /* from the lowest level to the highest */
  size_t num_cpu;
  const cinch_gpu_code* gpu;
  size_t num_gpu;
} cinch_compressor;

typedef struct cinch_library {
  uint32_t library_version; /* the first field in all versions */
  uint32_t struct_size;
  const char* name;
  const char* made_by; /* cinch_version() of the maker */
  const cinch_compressor* const* compressors;
  size_t num_compressors;
} cinch_library;

typedef enum cinch_choice CINCH_OF_INT {
  CINCH_CPU_CODE = 0,
  CINCH_GPU_CODE = 1,
  /* Code for GPU `device_number` if that GPU exists and the library has code for it, else for a
   * CPU. */
  CINCH_ANY_CODE = 2
} cinch_choice;

typedef struct cinch_open_options {
  size_t struct_size;
  cinch_choice choice;
  int32_t device_number; /* the GPU's number */
  const char* cpu;       /* a level; NULL: the highest that this machine runs and the library has */
  /* with CINCH_GPU_CODE: picks code for this architecture; no GPU need be present */
  const char* arch;
} cinch_open_options;

/* Opens the program of a compressor that is linked, or found in a library. It equals the program
 * that cinch_program_compile makes, and produces the same payloads. `options` may be NULL: CPU
 * code. Errors: VERSION_MISMATCH (made for another CINCH_LIBRARY_VERSION), UNAVAILABLE (no code
 * for this machine, no such GPU), CORRUPT_FILE. */
CINCH_API cinch_status cinch_program_open(const cinch_compressor* compressor,
                                          const cinch_open_options* options,
                                          cinch_program** program, cinch_error* error);

/* Opens, at run time, a shared library that `cinch build` made. It stays in the process. Errors:
 * IO (no such file), CORRUPT_FILE (not a library, truncated, or not made by Cinch),
 * VERSION_MISMATCH. */
CINCH_API cinch_status cinch_library_load(const char* path, const cinch_library** library,
                                          cinch_error* error);
/* Finds a compressor by name. Errors: INVALID_ARGUMENT (no compressor has that name: the message
 * lists them), VERSION_MISMATCH. */
CINCH_API cinch_status cinch_library_find(const cinch_library* library, const char* name,
                                          const cinch_compressor** compressor, cinch_error* error);

/* NOLINTEND(modernize-*,readability-identifier-naming,performance-enum-size) */

#ifdef __cplusplus
}
#endif

#endif
