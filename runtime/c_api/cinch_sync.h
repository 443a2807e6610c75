/* The C API of Cinch, for ranks: gradients of all ranks become the averaged update on every rank,
 * by a plan, over a transport. What cinch.h says of ownership, errors, threads and versions holds
 * here, too.
 *
 *   cinch_transport_of_mpi(NULL, &transport, &error);
 *   cinch_sync_open(transport, programs, 1, tensors, 2, &options, &sync, &error);
 *   cinch_sync_step(sync, step, gradients, updates, 2, &error);      on all ranks
 *
 * A transport, and what synchronises over it, take one call at a time: one made while another one
 * runs is CINCH_INVALID_ARGUMENT and changes nothing. cinch_sync_stop and cinch_sync_is_stopping
 * may be called at any time from anywhere. */
#ifndef CINCH_SYNC_H
#define CINCH_SYNC_H

#include "cinch.h"
#include "cinch_transport.h"

#ifdef __cplusplus
extern "C" {
#endif

/* This is C: typedefs, enums of its own kind, and names with a prefix.
 * NOLINTBEGIN(modernize-*,readability-identifier-naming,performance-enum-size) */

/* ---- transports ---------------------------------------------------------------------------- */

/* How one rank moves bytes to and from the others. Whoever releases one gives up: ranks that wait
 * for it get an error. NULL may be released. */
typedef struct cinch_transport cinch_transport;

/* Over collectives that the caller lends; what the calls' context points to outlives the transport
 * and all that synchronises over it. Errors: INVALID_ARGUMENT. */
CINCH_API cinch_status cinch_transport_of_calls(const cinch_transport_calls* calls,
                                                cinch_transport** transport, cinch_error* error);

/* Does MPI take messages of ranks on GPUs from and to their memory? */
typedef enum cinch_cuda_aware CINCH_OF_INT {
  CINCH_CUDA_AWARE_AUTO = 0, /* where the library says so */
  CINCH_CUDA_AWARE_YES = 1,  /* one that cannot ends the process */
  CINCH_CUDA_AWARE_NO = 2    /* they go through the host's */
} cinch_cuda_aware;

typedef struct cinch_mpi_options {
  size_t struct_size;
  int32_t is_exact;    /* floats are added in rank order, not in MPI's own */
  uint32_t timeout_ms; /* so long may the others take to come, and to leave at exit; 0: 30000 */
  cinch_cuda_aware cuda_aware;
} cinch_mpi_options;
/* Ranks that mpirun has started; all call it, as often as the others. `options` may be NULL.
 * Errors: UNAVAILABLE (no MPI), TIMED_OUT (ranks that have not come), DEVICE, INVALID_ARGUMENT. */
CINCH_API cinch_status cinch_transport_of_mpi(const cinch_mpi_options* options,
                                              cinch_transport** transport, cinch_error* error);

typedef struct cinch_ucx_options {
  size_t struct_size;
  uint32_t rank, world; /* at most 1024 ranks */
  /* Where ranks meet: "HOST:PORT", at which rank 0 listens until all have come, or a store that the
   * caller lends. One of both; the other is NULL. */
  const char* rendezvous;
  const cinch_store_calls* store;
  /* The same on all ranks. They prove to each other that they have it, and do not send it. NULL:
   * whoever reaches the rendezvous may take a rank's place. */
  const void* secret;
  size_t secret_bytes;
  const char* interface_name; /* "eth0": sockets and UCX use that one; NULL: any */
  uint32_t timeout_ms;        /* so long may the others take to come; 0: 30000 */
  /* As UCX_TLS: "tcp", "posix"; NULL: shared memory where all ranks are on one machine, else what
   * UCX chooses. */
  const char* transports;
} cinch_ucx_options;
/* Ranks that are processes, without MPI: over UCX, which is opened at run time. All call it. When
 * it returns all ranks are connected. What an error of one rank is, all ranks get. Errors:
 * INVALID_ARGUMENT (no such rank or interface, too many ranks, secrets that differ), UNAVAILABLE
 * (no UCX), IO (the port is in use), TIMED_OUT (ranks that have not come, by number), CANCELLED (a
 * rank has gone), VERSION_MISMATCH, DEVICE (UCX's, or the store's). */
CINCH_API cinch_status cinch_transport_of_ucx(const cinch_ucx_options* options,
                                              cinch_transport** transport, cinch_error* error);

/* Ranks that are threads of this process. */
typedef struct cinch_loopback cinch_loopback;
CINCH_API cinch_status cinch_loopback_open(uint32_t world, cinch_loopback** loopback,
                                           cinch_error* error);
/* Transports keep what they need of it. NULL is allowed. */
CINCH_API void cinch_loopback_release(cinch_loopback* loopback);
/* Once for each rank. Errors: INVALID_ARGUMENT (no such rank). */
CINCH_API cinch_status cinch_transport_of_loopback(cinch_loopback* loopback, uint32_t rank,
                                                   cinch_transport** transport, cinch_error* error);

/* An ncclUniqueId, to the byte. */
#define CINCH_NCCL_ID_BYTES 128

typedef struct cinch_nccl_options {
  size_t struct_size;
  int32_t device_number; /* the rank's GPU */
  int32_t is_exact;      /* floats are added in rank order, on the host, not in NCCL's own */
  uint32_t timeout_ms;   /* so long may the others take to come; 0: 30000 */
  const char* library;   /* NCCL's file; NULL: the one that CINCH_NCCL names, or libnccl.so.2 */
} cinch_nccl_options;

/* Writes CINCH_NCCL_ID_BYTES to `id`: for one rank, which brings them to the others. Errors:
 * UNAVAILABLE (no NCCL), DEVICE. */
CINCH_API cinch_status cinch_nccl_make_id(const char* library, void* id, cinch_error* error);
/* Ranks on GPUs, by NCCL 2.7 or newer, which is opened at run time; all call it with the same id.
 * `options` may be NULL. Others than this rank learn that it gave up by their time-outs. Errors:
 * INVALID_ARGUMENT (no such rank), UNAVAILABLE (no NCCL, no such GPU), TIMED_OUT (ranks that have
 * not come), DEVICE. */
CINCH_API cinch_status cinch_transport_of_nccl(const void* id, uint32_t rank, uint32_t world,
                                               const cinch_nccl_options* options,
                                               cinch_transport** transport, cinch_error* error);
/* The same over an ncclComm_t of the same library; all of its ranks call it. It stays the caller's,
 * who uses it for nothing else and keeps it until the transport, and what synchronises over it,
 * have been released; after an error he aborts it. Errors: also INVALID_ARGUMENT (NULL, one of
 * another GPU than `device_number`). */
CINCH_API cinch_status cinch_transport_of_nccl_comm(void* communicator,
                                                    const cinch_nccl_options* options,
                                                    cinch_transport** transport,
                                                    cinch_error* error);

/* What synchronises over it keeps what it needs of it. */
CINCH_API void cinch_transport_release(cinch_transport* transport);
CINCH_API uint32_t cinch_transport_rank(const cinch_transport* transport);
CINCH_API uint32_t cinch_transport_world(const cinch_transport* transport);
/* Bytes that this rank has put on the wire so far; while a call runs on another thread, as many as
 * were told last. */
CINCH_API uint64_t cinch_transport_sent_bytes(const cinch_transport* transport);

/* ---- synchronising ------------------------------------------------------------------------- */

#define CINCH_EXACT (-1)
#define CINCH_OFF (-2)

/* Which tensor is compressed by which program: rules, of which the first that fits a tensor decides
 * (docs/sync_reference.md, Policies). */
typedef struct cinch_policy_tensor {
  size_t struct_size;
  const char* name;
  const int64_t* shape;
  int32_t num_dims;
} cinch_policy_tensor;

/* What rules say of one tensor. */
typedef struct cinch_policy_choice {
  size_t struct_size;
  int32_t program; /* place in the policy's programs, CINCH_EXACT, or CINCH_OFF: not sent at all */
  int32_t priority;
} cinch_policy_choice;

/* A program as rules name it: what cinch_compile_options takes. */
typedef struct cinch_policy_program {
  size_t struct_size;
  const char* program; /* "" where a rule names none: the caller's */
  const char* const* bindings;
  size_t num_bindings;
} cinch_policy_program;

typedef struct cinch_policy cinch_policy;
/* `rules`: JSON; NULL: tensors of one dimension or under 4096 elements exact, all others
 * compressed. Errors: CORRUPT_FILE (names rule and entry), INVALID_ARGUMENT. */
CINCH_API cinch_status cinch_policy_apply(const char* rules, const cinch_policy_tensor* tensors,
                                          size_t num_tensors, cinch_policy** policy,
                                          cinch_error* error);
CINCH_API void cinch_policy_release(cinch_policy* policy);
CINCH_API size_t cinch_policy_num_programs(const cinch_policy* policy);
/* Texts live as long as the policy. Errors: OUT_OF_RANGE. */
CINCH_API cinch_status cinch_policy_get_program(const cinch_policy* policy, size_t index,
                                                cinch_policy_program* program, cinch_error* error);
CINCH_API cinch_status cinch_policy_get_choice(const cinch_policy* policy, size_t tensor,
                                               cinch_policy_choice* choice, cinch_error* error);

/* A tensor that is averaged; the same list on all ranks. */
typedef struct cinch_sync_tensor {
  size_t struct_size;
  const char* name; /* states are kept under it: no other tensor has it */
  int64_t rows, columns;
  int32_t program;  /* place in the programs, or CINCH_EXACT: sent as f32 */
  int32_t priority; /* higher ones go first; those of different ones share no message */
  /* Of plan "reduce_scatter": where the elements end that are the part of each rank, behind those
   * of the ranks before it; as many as there are ranks, the last one all elements. NULL: equal
   * parts. */
  const int64_t* part_ends;
} cinch_sync_tensor;

typedef enum cinch_lengths CINCH_OF_INT {
  CINCH_LENGTHS_AUTO = 0,
  CINCH_LENGTHS_PADDED = 1,   /* payloads travel as long as they may be */
  CINCH_LENGTHS_EXCHANGED = 2 /* their lengths first, in an exchange that is waited for */
} cinch_lengths;

typedef struct cinch_sync_options {
  size_t struct_size;
  /* "allreduce", "allgather", "two_shot", "ring", "ps", "tree", "hierarchical" (a program whose
   * finish is not linear takes no "ring" and no "tree": INVALID_ARGUMENT), "reduce_scatter": each
   * rank gets the update of its part alone, in a tensor of that size, or "auto": what is
   * fastest on these ranks, which takes some seconds to measure and to try
   * (docs/sync_reference.md); NULL: two_shot. */
  const char* plan;
  uint64_t
      piece_bytes; /* of the gradient, encoded and sent at a time; 0: 4 MiB, or auto's choice */
  cinch_lengths lengths;
  uint32_t ranks_per_machine; /* of hierarchical; 0 counts as 1 */
  const uint32_t* servers;    /* of ps; NULL: rank 0 */
  size_t num_servers;
  uint64_t first_step; /* payloads are given room as of this step */
  uint64_t seed;
  uint32_t threads;    /* of this rank; 0: all of the machine */
  uint32_t timeout_ms; /* so long nothing may move before a call fails; 0: 30000 */
  /* Of auto: gradients to measure with, one for each tensor, in the order of the tensors; NULL:
   * numbers as if drawn from a normal distribution. In memory of the CPU; read while the call
   * lasts. */
  const cinch_tensor* samples;

  /* Where this rank computes: with CINCH_CUDA on GPU `device_number`, by programs for it, and
   * tensors are in its memory. Ranks need not be alike in this. */
  cinch_device device;
  int32_t device_number;
  void* stream; /* CUstream: tensors are ready in its order; NULL: they are ready */
  /* Any program for that GPU, where no tensor has one; else NULL. */
  const cinch_program* plain;
} cinch_sync_options;

typedef struct cinch_sync cinch_sync;

/* Makes the plan, opens sessions, and compares with the other ranks: versions, tensors, programs,
 * parameters, plan, seed. All ranks call it. `options` may be NULL. Errors: INVALID_ARGUMENT (also:
 * ranks that differ, on all of them; a program for another device), UNAVAILABLE (no such GPU),
 * CANCELLED (another rank failed), TIMED_OUT (nothing moved for so long), those of
 * cinch_session_open. */
CINCH_API cinch_status cinch_sync_open(cinch_transport* transport,
                                       const cinch_program* const* programs, size_t num_programs,
                                       const cinch_sync_tensor* tensors, size_t num_tensors,
                                       const cinch_sync_options* options, cinch_sync** sync,
                                       cinch_error* error);
CINCH_API void cinch_sync_release(cinch_sync* sync);

/* Binds a run-time parameter. What rank 0 has bound holds on all ranks from the next step on.
 * Errors: INVALID_ARGUMENT (no such program or name), OUT_OF_RANGE (also where
 * payloads may then be longer than the plan has room for, which is made for the values at opening).
 */
CINCH_API cinch_status cinch_sync_set(cinch_sync* sync, size_t program, const char* parameter,
                                      double value, cinch_error* error);

/* One synchronisation; all ranks call it with the same step, gradients and updates in the order of
 * the tensors it was opened for, on the device it was opened for; updates are there when it
 * returns. An update may be its gradient's memory. On success all ranks hold
 * the same bits. On error all ranks have one, states are those of the last step that succeeded, and
 * no more steps are taken. Errors: INVALID_ARGUMENT, CANCELLED, TIMED_OUT, CORRUPT_PAYLOAD,
 * CHECK_FAILED, OUT_OF_MEMORY, DEVICE. */
CINCH_API cinch_status cinch_sync_step(cinch_sync* sync, uint64_t step,
                                       const cinch_tensor* gradients, const cinch_tensor* updates,
                                       size_t count, cinch_error* error);

/* ---- a step in parts ---- */

typedef struct cinch_step_options {
  size_t struct_size;
  /* Gradients are so many times what is synchronised: a loss scale. States hold values that are not
   * scaled, updates are scaled again. 0 counts as 1. */
  double scale;
  int32_t is_sum; /* updates are sums over ranks, not means */
  /* Where a gradient of some rank is not finite all states of all ranks stay as they were. */
  int32_t skips_non_finite;
  /* The report says of each tensor how far its update is from what it stands for, the mean of the
   * gradients (or the sum): |update - mean| / |mean|. That takes an all-reduce of f32 at the step's
   * end, and memory for all gradients. Of tensors in the CPU's memory. */
  int32_t measures_errors;
} cinch_step_options;

typedef struct cinch_step_outcome {
  size_t struct_size;
  int32_t is_skipped; /* as skips_non_finite says; updates are of no use then */
} cinch_step_outcome;

/* A step whose gradients are still being computed. All ranks begin with the same step and options
 * (NULL: as if all were 0), make each tensor ready once, in any order, each rank in its own, and
 * finish. Meanwhile a thread of `sync` exchanges what is ready, in an order that all ranks share:
 * that of the tensors as they were opened, and after the first step that in which rank 0's became
 * ready. Nothing else uses the transport until the step is finished. cinch_sync_step is these
 * calls, with its exchanges on the caller's thread. Errors: INVALID_ARGUMENT (a step is under way,
 * a scale that is not f32 above 0), CANCELLED (an earlier step failed). */
CINCH_API cinch_status cinch_sync_begin(cinch_sync* sync, uint64_t step,
                                        const cinch_step_options* options, cinch_error* error);
/* The gradient of tensor `tensor` of those it was opened for is there, and its update is written by
 * the end of the step, or before: cinch_sync_is_done. Both stay where they are; the structs need
 * not. `is_used`: 0 where the model has not used the tensor and the gradient is zeros. The states
 * of a tensor that no rank has used stay, and its update is zeros. Errors: INVALID_ARGUMENT (no
 * step, no such tensor, ready twice, what cinch_sync_step says of tensors); the step has then
 * failed on all ranks, and finishing says so there. */
CINCH_API cinch_status cinch_sync_ready(cinch_sync* sync, size_t tensor,
                                        const cinch_tensor* gradient, const cinch_tensor* update,
                                        int32_t is_used, cinch_error* error);
/* Has the tensor's update been written in this step? It may still become NaN or zeros when the step
 * is finished. From any thread; waiting for it, too, which also ends, with OK, when the
 * step fails: finishing says so. Exchanges
 * have an order: a tensor's may come behind those of tensors that are not ready yet. Errors:
 * INVALID_ARGUMENT (the tensor is not ready). */
CINCH_API int32_t cinch_sync_is_done(const cinch_sync* sync, size_t tensor);
CINCH_API cinch_status cinch_sync_wait(cinch_sync* sync, size_t tensor, cinch_error* error);
/* Waits for all ranks. `outcome` may be NULL. Errors: those of cinch_sync_step; INVALID_ARGUMENT
 * where a tensor is not ready, which it names, and CANCELLED, with the same text, on the other
 * ranks; where ranks have begun with different options INVALID_ARGUMENT on all. */
CINCH_API cinch_status cinch_sync_finish(cinch_sync* sync, cinch_step_outcome* outcome,
                                         cinch_error* error);

/* Asks all ranks to end after the next step. */
CINCH_API void cinch_sync_stop(cinch_sync* sync);
/* Had some rank asked by the last step? The same on all ranks. */
CINCH_API int32_t cinch_sync_is_stopping(const cinch_sync* sync);

/* The tasks of this rank, a line each: for people. */
CINCH_API const char* cinch_sync_plan(const cinch_sync* sync);
/* Why auto chose its plan, on rank 0; else empty. */
CINCH_API const char* cinch_sync_choice(const cinch_sync* sync);

/* What the last step took on this rank, as JSON: times by phase, bytes by phase and tensor, when
 * tensors became ready, memory; and as a timeline that opens in Perfetto. `size` takes the bytes at
 * `data` and gives those needed; with `data` NULL it only gives. Errors: INVALID_ARGUMENT (too
 * small, a step is under way). */
CINCH_API cinch_status cinch_sync_report(cinch_sync* sync, void* data, size_t* size,
                                         cinch_error* error);
CINCH_API cinch_status cinch_sync_trace(cinch_sync* sync, void* data, size_t* size,
                                        cinch_error* error);

/* This rank's states after the last step, as bytes. `size` takes the bytes at `data` and gives
 * those needed; with `data` NULL it only gives. Errors: INVALID_ARGUMENT (too small). */
CINCH_API cinch_status cinch_sync_states_save(cinch_sync* sync, void* data, size_t* size,
                                              cinch_error* error);

/* What restoring did to this rank's states, by pieces of tensors. */
typedef struct cinch_sync_restored {
  size_t struct_size;
  uint64_t next_step; /* one more than the last before saving */
  size_t num_kept;    /* as saved */
  size_t num_joined;  /* put together from those of other pieces */
  size_t num_reset;   /* as if nothing had been saved */
  const char* notes;  /* what was reset or left over, and why, a line each; as long as `sync` */
} cinch_sync_restored;
/* Takes over what the ranks of an earlier run saved, whatever its plan and number of ranks were.
 * All ranks call it with the same bytes, before the first step. `restored` may be NULL. Errors:
 * INVALID_ARGUMENT, CORRUPT_FILE, VERSION_MISMATCH, CANCELLED, TIMED_OUT; states are then as
 * before. */
CINCH_API cinch_status cinch_sync_states_load(cinch_sync* sync, const void* const* data,
                                              const size_t* sizes, size_t num_ranks,
                                              cinch_sync_restored* restored, cinch_error* error);

/* The same for this rank by itself, from what the same rank of as many saved under the same plan.
 * Errors: INVALID_ARGUMENT (also: of another rank, plan or number of ranks, which
 * cinch_sync_states_load takes over), CORRUPT_FILE, VERSION_MISMATCH; states are then as before. */
CINCH_API cinch_status cinch_sync_states_load_own(cinch_sync* sync, const void* data, size_t size,
                                                  cinch_error* error);
/* The states of one tensor become what they were before the first step. All ranks call it between
 * the same steps. Errors: INVALID_ARGUMENT. */
CINCH_API cinch_status cinch_sync_states_reset(cinch_sync* sync, size_t tensor, cinch_error* error);

/* Where a state belongs: what encodes there. */
typedef enum cinch_site CINCH_OF_INT {
  CINCH_SITE_WORKER = 0, /* a rank's own gradient */
  CINCH_SITE_HOP = 1,    /* a partial sum on its way */
  CINCH_SITE_OWNER = 2,  /* the result */
  CINCH_SITE_RETURN = 3  /* the result once more, for a second network */
} cinch_site;

/* A state of this rank, of some elements of one tensor. */
typedef struct cinch_sync_state {
  size_t struct_size;
  size_t tensor; /* of those it was opened for */
  cinch_site site;
  int64_t first, num_elements; /* of the tensor */
  const char* name;            /* texts live until the next call on `sync` */
  const char* dtype;           /* "f32" */
  size_t size;                 /* bytes */
} cinch_sync_state;
/* Between steps. The list keeps its order as long as `sync` lives. Errors: INVALID_ARGUMENT,
 * OUT_OF_RANGE (no such place). */
CINCH_API cinch_status cinch_sync_states_count(cinch_sync* sync, size_t* count, cinch_error* error);
CINCH_API cinch_status cinch_sync_states_get(cinch_sync* sync, size_t place,
                                             cinch_sync_state* state, void* data, size_t* size,
                                             cinch_error* error);
CINCH_API cinch_status cinch_sync_states_set(cinch_sync* sync, size_t place, const void* data,
                                             size_t size, cinch_error* error);

/* NOLINTEND(modernize-*,readability-identifier-naming,performance-enum-size) */

#ifdef __cplusplus
}
#endif

#endif
