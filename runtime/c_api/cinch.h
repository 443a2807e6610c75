/* The C API of Cinch: compile or load a compressor, then compress and decompress many tensors per
 * call. C11 and C++20.
 *
 * Ownership. Programs and sessions are made by this library and given back with cinch_*_release;
 * all other memory is the caller's, and only read or written during the call. Texts that the
 * library hands out live as long as the object they came from.
 *
 * Errors. Every call that can fail returns a cinch_status and takes a cinch_error, which may be
 * NULL. No call prints, aborts, throws or sets errno; on error nothing that the call was to change
 * has changed.
 *
 * Threads. There are no globals. A program may be used by any number of threads. A session takes
 * one call at a time: one made while another one runs is CINCH_INVALID_ARGUMENT and changes
 * nothing. Calls of different sessions may run at once. cinch_session_cancel may be called at any
 * time from anywhere; a session is released when no call of it runs.
 *
 * Versions. Every struct begins with struct_size, set by the caller to sizeof the struct: the
 * library reads and writes no further, and fields may be added at the end of a struct without a
 * new CINCH_ABI_VERSION. Zero is the default of every field. */
#ifndef CINCH_H
#define CINCH_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* This is C: typedefs, enums of its own kind, and names with a prefix.
 * NOLINTBEGIN(modernize-*,readability-identifier-naming,performance-enum-size) */

#if defined(__GNUC__)
#define CINCH_API __attribute__((visibility("default")))
#else
#define CINCH_API
#endif

/* The type of an enum, so that in C++, too, a number of a later version, or a wrong one, is a value
 * that the library can refuse. */
#ifdef __cplusplus
#define CINCH_OF_INT : int
#else
#define CINCH_OF_INT
#endif

#define CINCH_ABI_VERSION 1

/* CINCH_ABI_VERSION of the library; differs from the header's where they do not fit. */
CINCH_API uint32_t cinch_abi_version(void);
/* "0.1.0". */
CINCH_API const char* cinch_version(void);

/* ---- errors -------------------------------------------------------------------------------- */

typedef enum cinch_status CINCH_OF_INT {
  CINCH_OK = 0,
  CINCH_INVALID_ARGUMENT = 1, /* an argument that cannot be: null, type, shape, strides, size */
  CINCH_OUT_OF_RANGE = 2,     /* a parameter or index outside its range */
  CINCH_OVERFLOW = 3,         /* sizes beyond 64 bits */
  CINCH_CORRUPT_PAYLOAD = 4,  /* cut, longer, changed, or of another compressor */
  CINCH_CORRUPT_FILE = 5,     /* an image or states that are not what they say */
  CINCH_VERSION_MISMATCH = 6, /* written by another format version */
  CINCH_CHECK_FAILED = 7,     /* a check or `assert` of the program */
  CINCH_IO = 8,
  CINCH_OUT_OF_MEMORY = 9,
  CINCH_UNAVAILABLE = 10, /* no such device, no compiler library, not in this version */
  CINCH_CANCELLED = 11,
  CINCH_DEVICE = 12,   /* a driver answered with an error */
  CINCH_INTERNAL = 13, /* a fault of Cinch itself */
  CINCH_PROGRAM = 14,  /* the program's text is at fault: the message holds diagnostics */
  CINCH_TIMED_OUT = 15 /* other ranks: nothing has moved for the time that was allowed */
} cinch_status;

#define CINCH_NO_TENSOR SIZE_MAX

/* What went wrong, in the caller's memory. */
typedef struct cinch_error {
  size_t struct_size;
  cinch_status status;
  int64_t native_code; /* of a driver, else 0 */
  size_t tensor;       /* place in the call's arrays, or CINCH_NO_TENSOR */
  size_t message_size; /* bytes of the whole message, without its end; may exceed what was kept */
  char message[1024];  /* UTF-8, cut where it is longer, always ended by a zero byte */
} cinch_error;
/* The whole message of the last call of this thread that failed, however long, until another one
 * fails; "" where there is none, or no memory for it. */
CINCH_API const char* cinch_error_message(void);

/* Can the user's table of tuning numbers be used? OK also where there is none. It is the file that
 * CINCH_TUNING names, else cinch/tuning.json in $XDG_CONFIG_HOME or ~/.config, and is read once per
 * process. Where CINCH_TUNING names one that cannot be used, cinch_session_open fails with this
 * error, too, and cinch_program_compile for CINCH_CUDA; else the built-in numbers serve, and only
 * this call tells. Errors: CORRUPT_FILE, VERSION_MISMATCH, IO. */
CINCH_API cinch_status cinch_check_tuning(cinch_error* error);

/* ---- programs ------------------------------------------------------------------------------ */

/* A compiled compressor. Immutable; counted: each handle made is released once. */
typedef struct cinch_program cinch_program;

typedef enum cinch_device CINCH_OF_INT { CINCH_CPU = 0, CINCH_CUDA = 1 } cinch_device;

/* Where the new values of states are written. */
typedef enum cinch_states CINCH_OF_INT {
  CINCH_STATES_SECOND_BUFFER = 0, /* beside the present ones: a second buffer as large */
  /* Over the present ones, wherever that is safe: after a sweep that finds non-finite values. Where
   * a call on many tensors fails, tensors whose part was done then keep their new states. */
  CINCH_STATES_IN_PLACE = 1
} cinch_states;

typedef struct cinch_compile_options {
  size_t struct_size;
  /* A path, path:name, a name of the standard library ("dgc"), or an expression over it
   * ("error_feedback(onebit)", "topk(ratio: 0.01)"). With `text`: a name for messages
   * and, behind a colon, the compressor to take. */
  const char* program;
  const char* text; /* the program itself; NULL: `program` says where it is */
  size_t text_size; /* bytes */
  /* Constant and run-time parameters: "ratio=0.01", "nesterov=true", "fit=gamma". */
  const char* const* bindings;
  size_t num_bindings;
  /* "x86-64", "x86-64-v3", "x86-64-v4"; NULL: this processor. */
  const char* cpu;
  /* The compiler library; NULL: $CINCH_COMPILER, else beside this library. */
  const char* compiler;
  cinch_states states;
  /* With CINCH_CUDA: "sm_90", of which no GPU need be here; NULL: that of GPU `device_number`. */
  const char* arch;
  cinch_device device; /* that runs the kernels; with CINCH_CUDA `cpu` is not looked at */
  int32_t device_number;
  /* Where the C++ headers of `extern fn` are looked for, behind the folder of the program's file.
   */
  const char* const* include_folders;
  size_t num_include_folders;
  const char* compile_commands; /* a compile_commands.json for their include paths; NULL: none */
} cinch_compile_options;

/* Compiles, or takes the program from the cache of compiled programs (docs: CINCH_CACHE). The
 * compiler is a library of its own that is opened by the first such call. Errors: PROGRAM,
 * UNAVAILABLE (no compiler, `cpu` is beyond this machine, no such GPU, no NVRTC, memory ran out
 * within the compiler in an earlier call), IO, INVALID_ARGUMENT (also: an unknown `arch`),
 * OUT_OF_MEMORY (also: less than 384 MiB of address space); for CINCH_CUDA those of
 * cinch_check_tuning. */
CINCH_API cinch_status cinch_program_compile(const cinch_compile_options* options,
                                             cinch_program** program, cinch_error* error);

/* The compressors of the standard library, as JSON: an array of objects with name, family,
 * payload_bits_per_element (null where there is no payload), aggregation, state, paper, file and
 * what else `cinch list NAME` tells.
 * `compiler` as in cinch_compile_options, may be NULL. `size` takes the bytes at `data` and gives
 * those needed; with `data` NULL it only gives. Errors: UNAVAILABLE (no compiler, no library),
 * INVALID_ARGUMENT (too small). */
CINCH_API cinch_status cinch_programs_list(const char* compiler, void* data, size_t* size,
                                           cinch_error* error);
/* An image file (`cinch build --emit=image`, cinch_program_save), or its bytes. Needs no compiler,
 * and for an image of GPU code no GPU. A path may also be that of a shared library that
 * `cinch build` made; "path:name" takes one of its compressors (CPU code; cinch_library.h has all).
 * Errors: IO, CORRUPT_FILE, VERSION_MISMATCH, UNAVAILABLE (made for another processor). */
CINCH_API cinch_status cinch_program_load(const char* path, cinch_program** program,
                                          cinch_error* error);
CINCH_API cinch_status cinch_program_load_bytes(const void* bytes, size_t size,
                                                cinch_program** program, cinch_error* error);
/* Written beside the place and renamed onto it; a link is followed, a device or a pipe written to
 * (docs/command_line.md). Errors: IO, UNAVAILABLE (a program of a library). */
CINCH_API cinch_status cinch_program_save(const cinch_program* program, const char* path,
                                          cinch_error* error);
/* Sessions keep what they need of it. NULL is allowed. */
CINCH_API void cinch_program_release(cinch_program* program);

typedef enum cinch_aggregation CINCH_OF_INT {
  CINCH_GATHER = 0,      /* every rank's payload is decoded */
  CINCH_SUM_TO_TEST = 1, /* payloads add up field by field: declared */
  CINCH_SUM_PROVED = 2   /* payloads add up field by field: proved */
} cinch_aggregation;

typedef struct cinch_program_info {
  size_t struct_size;
  const char* name;
  const char* doc;         /* the comment above the compressor */
  const char* cpu;         /* what it was compiled for: "x86-64-v3", "cuda:sm_90" */
  uint64_t fingerprint[2]; /* of the compressor and its constants: payloads carry it */
  size_t num_parameters;   /* that can be bound per step */
  size_t num_states;
  int32_t is_matrix;  /* works on [rows, columns] */
  int32_t has_finish; /* cinch_finish runs code of the program */
  cinch_aggregation aggregation;
} cinch_program_info;
CINCH_API cinch_status cinch_program_get_info(const cinch_program* program,
                                              cinch_program_info* info, cinch_error* error);

typedef struct cinch_parameter_info {
  size_t struct_size;
  const char* name;
  const char* type;  /* "f32", "u32", "bool" … */
  const char* range; /* "(0, 1]", or "" */
  double default_value;
  const char* words; /* "exponential, gamma": names of the values 0, 1 …; "" where they have none */
} cinch_parameter_info;
CINCH_API cinch_status cinch_program_get_parameter(const cinch_program* program, size_t index,
                                                   cinch_parameter_info* info, cinch_error* error);
/* The number that `text` is for a run-time parameter, to give to cinch_session_set and
 * cinch_sync_set: of a word its place, of "true" 1, of "0.01" itself. Errors: INVALID_ARGUMENT (no
 * such name), OUT_OF_RANGE (no such word: the message has those that there are). */
CINCH_API cinch_status cinch_program_parameter_value(const cinch_program* program,
                                                     const char* parameter, const char* text,
                                                     double* value, cinch_error* error);

typedef struct cinch_state_info {
  size_t struct_size;
  const char* name;
  const char* type; /* of an element */
} cinch_state_info;
CINCH_API cinch_status cinch_program_get_state(const cinch_program* program, size_t index,
                                               cinch_state_info* info, cinch_error* error);

/* ---- tensors and payloads ------------------------------------------------------------------ */

typedef enum cinch_dtype CINCH_OF_INT { CINCH_F32 = 0, CINCH_F16 = 1, CINCH_BF16 = 2 } cinch_dtype;

/* A dense tensor in row-major order. */
typedef struct cinch_tensor {
  size_t struct_size;
  void* data; /* may be NULL where there are no elements, and in cinch_session_open */
  cinch_dtype dtype;
  cinch_device device; /* where `data` is */
  int32_t device_number;
  int32_t num_dims; /* 0: one element */
  const int64_t* shape;
  const int64_t* strides; /* in elements; NULL: dense. Others than dense are refused */
  void* stream;           /* CUstream of the device; NULL: the default one, and on the CPU */
} cinch_tensor;

/* A payload. For cinch_encode: with capacity 0 it is lent, `data` is set and valid until the
 * session's next call; else it is copied to `data`, if `capacity` is enough. */
typedef struct cinch_payload {
  size_t struct_size;
  void* data;
  size_t capacity; /* bytes at `data`; not looked at by calls that read */
  size_t size;     /* bytes of the payload; set, or as it was received */
} cinch_payload;

/* ---- sessions ------------------------------------------------------------------------------ */

/* A list of tensors of one worker that one program compresses step by step: holds their states,
 * the parameters' values and all memory. */
typedef struct cinch_session cinch_session;

typedef enum cinch_memory_use CINCH_OF_INT {
  CINCH_MEMORY_STATE = 0,
  CINCH_MEMORY_WORKSPACE = 1
} cinch_memory_use;

/* Where a session's memory comes from, if not from the C library or, on a GPU, from its driver.
 * Both are given or none. Called only from within calls of the session, by the thread that makes
 * them.
 *
 * A session on a GPU asks for memory of that GPU (managed memory will do), at a multiple of 256 and
 * only while it is opened: once for its states and once for the rest. Errors of opening:
 * OUT_OF_MEMORY where NULL is given, INVALID_ARGUMENT where it is no such memory, which `release`
 * then has back at once. The memory is used by the stream of opening, in its order, and by those of
 * later calls. It goes back when the GPU has done all work with it: releasing the session waits for
 * that. Its context is current in both functions.
 *
 * Where calls of the session were captured into a graph, no event tells when that is, and the
 * driver refuses to wait for the whole GPU while any stream captures. `release` is then called
 * later, maybe by another thread: from within cinch_session_open or cinch_session_release of the
 * same program on that GPU, at the latest when the last such session is released. If a stream
 * captures then, too, or after a fault of the GPU, which ends its context, it is not called. What
 * `context` points to is there until all memory is back. */
typedef struct cinch_allocator {
  size_t struct_size;
  void* context;
  /* At least `size` bytes at a multiple of `alignment` (a power of two); NULL: out of memory. */
  void* (*allocate)(void* context, size_t size, size_t alignment, cinch_memory_use use);
  void (*release)(void* context, void* memory, size_t size, cinch_memory_use use);
} cinch_allocator;

typedef struct cinch_session_options {
  size_t struct_size;
  uint32_t threads; /* 0: all of the machine; at most 1024; results do not depend on it */
  uint32_t world;   /* ranks; 0 counts as 1 */
  uint32_t worker;  /* this rank, below world */
  uint64_t seed;
  const uint32_t* tensor_numbers; /* draws of different numbers differ; NULL: 0, 1, 2 … */
  const cinch_allocator* allocator;
  /* On a GPU: the most that parameters will be, by name. Memory is made for these and for the
   * values that parameters begin with, at the largest sizes of all steps. */
  const char* const* largest_names;
  const double* largest_values;
  size_t num_largest;
  /* Not 0: the session holds no states. Encoding, states, and a finish that has any are
   * INVALID_ARGUMENT. */
  int32_t only_decodes;
} cinch_session_options;

/* Opens a session for tensors of these shapes (pointers are not looked at, on the CPU types
 * neither) and gives states their first values. All are on the program's device; on a GPU, on one
 * and of one type. `options` may be NULL; a session on a GPU has no use for threads. Errors:
 * INVALID_ARGUMENT, OUT_OF_MEMORY, CHECK_FAILED, those of cinch_check_tuning; on a GPU also
 * UNAVAILABLE (no driver, no such GPU, a program for another architecture) and DEVICE. */
CINCH_API cinch_status cinch_session_open(const cinch_program* program,
                                          const cinch_session_options* options,
                                          const cinch_tensor* tensors, size_t num_tensors,
                                          cinch_session** session, cinch_error* error);
CINCH_API void cinch_session_release(cinch_session* session);

CINCH_API size_t cinch_session_num_tensors(const cinch_session* session);
/* Bytes held now. Workspace grows with the first call of each kind; while a call runs on another
 * thread it is what was told last. */
CINCH_API size_t cinch_session_state_bytes(const cinch_session* session);
CINCH_API size_t cinch_session_workspace_bytes(const cinch_session* session);

/* Binds a run-time parameter for the calls that follow. Bodies see the value rounded to the
 * parameter's type, sizes see it as given: 0.001f is above 0.001, and `ceil(ratio * n)` may be one
 * more for it. Errors: INVALID_ARGUMENT (no such name), OUT_OF_RANGE; the old value stays. */
CINCH_API cinch_status cinch_session_set(cinch_session* session, const char* parameter,
                                         double value, cinch_error* error);
/* Ends the running call, or the next one, with CANCELLED. Not on a GPU. */
CINCH_API void cinch_session_cancel(cinch_session* session);

/* Calls on many tensors: `which` holds their numbers in the session, each at most once; NULL: 0 …
 * count - 1. Arrays have `count` entries, whose memory no other entry writes. All tensors of a call
 * run at once, spread over the session's threads. A call is all or nothing: on error every tensor's
 * state is as before, and outputs hold nothing of use; the error is that of the first entry that
 * fails.
 *
 * Most bytes that each payload can have with the parameters of now. */
CINCH_API cinch_status cinch_payload_bounds(cinch_session* session, uint64_t step,
                                            const size_t* which, size_t count, size_t* bytes,
                                            cinch_error* error);
/* A gradient with a non-finite value gives a marked payload, which decodes to NaN; its state stays.
 * Errors: INVALID_ARGUMENT (also: a payload's capacity is too small), CHECK_FAILED, CANCELLED,
 * OUT_OF_MEMORY, OVERFLOW. */
CINCH_API cinch_status cinch_encode(cinch_session* session, uint64_t step, const size_t* which,
                                    size_t count, const cinch_tensor* gradients,
                                    cinch_payload* payloads, cinch_error* error);
/* Payloads are checked before anything of them is used. Errors: CORRUPT_PAYLOAD (names the field),
 * VERSION_MISMATCH, and those of cinch_encode. */
CINCH_API cinch_status cinch_decode(cinch_session* session, uint64_t step, const size_t* which,
                                    size_t count, const cinch_payload* payloads,
                                    const cinch_tensor* outputs, cinch_error* error);
/* outputs += decoded payloads; f32 only. */
CINCH_API cinch_status cinch_decode_add(cinch_session* session, uint64_t step, const size_t* which,
                                        size_t count, const cinch_payload* payloads,
                                        const cinch_tensor* outputs, cinch_error* error);
/* From sums over ranks of decoded payloads (f32) to updates; an update may be its sum's memory. */
CINCH_API cinch_status cinch_finish(cinch_session* session, uint64_t step, const size_t* which,
                                    size_t count, const cinch_tensor* sums,
                                    const cinch_tensor* updates, cinch_error* error);

/* ---- buckets ------------------------------------------------------------------------------- */

/* Tensors in one buffer, as frameworks keep gradients. Those of a call do not overlap. */
typedef struct cinch_bucket {
  size_t struct_size;
  void* data;
  int64_t num_elements; /* at `data` */
  const int64_t*
      offsets; /* in elements, one for each tensor of the call; NULL: one behind the other */
  cinch_dtype dtype;
  cinch_device device; /* as cinch_tensor */
  int32_t device_number;
  void* stream;
} cinch_bucket;

/* Payloads in one buffer, one for each tensor of the call. */
typedef struct cinch_arena {
  size_t struct_size;
  void* data;
  size_t capacity; /* bytes at `data` */
  size_t size;     /* set by cinch_encode_bucket: bytes in use, from `data` on */
  /* In bytes: set by cinch_encode_bucket, or as they were received. */
  size_t* offsets;
  size_t* sizes;
} cinch_arena;

/* As the calls above, with their errors; a tensor or payload that does not lie in its buffer is
 * OUT_OF_RANGE. For cinch_encode_bucket `capacity` is at least the sum of cinch_payload_bounds,
 * each rounded up to a multiple of 16. On the CPU payloads then stand one behind the other, each at
 * the next multiple of 16, with zeros between; on a GPU, `data` is at a multiple of 16, each
 * payload at the place where it would be if all before it were as large as they can be, and `sizes`
 * are what it may have at most (what it has is told by cinch_collect). */
CINCH_API cinch_status cinch_encode_bucket(cinch_session* session, uint64_t step,
                                           const size_t* which, size_t count,
                                           const cinch_bucket* gradients, cinch_arena* payloads,
                                           cinch_error* error);
CINCH_API cinch_status cinch_decode_bucket(cinch_session* session, uint64_t step,
                                           const size_t* which, size_t count,
                                           const cinch_arena* payloads, const cinch_bucket* outputs,
                                           cinch_error* error);
CINCH_API cinch_status cinch_decode_add_bucket(cinch_session* session, uint64_t step,
                                               const size_t* which, size_t count,
                                               const cinch_arena* payloads,
                                               const cinch_bucket* outputs, cinch_error* error);
CINCH_API cinch_status cinch_finish_bucket(cinch_session* session, uint64_t step,
                                           const size_t* which, size_t count,
                                           const cinch_bucket* sums, const cinch_bucket* updates,
                                           cinch_error* error);

/* ---- GPUs ---------------------------------------------------------------------------------- */

/* The calls above on a session whose tensors are on a GPU enqueue kernels on the stream that the
 * tensors name (all the same), for all tensors of the session at once, and return: nothing waits,
 * nothing is allocated; memory on the device is used until the stream has come there. A call comes
 * after those before it on the device, too, whatever their streams; the order of replays of graphs
 * is the caller's. `which` is
 * NULL and `count` the session's number of tensors. Payloads are in device memory, at multiples of
 * 16: for cinch_encode `capacity` is at least the bound of cinch_payload_bounds, and how large they
 * became is told by cinch_collect; for the others `size` is at least what the payload has. Sums and
 * updates of cinch_finish are different memory.
 *
 * What goes wrong on the device (a failed check, a corrupt payload) concerns one tensor, whose
 * state stays as it was; the others go on. Errors of the calls themselves: INVALID_ARGUMENT,
 * OUT_OF_RANGE (parameters beyond `largest_values`), CHECK_FAILED, DEVICE.
 *
 * A call may be captured into a CUDA graph once it was made with the same memory. Before each
 * replay cinch_prepare sends the step and the parameters of now. */
typedef enum cinch_call CINCH_OF_INT {
  CINCH_CALL_ENCODE = 0,
  CINCH_CALL_DECODE = 1,
  CINCH_CALL_DECODE_ADD = 2,
  CINCH_CALL_FINISH = 3
} cinch_call;
/* Errors: INVALID_ARGUMENT (no such call was made before), OUT_OF_RANGE, CHECK_FAILED, DEVICE. */
CINCH_API cinch_status cinch_prepare(cinch_session* session, cinch_call call, uint64_t step,
                                     void* stream, cinch_error* error);

/* How the calls since the last cinch_collect went for one tensor. */
typedef struct cinch_outcome {
  size_t struct_size;
  cinch_status status;   /* of the first that failed: CHECK_FAILED, CORRUPT_PAYLOAD, … */
  int32_t is_non_finite; /* the last call's gradient, sum or payload */
  size_t payload_size;   /* of the last cinch_encode */
  const char* message;   /* of a failure, else ""; valid until the next cinch_collect */
} cinch_outcome;
/* Waits for the stream and tells the outcomes of all the session's tensors, of which there are
 * `count`. OK where they could be told, whatever they are. Errors: INVALID_ARGUMENT, DEVICE. */
CINCH_API cinch_status cinch_collect(cinch_session* session, void* stream, cinch_outcome* outcomes,
                                     size_t count, cinch_error* error);

/* ---- states -------------------------------------------------------------------------------- */

/* All states of one tensor as bytes, versioned and checked, for checkpoints; on a GPU these calls
 * wait for the stream of the session's last call. `size` takes the bytes at `data` and gives those
 * needed; with `data` NULL it only gives. Errors: INVALID_ARGUMENT (too small). */
CINCH_API cinch_status cinch_states_save(cinch_session* session, size_t tensor, void* data,
                                         size_t* size, cinch_error* error);
/* Errors: CORRUPT_FILE, VERSION_MISMATCH, INVALID_ARGUMENT (of another program or shape). */
CINCH_API cinch_status cinch_states_load(cinch_session* session, size_t tensor, const void* data,
                                         size_t size, cinch_error* error);
/* The same to and from a file (`cinch run --state-out`). Errors also: IO. */
CINCH_API cinch_status cinch_states_save_file(cinch_session* session, size_t tensor,
                                              const char* path, cinch_error* error);
CINCH_API cinch_status cinch_states_load_file(cinch_session* session, size_t tensor,
                                              const char* path, cinch_error* error);

/* NOLINTEND(modernize-*,readability-identifier-naming,performance-enum-size) */

#ifdef __cplusplus
}
#endif

#endif
