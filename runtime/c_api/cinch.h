/* The C API of Cinch: compile or load a compressor, then compress and decompress many tensors per
 * call. C11 and C++20.
 *
 * Ownership. This library makes programs and sessions; the caller returns them with
 * cinch_*_release. All other memory is the caller's, and the library reads or writes it only during
 * the call. Texts that the library returns live as long as the object they came from.
 *
 * Errors. Every call that can fail returns a cinch_status and takes a cinch_error, which may be
 * NULL. No call prints, aborts, throws or sets errno. A call that fails changes nothing.
 *
 * Threads. There are no globals. Any number of threads may use a program. A session takes one call
 * at a time: a second call made meanwhile returns CINCH_INVALID_ARGUMENT and changes nothing. Calls
 * of different sessions may run at once. Any thread may call cinch_session_cancel at any time.
 * Release a session only when no call of it runs.
 *
 * Versions. Every struct begins with struct_size, which the caller sets to sizeof the struct.
 * The library reads and writes no further, so that later versions can add fields at the end
 * without a new CINCH_ABI_VERSION. Zero is the default of every field. */
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

/* The type of an enum. It is an int, so that in C++, too, the library can reject a wrong number,
 * or one of a later version. */
#ifdef __cplusplus
#define CINCH_OF_INT : int
#else
#define CINCH_OF_INT
#endif

#define CINCH_ABI_VERSION 1

/* CINCH_ABI_VERSION of the library. If it differs from the header's, the two do not fit
 * together. */
CINCH_API uint32_t cinch_abi_version(void);
/* The library's version, such as "0.1.0". */
CINCH_API const char* cinch_version(void);

/* ---- errors -------------------------------------------------------------------------------- */

typedef enum cinch_status CINCH_OF_INT {
  CINCH_OK = 0,
  CINCH_INVALID_ARGUMENT = 1, /* an invalid argument: null, type, shape, strides, size */
  CINCH_OUT_OF_RANGE = 2,     /* a parameter or index outside its range */
  CINCH_OVERFLOW = 3,         /* sizes beyond 64 bits */
  CINCH_CORRUPT_PAYLOAD = 4,  /* truncated, too long, changed, or of another compressor */
  CINCH_CORRUPT_FILE = 5,     /* an image or states whose contents are not well formed */
  CINCH_VERSION_MISMATCH = 6, /* written in another format version */
  CINCH_CHECK_FAILED = 7,     /* a check or `assert` of the program */
  CINCH_IO = 8,
  CINCH_OUT_OF_MEMORY = 9,
  CINCH_UNAVAILABLE = 10, /* no such device, no compiler library, or not in this version */
  CINCH_CANCELLED = 11,
  CINCH_DEVICE = 12,   /* a driver returned an error */
  CINCH_INTERNAL = 13, /* a bug in Cinch */
  CINCH_PROGRAM = 14,  /* the program's text has errors: the message holds diagnostics */
  CINCH_TIMED_OUT = 15 /* other ranks made no progress within the time allowed */
} cinch_status;

#define CINCH_NO_TENSOR SIZE_MAX

/* An error, written to the caller's memory. */
typedef struct cinch_error {
  size_t struct_size;
  cinch_status status;
  int64_t native_code; /* the driver's error code, else 0 */
  size_t tensor;       /* index in the call's arrays, or CINCH_NO_TENSOR */
  /* bytes of the whole message without its zero byte; may exceed what `message` holds */
  size_t message_size;
  char message[1024]; /* UTF-8, truncated if longer, always ended by a zero byte */
} cinch_error;
/* Returns the whole message of this thread's last call that failed. It stays valid until another
 * call fails. Returns "" if no call has failed, or if there was no memory for the message. */
CINCH_API const char* cinch_error_message(void);

/* Checks that the user's table of tuning numbers can be used. Returns OK also if there is none.
 * The table is the file that CINCH_TUNING names, else cinch/tuning.json in $XDG_CONFIG_HOME or
 * ~/.config. It is read once per process. If CINCH_TUNING names a table that cannot be used,
 * cinch_session_open fails with this error, too, and so does cinch_program_compile for
 * CINCH_CUDA. If the default table cannot be used, the built-in numbers are used and only this
 * call reports it. Errors: CORRUPT_FILE, VERSION_MISMATCH, IO. */
CINCH_API cinch_status cinch_check_tuning(cinch_error* error);

/* ---- programs ------------------------------------------------------------------------------ */

/* A compiled compressor. It is immutable and reference-counted: release each handle once. */
typedef struct cinch_program cinch_program;

typedef enum cinch_device CINCH_OF_INT { CINCH_CPU = 0, CINCH_CUDA = 1 } cinch_device;

/* Where a call writes the new values of states. */
typedef enum cinch_states CINCH_OF_INT {
  CINCH_STATES_SECOND_BUFFER = 0, /* to a second buffer of the same size */
  /* Over the present values, wherever that is safe: after a sweep that finds non-finite values.
   * If a call on many tensors fails, tensors that were already done keep their new states. */
  CINCH_STATES_IN_PLACE = 1
} cinch_states;

typedef struct cinch_compile_options {
  size_t struct_size;
  /* The program: a path, path:name, a name of the standard library ("dgc"), or an expression
   * over it ("error_feedback(onebit)", "topk(ratio: 0.01)"). With `text`: a name for messages
   * and, behind a colon, the compressor to take. */
  const char* program;
  const char* text; /* the program's source text; NULL: `program` says where it is */
  size_t text_size; /* bytes */
  /* Values for constant and run-time parameters: "ratio=0.01", "nesterov=true", "fit=gamma". */
  const char* const* bindings;
  size_t num_bindings;
  /* "x86-64", "x86-64-v3", "x86-64-v4"; NULL: this processor. */
  const char* cpu;
  /* The compiler library; NULL: $CINCH_COMPILER, else the one in this library's folder. */
  const char* compiler;
  cinch_states states;
  /* The architecture for CINCH_CUDA: "sm_90". This machine need not have such a GPU. NULL: that
   * of GPU `device_number`. */
  const char* arch;
  cinch_device device; /* the device that runs the kernels; CINCH_CUDA ignores `cpu` */
  int32_t device_number;
  /* Folders to search for the C++ headers of `extern fn`, after the folder of the program's
   * file. */
  const char* const* include_folders;
  size_t num_include_folders;
  const char* compile_commands; /* a compile_commands.json with their include paths; NULL: none */
  /* For the text of a stranger: imports lie below this folder, and headers there, in the folders
   * above, or among the system's. NULL: anywhere. */
  const char* confine;
} cinch_compile_options;

/* Compiles the program, or takes it from the cache of compiled programs (docs: CINCH_CACHE). A
 * long program, or any for a GPU, is compiled quickly first. Its sessions change over to better
 * code, which gives the same bits, between two calls (docs/notes/cache.md). The compiler is a
 * library of its own, which the first such call opens. Errors: PROGRAM, UNAVAILABLE (no compiler,
 * `cpu` is beyond this machine, no such GPU, no NVRTC, the compiler ran out of memory in an earlier
 * call), IO, INVALID_ARGUMENT (also: an unknown `arch`), OUT_OF_MEMORY (also: less than 384 MiB of
 * address space); for CINCH_CUDA those of cinch_check_tuning. */
CINCH_API cinch_status cinch_program_compile(const cinch_compile_options* options,
                                             cinch_program** program, cinch_error* error);

/* Writes the compressors of the standard library as JSON: an array of objects with name, family,
 * payload_bits_per_element (null if there is no payload), aggregation, state, paper, file and
 * whatever else `cinch list NAME` prints. `compiler` as in cinch_compile_options, may be NULL. On
 * entry `size` is the number of bytes at `data`; on return it is the number needed. With `data`
 * NULL the call only sets `size`. Errors: UNAVAILABLE (no compiler, no library), INVALID_ARGUMENT
 * (too small). */
CINCH_API cinch_status cinch_programs_list(const char* compiler, void* data, size_t* size,
                                           cinch_error* error);
/* Loads an image (`cinch build --emit=image`, cinch_program_save) from a file or from its bytes.
 * Needs no compiler, and for an image of GPU code no GPU. `path` may also be a shared library
 * that `cinch build` made; "path:name" takes one of its compressors (CPU code only;
 * cinch_library.h opens all code). Errors: IO, CORRUPT_FILE, VERSION_MISMATCH, UNAVAILABLE (made
 * for another processor). */
CINCH_API cinch_status cinch_program_load(const char* path, cinch_program** program,
                                          cinch_error* error);
CINCH_API cinch_status cinch_program_load_bytes(const void* bytes, size_t size,
                                                cinch_program** program, cinch_error* error);
/* Saves the program's image. Code that was compiled quickly is compiled again with all
 * optimisations for that, unless its text or one that it imports has changed since, or the
 * cache cannot keep that code. The call writes a
 * temporary file in the same folder and renames it. It follows a link, and writes directly to a
 * device or a pipe (docs/command_line.md). Errors: IO, UNAVAILABLE (a program of a library). */
CINCH_API cinch_status cinch_program_save(const cinch_program* program, const char* path,
                                          cinch_error* error);
/* Releases the handle. Sessions keep what they need of the program. NULL is allowed. */
CINCH_API void cinch_program_release(cinch_program* program);

typedef enum cinch_aggregation CINCH_OF_INT {
  CINCH_GATHER = 0, /* every rank's payload is decoded */
  /* payloads are added field by field: the program claims that this is right */
  CINCH_SUM_TO_TEST = 1,
  /* payloads are added field by field: the compiler proved that this is right */
  CINCH_SUM_PROVED = 2
} cinch_aggregation;

typedef struct cinch_program_info {
  size_t struct_size;
  const char* name;
  const char* doc;         /* the comment above the compressor */
  const char* cpu;         /* the target of the code: "x86-64-v3", "cuda:sm_90" */
  uint64_t fingerprint[2]; /* identifies the compressor and its constants; payloads carry it */
  size_t num_parameters;   /* run-time parameters, which can be bound per step */
  size_t num_states;
  int32_t is_matrix;  /* works on [rows, columns] */
  int32_t has_finish; /* cinch_finish runs code of the program */
  cinch_aggregation aggregation;
  /* What carries sums where a plan encodes them again (docs/sync.md, Carriers): "itself", "exact"
   * (as f32), a compressor such as "error_feedback(topk(ratio: 0.001))", perhaps followed by
   * ", shared draws", or "none: " and why no such plan takes the program. */
  const char* carrier;
  /* What the compiler warns of, as `cinch check` shows it; empty: of nothing, or the program was
   * loaded. */
  const char* warnings;
  int32_t is_local;  /* claimed: each rank has an update of its own, so replicas drift apart */
  size_t num_inputs; /* what each step takes besides the gradient (`input`) */
} cinch_program_info;
CINCH_API cinch_status cinch_program_get_info(const cinch_program* program,
                                              cinch_program_info* info, cinch_error* error);

typedef struct cinch_parameter_info {
  size_t struct_size;
  const char* name;
  const char* type;  /* "f32", "u32", "bool" … */
  const char* range; /* "(0, 1]", or "" */
  double default_value;
  const char* words; /* "exponential, gamma": names of the values 0, 1 …; "" if it has none */
} cinch_parameter_info;
CINCH_API cinch_status cinch_program_get_parameter(const cinch_program* program, size_t index,
                                                   cinch_parameter_info* info, cinch_error* error);
/* Converts `text` to the number to pass to cinch_session_set and cinch_sync_set for a run-time
 * parameter. A word becomes its index, "true" 1, "0.01" itself. Errors: INVALID_ARGUMENT (no
 * such name), OUT_OF_RANGE (no such word: the message lists the words). */
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

/* An `input` of the program. A number is set like a parameter, before each step (cinch_session_set,
 * cinch_sync_set). An array is f32 and has the shape of the gradient (cinch_session_set_input,
 * cinch_sync_set_input). */
typedef struct cinch_input_info {
  size_t struct_size;
  const char* name;
  const char* type;  /* of the number, or of an element */
  const char* range; /* of a number: "(0, inf)", or "" */
  int32_t is_array;
} cinch_input_info;
CINCH_API cinch_status cinch_program_get_input(const cinch_program* program, size_t index,
                                               cinch_input_info* info, cinch_error* error);

/* ---- tensors and payloads ------------------------------------------------------------------ */

typedef enum cinch_dtype CINCH_OF_INT { CINCH_F32 = 0, CINCH_F16 = 1, CINCH_BF16 = 2 } cinch_dtype;

/* A dense tensor in row-major order. */
typedef struct cinch_tensor {
  size_t struct_size;
  /* at a multiple of an element's bytes; may be NULL if there are no elements, and in
   * cinch_session_open */
  void* data;
  cinch_dtype dtype;
  cinch_device device; /* the device that `data` is on */
  int32_t device_number;
  int32_t num_dims; /* 0: one element */
  const int64_t* shape;
  const int64_t* strides; /* in elements; NULL: dense. Strides that are not dense are rejected */
  void* stream;           /* CUstream of the device; NULL: the default one; NULL on the CPU */
} cinch_tensor;

/* A payload. If `capacity` is 0, cinch_encode sets `data` to memory of the session, valid until
 * its next call. Otherwise it copies the payload to `data`, if `capacity` is enough. */
typedef struct cinch_payload {
  size_t struct_size;
  void* data;
  size_t capacity; /* bytes at `data`; calls that only read ignore it */
  size_t size;     /* bytes of the payload; cinch_encode sets it, other calls read it */
} cinch_payload;

/* ---- sessions ------------------------------------------------------------------------------ */

/* A list of tensors of one worker that one program compresses step by step. It holds their
 * states, the parameters' values and all memory. */
typedef struct cinch_session cinch_session;

typedef enum cinch_memory_use CINCH_OF_INT {
  CINCH_MEMORY_STATE = 0,
  CINCH_MEMORY_WORKSPACE = 1
} cinch_memory_use;

/* The memory source of a session, instead of the C library or, on a GPU, its driver. Set both
 * functions or none. Only calls of the session use them, on the thread that makes the call.
 *
 * A session on a GPU asks for memory of that GPU (managed memory will do), at a multiple of 256 and
 * only while it is opened: once for its states and once for the rest. Opening fails with
 * OUT_OF_MEMORY if `allocate` returns NULL. It fails with INVALID_ARGUMENT if the memory is not
 * that GPU's, and then returns it by `release` at once. The stream of opening, and those of later
 * calls, use the memory in their order. It is returned when the GPU has finished all work that uses
 * it: releasing the session waits for that. The GPU's context is current in both functions.
 *
 * If calls of the session were captured into a graph, no event tells when that work is finished,
 * and the driver refuses to wait for the whole GPU while any stream captures. `release` is then
 * called later, maybe by another thread: from within cinch_session_open or cinch_session_release
 * of the same program on that GPU, at the latest when the last such session is released. If a
 * stream captures then, too, or after a fault of the GPU, which ends its context, `release` is
 * not called. What `context` points to must live until all memory is returned. */
typedef struct cinch_allocator {
  size_t struct_size;
  void* context;
  /* Returns at least `size` bytes at a multiple of `alignment` (a power of two); NULL: out of
   * memory. */
  void* (*allocate)(void* context, size_t size, size_t alignment, cinch_memory_use use);
  void (*release)(void* context, void* memory, size_t size, cinch_memory_use use);
} cinch_allocator;

typedef struct cinch_session_options {
  size_t struct_size;
  uint32_t threads; /* 0: all of the machine; at most 1024; results do not depend on it */
  uint32_t world;   /* ranks; 0 counts as 1 */
  uint32_t worker;  /* this rank, below world */
  uint64_t seed;
  /* seeds random draws: tensors with different numbers draw differently; NULL: 0, 1, 2 … */
  const uint32_t* tensor_numbers;
  const cinch_allocator* allocator;
  /* On a GPU: the largest values that parameters will take, by name. The session reserves memory
   * for these and for the initial values of parameters, at the largest sizes of all steps. */
  const char* const* largest_names;
  const double* largest_values;
  size_t num_largest;
  /* Not 0: the session holds no states. Encoding, access to states, and a finish that has states
   * return INVALID_ARGUMENT. */
  int32_t only_decodes;
} cinch_session_options;

/* Opens a session for tensors of these shapes and gives states their initial values. It ignores
 * the tensors' pointers, and on the CPU their types. All tensors are on the program's device; on
 * a GPU they are on one GPU and of one type. `options` may be NULL; a session on a GPU ignores
 * `threads`. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY, CHECK_FAILED, those of cinch_check_tuning;
 * on a GPU also UNAVAILABLE (no driver, no such GPU, a program for another architecture) and
 * DEVICE. */
CINCH_API cinch_status cinch_session_open(const cinch_program* program,
                                          const cinch_session_options* options,
                                          const cinch_tensor* tensors, size_t num_tensors,
                                          cinch_session** session, cinch_error* error);
CINCH_API void cinch_session_release(cinch_session* session);

CINCH_API size_t cinch_session_num_tensors(const cinch_session* session);
/* Bytes that the session holds now. Workspace grows with the first call of each kind. While a
 * call runs on another thread, this returns the size before that call. */
CINCH_API size_t cinch_session_state_bytes(const cinch_session* session);
CINCH_API size_t cinch_session_workspace_bytes(const cinch_session* session);

/* Binds a run-time parameter for the calls that follow. Bodies see the value rounded to the
 * parameter's type; sizes see the exact value. A caller who passes 0.001f passes a value above
 * 0.001, so that `ceil(ratio * n)` may be one more. Errors: INVALID_ARGUMENT (no such name),
 * OUT_OF_RANGE; the old value stays. */
CINCH_API cinch_status cinch_session_set(cinch_session* session, const char* parameter,
                                         double value, cinch_error* error);
/* Takes an array that the program has as an `input`, such as the tensor's weights, for one step:
 * encoding and finishing of the step that uses it first. Both calls then need a value of each
 * input: a missing one is an INVALID_ARGUMENT that names it. A number is an input of
 * cinch_session_set, under the same rule. The array has the tensor's elements, and lies on the
 * device of the session. On the CPU it stays in place until the step's last call, and is f32, f16
 * or bf16. On a GPU it is f32, and is copied on its stream. Errors: INVALID_ARGUMENT (no such
 * tensor or input, another length or type), DEVICE; the old value stays. */
CINCH_API cinch_status cinch_session_set_input(cinch_session* session, size_t tensor,
                                               const char* input, const cinch_tensor* array,
                                               cinch_error* error);
/* Ends the running call, or the next one, with CANCELLED. Has no effect on a GPU. */
CINCH_API void cinch_session_cancel(cinch_session* session);

/* Calls on many tensors. `which` holds tensor numbers of the session, each at most once; NULL: 0 …
 * count - 1. Arrays have `count` entries; no two entries write the same memory. All tensors of a
 * call run at once, spread over the session's threads. A call is all or nothing: after an error
 * every tensor's state is as before, and outputs hold nothing of use. The call returns the error of
 * the first entry that fails.
 *
 * cinch_payload_bounds writes the largest size in bytes that each payload can have with the
 * present parameters. */
CINCH_API cinch_status cinch_payload_bounds(cinch_session* session, uint64_t step,
                                            const size_t* which, size_t count, size_t* bytes,
                                            cinch_error* error);
/* Compresses gradients to payloads. A gradient with a non-finite value becomes a marked payload,
 * which decodes to NaN; its state stays. Errors: INVALID_ARGUMENT (also: a payload's capacity is
 * too small), CHECK_FAILED, CANCELLED, OUT_OF_MEMORY, OVERFLOW. */
CINCH_API cinch_status cinch_encode(cinch_session* session, uint64_t step, const size_t* which,
                                    size_t count, const cinch_tensor* gradients,
                                    cinch_payload* payloads, cinch_error* error);
/* Decompresses payloads. The call checks each payload before it uses it. Errors: CORRUPT_PAYLOAD
 * (names the field), VERSION_MISMATCH, and those of cinch_encode. */
CINCH_API cinch_status cinch_decode(cinch_session* session, uint64_t step, const size_t* which,
                                    size_t count, const cinch_payload* payloads,
                                    const cinch_tensor* outputs, cinch_error* error);
/* Adds decoded payloads to outputs (outputs += decoded); f32 only. Where a sparse payload sets
 * nothing, an output of -0 may stay -0. */
CINCH_API cinch_status cinch_decode_add(cinch_session* session, uint64_t step, const size_t* which,
                                        size_t count, const cinch_payload* payloads,
                                        const cinch_tensor* outputs, cinch_error* error);
/* Turns sums over ranks of decoded payloads (f32) into updates. An update may use its sum's
 * memory. */
CINCH_API cinch_status cinch_finish(cinch_session* session, uint64_t step, const size_t* which,
                                    size_t count, const cinch_tensor* sums,
                                    const cinch_tensor* updates, cinch_error* error);

/* ---- buckets ------------------------------------------------------------------------------- */

/* Tensors in one buffer, as frameworks keep gradients. The tensors of a call must not overlap. */
typedef struct cinch_bucket {
  size_t struct_size;
  void* data;
  int64_t num_elements; /* at `data` */
  const int64_t*
      /* in elements, one for each tensor of the call; NULL: the tensors follow one another */
      offsets;
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
  size_t size;     /* bytes in use, from `data` on; cinch_encode_bucket sets it */
  /* In bytes; cinch_encode_bucket sets them, calls that decode read them. */
  size_t* offsets;
  size_t* sizes;
} cinch_arena;

/* These calls do what the ones above do, with the same errors; a tensor or payload that does not
 * lie in its buffer gives OUT_OF_RANGE. For cinch_encode_bucket `capacity` is at least the sum
 * of cinch_payload_bounds, each rounded up to a multiple of 16. On the CPU payloads follow one
 * another, each at the next multiple of 16, with zeros between. On a GPU `data` is at a multiple
 * of 16. Each payload then lies where it would if all before it had their largest size, and
 * `sizes` are the largest sizes; cinch_collect returns the real ones. */
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

/* On a session whose tensors are on a GPU, the calls above enqueue kernels on the stream that the
 * tensors name (the same for all) and return. They serve all tensors of the session at once. They
 * wait for nothing and allocate nothing. Device memory is in use until the stream has finished the
 * kernels. The device runs the calls of a session in order, whatever their streams; for replays of
 * graphs the caller keeps the order. `which` is NULL and `count` the session's number of tensors.
 * Payloads are in device memory, at multiples of 16. For cinch_encode `capacity` is at least the
 * bound of cinch_payload_bounds, and cinch_collect returns the real sizes; for the other calls
 * `size` is at least the payload's size. Sums and updates of cinch_finish use different memory.
 * A failure on the device (a failed check, a corrupt payload) concerns one tensor, whose state
 * stays as it was; the other tensors go on. Errors of the calls themselves: INVALID_ARGUMENT,
 * OUT_OF_RANGE (parameters beyond `largest_values`), CHECK_FAILED, DEVICE. */
typedef enum cinch_call CINCH_OF_INT {
  CINCH_CALL_ENCODE = 0,
  CINCH_CALL_DECODE = 1,
  CINCH_CALL_DECODE_ADD = 2,
  CINCH_CALL_FINISH = 3
} cinch_call;
/* Sends the step and the present parameters to the device before a graph is replayed. Errors:
 * INVALID_ARGUMENT (no such call was made before), OUT_OF_RANGE, CHECK_FAILED, DEVICE. */
CINCH_API cinch_status cinch_prepare(cinch_session* session, cinch_call call, uint64_t step,
                                     void* stream, cinch_error* error);

/* The outcome, for one tensor, of the calls since the last cinch_collect. */
typedef struct cinch_outcome {
  size_t struct_size;
  cinch_status status;   /* of the first call that failed: CHECK_FAILED, CORRUPT_PAYLOAD, … */
  int32_t is_non_finite; /* of the last call's gradient, sum or payload */
  size_t payload_size;   /* of the last cinch_encode */
  const char* message;   /* of a failure, else ""; valid until the next cinch_collect */
} cinch_outcome;
/* Waits for the stream and writes the outcomes of all the session's tensors; `count` is their
 * number. Returns OK if it could write them, whatever they are. Errors: INVALID_ARGUMENT,
 * DEVICE. */
CINCH_API cinch_status cinch_collect(cinch_session* session, void* stream, cinch_outcome* outcomes,
                                     size_t count, cinch_error* error);

/* ---- states -------------------------------------------------------------------------------- */

/* Writes all states of one tensor as bytes, versioned and checksummed, for checkpoints. On a GPU
 * these calls wait for the stream of the session's last call. On entry `size` is the number of
 * bytes at `data`; on return it is the number needed. With `data` NULL the call only sets
 * `size`. Errors: INVALID_ARGUMENT (too small). */
CINCH_API cinch_status cinch_states_save(cinch_session* session, size_t tensor, void* data,
                                         size_t* size, cinch_error* error);
/* Restores the states of one tensor. Errors: CORRUPT_FILE, VERSION_MISMATCH, INVALID_ARGUMENT
 * (saved for another program or shape). */
CINCH_API cinch_status cinch_states_load(cinch_session* session, size_t tensor, const void* data,
                                         size_t size, cinch_error* error);
/* The same two calls, to and from a file (`cinch run --state-out`). Errors also: IO. */
CINCH_API cinch_status cinch_states_save_file(cinch_session* session, size_t tensor,
                                              const char* path, cinch_error* error);
CINCH_API cinch_status cinch_states_load_file(cinch_session* session, size_t tensor,
                                              const char* path, cinch_error* error);

/* NOLINTEND(modernize-*,readability-identifier-naming,performance-enum-size) */

#ifdef __cplusplus
}
#endif

#endif
