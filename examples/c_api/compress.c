/* Compresses two tensors with a compressor of the standard library and adds the decoded payloads to
 * an average, as a rank of data-parallel training would. C11.
 *
 *   compress [PROGRAM]        for example: compress dgc */
#include <cinch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define NUM_TENSORS 2

static int complain(const cinch_error* error) {
  fprintf(stderr, "error %d: %s\n", (int)error->status, error->message);
  return 1;
}

static cinch_tensor describe(float* data, const int64_t* shape, int32_t num_dims) {
  cinch_tensor tensor = {.struct_size = sizeof tensor};
  tensor.data = data;
  tensor.dtype = CINCH_F32;
  tensor.device = CINCH_CPU;
  tensor.num_dims = num_dims;
  tensor.shape = shape;
  return tensor;
}

int main(int argc, char** argv) {
  cinch_error error = {.struct_size = sizeof error};
  cinch_compile_options options = {.struct_size = sizeof options};
  options.program = argc > 1 ? argv[1] : "topk";
  cinch_program* program = NULL;
  if (cinch_program_compile(&options, &program, &error) != CINCH_OK) return complain(&error);

  /* A weight matrix and a bias, as one call sees them. */
  const int64_t weight_shape[] = {300, 200}, bias_shape[] = {300};
  const size_t num_elems[NUM_TENSORS] = {300 * 200, 300};
  float* gradients[NUM_TENSORS];
  float* sums[NUM_TENSORS];
  for (size_t t = 0; t < NUM_TENSORS; ++t) {
    gradients[t] = malloc(num_elems[t] * sizeof(float));
    sums[t] = calloc(num_elems[t], sizeof(float));
    if (gradients[t] == NULL || sums[t] == NULL) return 1;
    for (size_t i = 0; i < num_elems[t]; ++i) gradients[t][i] = (float)sin((double)(i * i));
  }
  const cinch_tensor inputs[NUM_TENSORS] = {describe(gradients[0], weight_shape, 2),
                                            describe(gradients[1], bias_shape, 1)};
  const cinch_tensor outputs[NUM_TENSORS] = {describe(sums[0], weight_shape, 2),
                                             describe(sums[1], bias_shape, 1)};

  cinch_session* session = NULL;
  if (cinch_session_open(program, NULL, inputs, NUM_TENSORS, &session, &error) != CINCH_OK) {
    return complain(&error);
  }
  for (uint64_t step = 0; step < 3; ++step) {
    /* Capacity 0: the session lends its payloads until its next call; they would be sent now. */
    cinch_payload payloads[NUM_TENSORS] = {{.struct_size = sizeof payloads[0]},
                                           {.struct_size = sizeof payloads[1]}};
    if (cinch_encode(session, step, NULL, NUM_TENSORS, inputs, payloads, &error) != CINCH_OK ||
        cinch_decode_add(session, step, NULL, NUM_TENSORS, payloads, outputs, &error) != CINCH_OK) {
      return complain(&error);
    }
    printf("step %llu: %zu and %zu elements in %zu and %zu bytes\n", (unsigned long long)step,
           num_elems[0], num_elems[1], payloads[0].size, payloads[1].size);
  }

  cinch_session_release(session);
  cinch_program_release(program);
  for (size_t t = 0; t < NUM_TENSORS; ++t) {
    free(gradients[t]);
    free(sums[t]);
  }
  return 0;
}
