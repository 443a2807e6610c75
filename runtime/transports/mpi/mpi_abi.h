/* The interface between the transport and the MPI library: a module of its own, opened when MPI is
 * first used. Nothing else links MPI or sees its header. Plain C; both sides check `version`. One
 * thread at a time makes the calls. Functions that return int32_t return 0, an error code of MPI,
 * or one of the negative numbers below. */
#ifndef CINCH_MPI_ABI_H
#define CINCH_MPI_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* This is C: typedefs, enums of its own kind, and names with a prefix.
 * NOLINTBEGIN(modernize-*,readability-identifier-naming,performance-enum-size,cppcoreguidelines-*)
 */

#define CINCH_MPI_ABI_VERSION 3
#define CINCH_MPI_LIBRARY "libcinch_mpi.so"
#define CINCH_MPI_ENTRY "cinch_mpi_calls_of"

#define CINCH_MPI_LATE (-1)      /* the other ranks did not arrive in time */
#define CINCH_MPI_TOO_LONG (-2)  /* more bytes arrived than there was room for */
#define CINCH_MPI_FINALIZED (-3) /* the process has finalised MPI */
#define CINCH_MPI_NO_START (-4)  /* MPI_Init waited this long for the other ranks */
#define CINCH_MPI_NO_END (-5)    /* the other ranks did not reach MPI_Finalize */

enum { CINCH_MPI_DATA, CINCH_MPI_NOTICES }; /* channels */
enum { CINCH_MPI_SUM, CINCH_MPI_MIN, CINCH_MPI_MAX };
enum {
  CINCH_MPI_I8,
  CINCH_MPI_U8,
  CINCH_MPI_I16,
  CINCH_MPI_U16,
  CINCH_MPI_I32,
  CINCH_MPI_U32,
  CINCH_MPI_I64,
  CINCH_MPI_U64,
  CINCH_MPI_F32,
  CINCH_MPI_F64
};

/* Two duplicates of MPI_COMM_WORLD, and the operations under way on them. */
typedef struct cinch_mpi_world cinch_mpi_world;

/* A completed operation. */
typedef struct cinch_mpi_end {
  uint64_t token; /* of the call that started it */
  uint64_t bytes; /* number of received bytes */
  int32_t error;
} cinch_mpi_end;

/* Memory of operations must stay as it is until they end, also after `close`. */
typedef struct cinch_mpi_calls {
  /* Opens MPI; all ranks call it. Initialises MPI if nobody has, on a thread that is abandoned if
   * that takes longer than `timeout_ms`. The process's exit then finalises MPI, and waits as long
   * for the others. */
  int32_t (*open)(int32_t timeout_ms, cinch_mpi_world** world, int32_t* rank, int32_t* size);
  /* Closes the world, which is then invalid. Cancels receives on the data channel and leaves the
   * rest. `is_faulted`: the process's exit does not wait for the other ranks. */
  void (*close)(cinch_mpi_world* world, int32_t is_faulted);
  /* Finalises MPI if it was initialised here, so that the process's exit need not; once. All ranks
   * call it when no operation is under way. */
  int32_t (*leave)(int32_t timeout_ms);
  void (*error_text)(int32_t error, char* text, size_t room);
  /* Call it after a world is open. Not 0: the library says that it takes memory of CUDA devices. */
  int32_t (*takes_cuda_memory)(void);

  /* Messages on the notice channel end when their receiver has taken them. */
  int32_t (*send)(cinch_mpi_world* world, int32_t channel, const void* bytes, int32_t size,
                  int32_t to, int32_t tag, uint64_t token);
  int32_t (*receive)(cinch_mpi_world* world, int32_t channel, void* bytes, int32_t size,
                     int32_t from, int32_t tag, uint64_t token);
  /* `input` and `output` must differ: otherwise MPI would choose a slower algorithm. */
  int32_t (*all_reduce)(cinch_mpi_world* world, const void* input, void* output, int32_t count,
                        int32_t type, int32_t operation, uint64_t token);
  int32_t (*broadcast)(cinch_mpi_world* world, void* bytes, int32_t size, int32_t root,
                       uint64_t token);
  /* Advances all operations. Returns those that ended, valid until the next call. */
  int32_t (*progress)(cinch_mpi_world* world, const cinch_mpi_end** ends, size_t* num_ends);
} cinch_mpi_calls;

/* Null if the module has another version. */
typedef const cinch_mpi_calls* (*cinch_mpi_calls_of_fn)(uint32_t version);

/* NOLINTEND(modernize-*,readability-identifier-naming,performance-enum-size,cppcoreguidelines-*) */

#ifdef __cplusplus
}
#endif

#endif
