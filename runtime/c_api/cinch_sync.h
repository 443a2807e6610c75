/* The C API of Cinch for ranks. It turns the gradients of all ranks into the averaged update on
 * every rank, by a plan, over a transport. What cinch.h says about ownership, errors, threads and
 * versions holds here, too.
 *
 *   cinch_transport_of_mpi(NULL, &transport, &error);
 *   cinch_sync_open(transport, programs, 1, tensors, 2, &options, &sync, &error);
 *   cinch_sync_step(sync, step, gradients, updates, 2, &error);      on all ranks
 *
 * A transport and the sessions over it take one call at a time: a second call made meanwhile
 * returns CINCH_INVALID_ARGUMENT and changes nothing. Any thread may call cinch_sync_stop and
 * cinch_sync_is_stopping at any time. */
#ifndef CINCH_SYNC_H
#define CINCH_SYNC_H

#include "cinch.h"
#include "cinch_transport.h"

#ifdef __cplusplus
extern "C" {
#endif

/* This is C: typedefs, enums of its own kind, and names with a prefix.
 * NOLINTBEGIN(modernize-*,readability-identifier-naming,performance-enum-size) */

/* ---- the log ------------------------------------------------------------------------------- */

/* Takes a line for the program's log: what is no error, but what its user should know. A rank tells
 * whom it waits for when nothing has moved for 30 seconds, or a tenth of its time-out if that is
 * less, and again after 60 seconds, 120 and so on. The text lives during the call. The call comes
 * on the thread that waits, while Cinch holds no lock; it throws nothing. */
typedef void (*cinch_log_fn)(void* context, const char* line);
/* Lines of this process go to `log` from now on; NULL, as at the start: nowhere. A line that
 * another thread tells meanwhile may still go where it went before. */
CINCH_API void cinch_set_log(cinch_log_fn log, void* context);

/* ---- transports ---------------------------------------------------------------------------- */

/* Moves bytes between one rank and the others. A rank that releases its transport gives up:
 * ranks that wait for it get an error. NULL may be released. */
typedef struct cinch_transport cinch_transport;

/* Makes a transport over collectives that the caller provides. What the calls' context points to
 * must outlive the transport and all sessions over it. Errors: INVALID_ARGUMENT. */
CINCH_API cinch_status cinch_transport_of_calls(const cinch_transport_calls* calls,
                                                cinch_transport** transport, cinch_error* error);

/* Can MPI send from and receive into the memory of GPUs? */
typedef enum cinch_cuda_aware CINCH_OF_INT {
  CINCH_CUDA_AWARE_AUTO = 0, /* yes if the library says so */
  CINCH_CUDA_AWARE_YES = 1,  /* yes; an MPI that cannot do it ends the process */
  CINCH_CUDA_AWARE_NO = 2    /* no; messages go through host memory */
} cinch_cuda_aware;

typedef struct cinch_mpi_options {
  size_t struct_size;
  int32_t is_exact;    /* adds floats in rank order, not in MPI's own order */
  uint32_t timeout_ms; /* how long other ranks may take to arrive, and to leave at exit; 0: 30000 */
  cinch_cuda_aware cuda_aware;
} cinch_mpi_options;
/* Makes a transport of the ranks that mpirun started. All ranks call it equally often. `options`
 * may be NULL. Errors: UNAVAILABLE (no MPI), TIMED_OUT (some ranks did not arrive), DEVICE,
 * INVALID_ARGUMENT. */
CINCH_API cinch_status cinch_transport_of_mpi(const cinch_mpi_options* options,
                                              cinch_transport** transport, cinch_error* error);

typedef struct cinch_ucx_options {
  size_t struct_size;
  uint32_t rank, world; /* at most 1024 ranks */
  /* Where ranks meet: "HOST:PORT", where rank 0 listens until all have connected, or a store
   * that the caller provides. Set one of the two; the other is NULL. */
  const char* rendezvous;
  const cinch_store_calls* store;
  /* A secret, the same on all ranks. Ranks prove to each other that they know it, and never send
   * it. NULL: whoever reaches the rendezvous can take a rank's place. */
  const void* secret;
  size_t secret_bytes;
  /* the network interface for sockets and UCX, such as "eth0"; NULL: any */
  const char* interface_name;
  uint32_t timeout_ms; /* how long other ranks may take to arrive; 0: 30000 */
  /* As UCX_TLS: "tcp", "posix". NULL: shared memory if all ranks are on one machine and it is
   * large enough, TCP if it is not (the log says so), else UCX chooses. */
  const char* transports;
} cinch_ucx_options;
/* Makes a transport of ranks that are processes, without MPI: over UCX, which is opened at run
 * time. All ranks call it. When it returns, all ranks are connected. An error of one rank is
 * returned on all ranks. Errors: INVALID_ARGUMENT (no such rank or interface, too many ranks,
 * secrets that differ), UNAVAILABLE (no UCX), IO (the port is in use), TIMED_OUT (some ranks did
 * not arrive; the message has their numbers), CANCELLED (a rank left), VERSION_MISMATCH, DEVICE
 * (an error of UCX or of the store). */
CINCH_API cinch_status cinch_transport_of_ucx(const cinch_ucx_options* options,
                                              cinch_transport** transport, cinch_error* error);

/* Ranks that are threads of this process, at most 1024. Errors: INVALID_ARGUMENT. */
typedef struct cinch_loopback cinch_loopback;
CINCH_API cinch_status cinch_loopback_open(uint32_t world, cinch_loopback** loopback,
                                           cinch_error* error);
/* Releases the handle. Transports keep what they need of it. NULL is allowed. */
CINCH_API void cinch_loopback_release(cinch_loopback* loopback);
/* Makes the transport of one rank; call it once for each rank. Errors: INVALID_ARGUMENT (no such
 * rank). */
CINCH_API cinch_status cinch_transport_of_loopback(cinch_loopback* loopback, uint32_t rank,
                                                   cinch_transport** transport, cinch_error* error);

/* Size of an ncclUniqueId. */
#define CINCH_NCCL_ID_BYTES 128

typedef struct cinch_nccl_options {
  size_t struct_size;
  int32_t device_number; /* the rank's GPU */
  int32_t is_exact;      /* adds floats in rank order, on the host, not in NCCL's own order */
  uint32_t timeout_ms;   /* how long other ranks may take to arrive; 0: 30000 */
  /* path of NCCL's library; NULL: the one that CINCH_NCCL names, or libnccl.so.2 */
  const char* library;
} cinch_nccl_options;

/* Writes CINCH_NCCL_ID_BYTES to `id`. One rank calls this and sends the id to the others.
 * Errors: UNAVAILABLE (no NCCL), DEVICE. */
CINCH_API cinch_status cinch_nccl_make_id(const char* library, void* id, cinch_error* error);
/* Makes a transport of ranks on GPUs over NCCL 2.7 or newer, which is opened at run time. All
 * ranks call it with the same id. `options` may be NULL. If a rank gives up, the others learn of
 * it by their time-outs. Errors: INVALID_ARGUMENT (no such rank), UNAVAILABLE (no NCCL, no such
 * GPU), TIMED_OUT (some ranks did not arrive), DEVICE. */
CINCH_API cinch_status cinch_transport_of_nccl(const void* id, uint32_t rank, uint32_t world,
                                               const cinch_nccl_options* options,
                                               cinch_transport** transport, cinch_error* error);
/* The same over an existing ncclComm_t of the same library; all of its ranks call it. The
 * communicator stays the caller's. The caller uses it for nothing else, and keeps it until the
 * transport and all sessions over it have been released. After an error the caller aborts it.
 * Errors: also INVALID_ARGUMENT (NULL, or the communicator of another GPU than `device_number`). */
CINCH_API cinch_status cinch_transport_of_nccl_comm(void* communicator,
                                                    const cinch_nccl_options* options,
                                                    cinch_transport** transport,
                                                    cinch_error* error);

/* Releases the handle. Sessions over the transport keep what they need of it. */
CINCH_API void cinch_transport_release(cinch_transport* transport);
CINCH_API uint32_t cinch_transport_rank(const cinch_transport* transport);
CINCH_API uint32_t cinch_transport_world(const cinch_transport* transport);
/* Bytes that this rank has sent so far. While a call runs on another thread, this returns the
 * number before that call. */
CINCH_API uint64_t cinch_transport_sent_bytes(const cinch_transport* transport);

/* ---- synchronising ------------------------------------------------------------------------- */

#define CINCH_EXACT (-1)
#define CINCH_OFF (-2)

/* Chooses a program for each tensor by rules. The first rule that matches a tensor decides
 * (docs/sync_reference.md, Policies). */
typedef struct cinch_policy_tensor {
  size_t struct_size;
  const char* name;
  const int64_t* shape;
  int32_t num_dims;
} cinch_policy_tensor;

/* The choice for one tensor. */
typedef struct cinch_policy_choice {
  size_t struct_size;
  int32_t program; /* index in the policy's programs, CINCH_EXACT, or CINCH_OFF: not sent at all */
  int32_t priority;
  /* How the tensor is exchanged, as in cinch_sync_tensor. The text lives as long as the policy. */
  const char* plan; /* NULL: no rule says so */
  uint64_t piece_bytes;
} cinch_policy_choice;

/* A program as rules name it, in the form that cinch_compile_options takes. */
typedef struct cinch_policy_program {
  size_t struct_size;
  const char* program; /* "" if a rule names none: then the caller's program is meant */
  const char* const* bindings;
  size_t num_bindings;
} cinch_policy_program;

typedef struct cinch_policy cinch_policy;
/* Applies `rules` (JSON) to the tensors. With NULL, tensors of one dimension or under 4096
 * elements are sent exactly, and all others are compressed. Errors: CORRUPT_FILE (names rule and
 * entry), INVALID_ARGUMENT. */
CINCH_API cinch_status cinch_policy_apply(const char* rules, const cinch_policy_tensor* tensors,
                                          size_t num_tensors, cinch_policy** policy,
                                          cinch_error* error);
CINCH_API void cinch_policy_release(cinch_policy* policy);
CINCH_API size_t cinch_policy_num_programs(const cinch_policy* policy);
/* Reads one of the policy's programs. Texts live as long as the policy. Errors: OUT_OF_RANGE. */
CINCH_API cinch_status cinch_policy_get_program(const cinch_policy* policy, size_t index,
                                                cinch_policy_program* program, cinch_error* error);
CINCH_API cinch_status cinch_policy_get_choice(const cinch_policy* policy, size_t tensor,
                                               cinch_policy_choice* choice, cinch_error* error);

/* A tensor that is averaged; the same list on all ranks. */
typedef struct cinch_sync_tensor {
  size_t struct_size;
  const char* name; /* unique; states are saved under this name */
  int64_t rows, columns;
  int32_t program; /* index in the programs, or CINCH_EXACT: sent as f32 */
  /* tensors of higher priority go first; tensors of different priorities share no message */
  int32_t priority;
  /* For plan "reduce_scatter": by rank, the element at which the rank's part ends. Each part
   * begins where the part of the rank before ends; the last entry is the number of elements.
   * NULL: equal parts. */
  const int64_t* part_ends;
  /* How the tensor is exchanged, if not as the options say; not beside "auto" or "reduce_scatter",
   * which are plans for all tensors. Tensors of different plans or pieces share no message. */
  const char* plan;     /* NULL: that of the options */
  uint64_t piece_bytes; /* 0: those of the options */
} cinch_sync_tensor;

typedef enum cinch_lengths CINCH_OF_INT {
  CINCH_LENGTHS_AUTO = 0,
  CINCH_LENGTHS_PADDED = 1,   /* payloads are padded to their largest size */
  CINCH_LENGTHS_EXCHANGED = 2 /* ranks exchange the lengths first, and wait for that exchange */
} cinch_lengths;

typedef struct cinch_sync_options {
  size_t struct_size;
  /* "allreduce", "allgather", "two_shot", "ring", "ps", "tree", "hierarchical", "reduce_scatter"
   * or "auto". NULL: "allreduce" if a transport can add up the payloads of all programs, else
   * "two_shot" if all programs take it, else "allgather". A program whose finish is not linear
   * takes neither "ring" nor "tree", and one without a carrier of sums (cinch_program_info) no
   * plan that encodes sums again: INVALID_ARGUMENT. "reduce_scatter" gives each rank the update of
   * its part alone, in a tensor of that size. "auto" picks the fastest plan on these ranks, which
   * takes some seconds to measure and to try (docs/sync_reference.md). A text with a dot or a
   * slash is a file that `cinch plan` wrote: tensors have the programs of the file, and are
   * exchanged as it says. Errors: INVALID_ARGUMENT (names the first three differences),
   * CORRUPT_FILE, VERSION_MISMATCH, IO. */
  const char* plan;
  uint64_t
      piece_bytes; /* bytes of gradient to encode and send at a time; 0: 4 MiB, or auto's choice */
  cinch_lengths lengths;
  uint32_t ranks_per_machine; /* of hierarchical, 0 counts as 1; programs know it as
                                 machine_ranks, 0: all ranks are on one machine */
  const uint32_t* servers;    /* of ps; NULL: rank 0 */
  size_t num_servers;
  uint64_t first_step; /* payloads get room for this step and later ones */
  uint64_t seed;
  uint32_t threads;    /* of this rank; 0: all of the machine */
  uint32_t timeout_ms; /* a call fails after this long without progress; 0: 300000 */
  /* For auto: gradients to measure with, one for each tensor, in the order of the tensors, in
   * CPU memory, read during the call. NULL: numbers drawn from a normal distribution. */
  const cinch_tensor* samples;

  /* The device of this rank's work. With CINCH_CUDA that is GPU `device_number`; programs are
   * compiled for it and tensors are in its memory. Ranks may use different devices. */
  cinch_device device;
  int32_t device_number;
  void* stream; /* CUstream that makes tensors ready, in its order; NULL: they are ready */
  /* Any program for that GPU, if no tensor has one; else NULL. */
  const cinch_program* plain;
  /* For auto: by tensor, in the order of the tensors, seconds from a step's begin until the
   * gradient is ready, the same on all ranks; plans are predicted and tried behind such a backward
   * pass. NULL: all are ready when a step begins. */
  const double* ready_seconds;
} cinch_sync_options;

typedef struct cinch_sync cinch_sync;

/* Makes the plan, opens sessions, and compares versions, tensors, programs, parameters, plan and
 * seed with the other ranks. All ranks call it. `options` may be NULL. Errors: INVALID_ARGUMENT
 * (also: ranks differ, then returned on all of them; a program for another device), UNAVAILABLE
 * (no such GPU), CANCELLED (another rank failed), TIMED_OUT (no progress for `timeout_ms`),
 * those of cinch_session_open. */
CINCH_API cinch_status cinch_sync_open(cinch_transport* transport,
                                       const cinch_program* const* programs, size_t num_programs,
                                       const cinch_sync_tensor* tensors, size_t num_tensors,
                                       const cinch_sync_options* options, cinch_sync** sync,
                                       cinch_error* error);
CINCH_API void cinch_sync_release(cinch_sync* sync);

/* Binds a run-time parameter, also of what carries the program's sums. The values of rank 0 hold on
 * all ranks from the next step on. Errors: INVALID_ARGUMENT (no such program or name), OUT_OF_RANGE
 * (also if payloads could become longer than the room in the plan, which is made for the values at
 * opening). */
CINCH_API cinch_status cinch_sync_set(cinch_sync* sync, size_t program, const char* parameter,
                                      double value, cinch_error* error);

/* Takes an array that the tensor's program has as an `input`, for the step that begins next or is
 * under way, before the tensor is ready. It is the same on all ranks, lies on the device of
 * opening, and stays in place until the step ends. Numbers are set by cinch_sync_set, before each
 * step begins; those of rank 0 hold. A step without a value for each input is an INVALID_ARGUMENT
 * that names input and tensor. A tensor that is sent as f32 takes any input, and needs none.
 * Errors: INVALID_ARGUMENT (no such tensor or input, another length or type). */
CINCH_API cinch_status cinch_sync_set_input(cinch_sync* sync, size_t tensor, const char* input,
                                            const cinch_tensor* array, cinch_error* error);

/* Synchronises once. All ranks call it with the same step. Gradients and updates are in the
 * order of the tensors at opening, on the device of opening. The updates are complete when the
 * call returns. An update may use its gradient's memory. After success all ranks hold the same
 * bits. After an error every rank has an error, states are those of the last step that
 * succeeded, and further steps fail. If a rank dies in the exchange that ends a step, the step may
 * succeed on some ranks, which then fail in the next one. Errors: INVALID_ARGUMENT, CANCELLED,
 * TIMED_OUT, CORRUPT_PAYLOAD, CHECK_FAILED, OUT_OF_MEMORY, DEVICE. */
CINCH_API cinch_status cinch_sync_step(cinch_sync* sync, uint64_t step,
                                       const cinch_tensor* gradients, const cinch_tensor* updates,
                                       size_t count, cinch_error* error);

/* ---- a step in parts ---- */

typedef struct cinch_step_options {
  size_t struct_size;
  /* A loss scale: gradients are divided by it, and updates multiplied by it. States hold values
   * that are not scaled. 0 counts as 1. */
  double scale;
  int32_t is_sum; /* updates are sums over ranks, not means */
  /* Not 0: if a gradient of some rank is not finite, all states of all ranks stay as they were. */
  int32_t skips_non_finite;
  /* Not 0: the report tells how far each tensor's update is from the mean of the gradients (or
   * their sum): |update - mean| / |mean|. That takes an all-reduce of f32 at the step's end, and
   * memory for all gradients. Only for tensors in CPU memory. */
  int32_t measures_errors;
} cinch_step_options;

typedef struct cinch_step_outcome {
  size_t struct_size;
  int32_t is_skipped; /* not 0: skips_non_finite applied; the updates are of no use */
} cinch_step_outcome;

/* Begins a step whose gradients are still being computed. All ranks begin with the same step and
 * options (NULL: all 0), make each tensor ready once, each rank in an order of its own, and
 * finish. Meanwhile a thread of `sync` exchanges the tensors that are ready, in an order that
 * all ranks share: in the first step the order at opening, later the order in which rank 0's
 * tensors became ready. Nothing else may use the transport until the step is finished.
 * cinch_sync_step makes these calls, with its exchanges on the caller's thread. Errors:
 * INVALID_ARGUMENT (a step is under way, a scale that is not an f32 above 0), CANCELLED (an
 * earlier step failed). */
CINCH_API cinch_status cinch_sync_begin(cinch_sync* sync, uint64_t step,
                                        const cinch_step_options* options, cinch_error* error);
/* Tells that the gradient of tensor `tensor` (its index at opening) is complete. Its update is
 * written by the end of the step, or before: see cinch_sync_is_done. Both arrays must stay in
 * place; the structs need not. `is_used` is 0 if the model has not used the tensor and the
 * gradient is zeros. If no rank has used a tensor, its states stay and its update is zeros.
 * Errors: INVALID_ARGUMENT (no step, no such tensor, ready twice, what cinch_sync_step says of
 * tensors). The step has then failed, and finishing it returns an error on all ranks. */
CINCH_API cinch_status cinch_sync_ready(cinch_sync* sync, size_t tensor,
                                        const cinch_tensor* gradient, const cinch_tensor* update,
                                        int32_t is_used, cinch_error* error);
/* Tells whether the tensor's update has been written in this step. The update may still become
 * NaN or zeros when the step is finished. Any thread may call this, and may wait for the update;
 * a wait also ends, with OK, when the step fails, and finishing then returns the error.
 * Exchanges have an order: a tensor's exchange may come after those of tensors that are not
 * ready yet. Errors: INVALID_ARGUMENT (the tensor is not ready). */
CINCH_API int32_t cinch_sync_is_done(const cinch_sync* sync, size_t tensor);
CINCH_API cinch_status cinch_sync_wait(cinch_sync* sync, size_t tensor, cinch_error* error);
/* Waits for all ranks and ends the step. `outcome` may be NULL. Errors: those of
 * cinch_sync_step. If a tensor is not ready, this rank returns INVALID_ARGUMENT, which names the
 * tensor, and the other ranks return CANCELLED with the same text. If ranks began with different
 * options, all return INVALID_ARGUMENT. */
CINCH_API cinch_status cinch_sync_finish(cinch_sync* sync, cinch_step_outcome* outcome,
                                         cinch_error* error);

/* Asks all ranks to end after the next step. */
CINCH_API void cinch_sync_stop(cinch_sync* sync);
/* Tells whether some rank had asked by the end of the last step. The same on all ranks. */
CINCH_API int32_t cinch_sync_is_stopping(const cinch_sync* sync);

/* Returns the tasks of this rank as text, one a line. */
CINCH_API const char* cinch_sync_plan(const cinch_sync* sync);
/* Returns why auto chose its plan, on rank 0; else empty. */
CINCH_API const char* cinch_sync_choice(const cinch_sync* sync);

/* Writes what the last step took on this rank: as JSON (times by phase, bytes by phase and
 * tensor, when tensors became ready, memory), and as a timeline that opens in Perfetto. On entry
 * `size` is the number of bytes at `data`; on return it is the number needed. With `data` NULL
 * the call only sets `size`. Errors: INVALID_ARGUMENT (too small, a step is under way). */
CINCH_API cinch_status cinch_sync_report(cinch_sync* sync, void* data, size_t* size,
                                         cinch_error* error);
CINCH_API cinch_status cinch_sync_trace(cinch_sync* sync, void* data, size_t* size,
                                        cinch_error* error);

/* Writes this rank's states after the last step as bytes; if a step has failed here and may have
 * succeeded on other ranks, also those after it. On entry `size` is the number of bytes
 * at `data`; on return it is the number needed. With `data` NULL the call only sets `size`.
 * Errors: INVALID_ARGUMENT (too small). */
CINCH_API cinch_status cinch_sync_states_save(cinch_sync* sync, void* data, size_t* size,
                                              cinch_error* error);

/* What restoring did to this rank's states; counts are of pieces of tensors. */
typedef struct cinch_sync_restored {
  size_t struct_size;
  uint64_t next_step; /* one more than the last step before saving */
  size_t num_kept;    /* restored as saved */
  size_t num_joined;  /* joined from states of other pieces */
  size_t num_reset;   /* set to their initial values */
  /* what was reset or left over, and why, one a line; valid as long as `sync` */
  const char* notes;
  size_t num_left; /* saved by this rank, and not taken by any */
} cinch_sync_restored;
/* Restores the states that the ranks of an earlier run saved, whatever its plan and number of
 * ranks. All ranks call it with the same bytes, between the same steps, and go on with the step
 * that the states say: the newest that all have. `restored` may be NULL. After an error states are
 * as before. Errors: INVALID_ARGUMENT, CORRUPT_FILE, VERSION_MISMATCH, CANCELLED, TIMED_OUT. */
CINCH_API cinch_status cinch_sync_states_load(cinch_sync* sync, const void* const* data,
                                              const size_t* sizes, size_t num_ranks,
                                              cinch_sync_restored* restored, cinch_error* error);

/* Restores this rank's states alone, between steps, from what the same rank saved under the same
 * plan and number of ranks. After an error states are as before. Errors: INVALID_ARGUMENT (also:
 * saved by another rank, plan or number of ranks; use cinch_sync_states_load), CORRUPT_FILE,
 * VERSION_MISMATCH. */
CINCH_API cinch_status cinch_sync_states_load_own(cinch_sync* sync, const void* data, size_t size,
                                                  cinch_error* error);
/* The same, and says what it did. `restored` may be NULL. Errors also: INVALID_ARGUMENT (a struct
 * size that is none). */
CINCH_API cinch_status cinch_sync_states_restore_own(cinch_sync* sync, const void* data,
                                                     size_t size, cinch_sync_restored* restored,
                                                     cinch_error* error);
/* Resets the states of one tensor to those before the first step. All ranks call it between the
 * same steps. Errors: INVALID_ARGUMENT. */
CINCH_API cinch_status cinch_sync_states_reset(cinch_sync* sync, size_t tensor, cinch_error* error);

/* The site of a state: what is encoded with it. */
typedef enum cinch_site CINCH_OF_INT {
  CINCH_SITE_WORKER = 0, /* a rank's own gradient */
  CINCH_SITE_HOP = 1,    /* a partial sum on its way */
  CINCH_SITE_OWNER = 2,  /* the result */
  CINCH_SITE_RETURN = 3  /* the result encoded again, for a second network */
} cinch_site;

/* A state of this rank, of some elements of one tensor. */
typedef struct cinch_sync_state {
  size_t struct_size;
  size_t tensor; /* of those it was opened for */
  cinch_site site;
  int64_t first, num_elements; /* the elements of the tensor */
  const char* name;            /* texts live until the next call on `sync` */
  const char* dtype;           /* "f32" */
  size_t size;                 /* bytes */
} cinch_sync_state;
/* Counts this rank's states, between steps. The list keeps its order as long as `sync` lives.
 * Errors: INVALID_ARGUMENT, OUT_OF_RANGE (no such index). */
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
