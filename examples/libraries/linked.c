/* A compressor that is linked:
 *
 *   cinch build dgc --name compressors --output out
 *   cc linked.c -Iout -Lout -lcompressors $(pkg-config --cflags --libs cinch) -o linked
 */
#include <stdio.h>
#include <string.h>

#include "compressors.h"

enum { kElements = 4096 };

static int fails(cinch_status status, const cinch_error* error) {
  if (status != CINCH_OK) printf("%s\n", error->message);
  return status != CINCH_OK;
}

int main(void) {
  static float gradient[kElements];
  for (int i = 0; i < kElements; ++i) gradient[i] = (float)((i * 7919) % 1000 - 500);
  cinch_error error;
  memset(&error, 0, sizeof error);
  error.struct_size = sizeof error;
  cinch_program* program = NULL;
  if (fails(cinch_program_open(&compressors_dgc, NULL, &program, &error), &error)) return 1;

  const int64_t size = kElements;
  cinch_tensor tensor;
  memset(&tensor, 0, sizeof tensor);
  tensor.struct_size = sizeof tensor;
  tensor.data = gradient;
  tensor.num_dims = 1;
  tensor.shape = &size;
  cinch_session* session = NULL;
  if (fails(cinch_session_open(program, NULL, &tensor, 1, &session, &error), &error)) return 1;
  cinch_payload payload;
  memset(&payload, 0, sizeof payload);
  payload.struct_size = sizeof payload; /* lent by the session until its next call */
  if (fails(cinch_encode(session, 0, NULL, 1, &tensor, &payload, &error), &error)) return 1;
  printf("%zu bytes instead of %zu\n", payload.size, sizeof gradient);
  cinch_session_release(session);
  cinch_program_release(program);
  return 0;
}
