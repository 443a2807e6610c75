/* A user of a library that `cinch build` made:
 *
 *   client linked|LIBRARY.so[:NAME]|find:LIBRARY.so COMPRESSOR LEVEL|- GRADIENT.f32 PAYLOAD OUTPUT.f32
 *
 * opens a compressor that is linked, or found in a library at run time, encodes a gradient on one
 * thread, decodes it, and prints how long it took from opening to the first payload. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "compressors.h"

static cinch_error error;

static void check(cinch_status status) {
  if (status == CINCH_OK) return;
  printf("status %d: %s\n", (int)status, error.message);
  exit(1);
}

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static void write_file(const char* path, const void* bytes, size_t size) {
  FILE* file = fopen(path, "wb");
  if (file == NULL || fwrite(bytes, 1, size, file) != size || fclose(file) != 0) exit(2);
}

static float* read_floats(const char* path, int64_t* count) {
  FILE* file = fopen(path, "rb");
  if (file == NULL || fseek(file, 0, SEEK_END) != 0) exit(2);
  const long size = ftell(file);
  float* values = malloc((size_t)size + 1);
  rewind(file);
  if (values == NULL || fread(values, 1, (size_t)size, file) != (size_t)size) exit(2);
  fclose(file);
  *count = (int64_t)((size_t)size / sizeof(float));
  return values;
}

static cinch_program* open_program(const char* where, const char* name, const char* level) {
  const cinch_compressor* compressor = NULL;
  const cinch_library* library = &compressors_library;
  cinch_program* program = NULL;
  cinch_open_options options;
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  if (strcmp(level, "-") != 0) options.cpu = level;
  if (strcmp(where, "linked") != 0 && strncmp(where, "find:", 5) != 0) {
    check(cinch_program_load(where, &program, &error));
    return program;
  }
  if (strcmp(where, "linked") != 0) check(cinch_library_load(where + 5, &library, &error));
  check(cinch_library_find(library, name, &compressor, &error));
  check(cinch_program_open(compressor, &options, &program, &error));
  return program;
}

int main(int argc, char** argv) {
  if (argc != 7) return 2;
  error.struct_size = sizeof error;
  int64_t n = 0;
  float* gradient = read_floats(argv[4], &n);
  const double start = now_ms();
  cinch_program* program = open_program(argv[1], argv[2], argv[3]);
  cinch_tensor tensor;
  memset(&tensor, 0, sizeof tensor);
  tensor.struct_size = sizeof tensor;
  tensor.data = gradient;
  tensor.num_dims = 1;
  tensor.shape = &n;
  cinch_session_options options;
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.threads = 1;
  cinch_session* session = NULL;
  check(cinch_session_open(program, &options, &tensor, 1, &session, &error));
  cinch_payload payload;
  memset(&payload, 0, sizeof payload);
  payload.struct_size = sizeof payload;
  check(cinch_encode(session, 0, NULL, 1, &tensor, &payload, &error));
  printf("first payload after %.2f ms\n", now_ms() - start);
  write_file(argv[5], payload.data, payload.size);
  check(cinch_decode(session, 0, NULL, 1, &payload, &tensor, &error));
  write_file(argv[6], gradient, (size_t)n * sizeof(float));
  cinch_session_release(session);
  cinch_program_release(program);
  free(gradient);
  return 0;
}
