/* The compressors of a library that is found at run time:
 *
 *   cc loaded.c $(pkg-config --cflags --libs cinch) -o loaded
 *   ./loaded out/libcompressors.so
 */
#include <cinch_library.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char** argv) {
  cinch_error error;
  memset(&error, 0, sizeof error);
  error.struct_size = sizeof error;
  const cinch_library* library = NULL;
  if (argc != 2) return 2;
  if (cinch_library_load(argv[1], &library, &error) != CINCH_OK) {
    printf("%s\n", error.message);
    return 1;
  }
  for (size_t i = 0; i < library->num_compressors; ++i) {
    cinch_program* program = NULL;
    cinch_program_info info;
    memset(&info, 0, sizeof info);
    info.struct_size = sizeof info;
    if (cinch_program_open(library->compressors[i], NULL, &program, &error) != CINCH_OK ||
        cinch_program_get_info(program, &info, &error) != CINCH_OK) {
      printf("%s\n", error.message);
      return 1;
    }
    printf("%s for %s, %zu parameters, %zu states\n", info.name, info.cpu, info.num_parameters,
           info.num_states);
    cinch_program_release(program);
  }
  return 0;
}
