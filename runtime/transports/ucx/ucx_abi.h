/* The interface between the transport and UCX: a module of its own, opened when UCX is first used.
 * Nothing else links UCX or sees its headers. Plain C; both sides check `version`. One thread at a
 * time calls a worker. Functions that return int32_t return 0, or an error of UCX, which is
 * negative. */
#ifndef CINCH_UCX_ABI_H
#define CINCH_UCX_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* This is C: typedefs, enums of its own kind, and names with a prefix.
 * NOLINTBEGIN(modernize-*,readability-identifier-naming,performance-enum-size,cppcoreguidelines-*)
 */

#define CINCH_UCX_ABI_VERSION 3
#define CINCH_UCX_MODULE "libcinch_ucx.so"
#define CINCH_UCX_ENTRY "cinch_ucx_calls_of"

/* One rank's connections to the others, and the messages under way on them. */
typedef struct cinch_ucx_worker cinch_ucx_worker;

/* The receiver's decision about a message that arrives. */
enum {
  CINCH_UCX_DROP, /* discard; the sender is not told */
  CINCH_UCX_KEEP, /* until `take` or `drop` */
  CINCH_UCX_TAKE  /* its bytes go to `room`, and `ended` reports the end */
};

/* A message that arrives. The header is valid only during the call. */
typedef struct cinch_ucx_arrival {
  const void* header;
  size_t header_bytes;
  uint64_t bytes;  /* of the body */
  uint64_t number; /* identifies it for `take` and `drop` */
  /* Set by the receiver if it takes the message at once. */
  void* room;
  uint64_t token;
} cinch_ucx_arrival;

/* Callbacks of `progress` and, for `ended`, of `send` and `take`. They must not call the worker.
 * `context` outlives the worker. */
typedef struct cinch_ucx_events {
  void* context;
  int32_t (*arrived)(void* context, cinch_ucx_arrival* arrival);
  /* A message was sent or taken; its memory is the caller's again. */
  void (*ended)(void* context, uint64_t token, int32_t error);
  /* The connection to a peer failed. Messages to it end with errors. */
  void (*lost)(void* context, uint32_t peer, int32_t error);
} cinch_ucx_events;

typedef struct cinch_ucx_options {
  const char* transports; /* as UCX_TLS; the environment's UCX_TLS overrides it */
  const char* devices;    /* as UCX_NET_DEVICES; the environment's overrides it */
  uint32_t num_peers;
  /* Not 0: a message is sent at once as a whole, not after the receiver has asked for it. On a slow
   * network that saves a round trip, behind everything that is already under way. */
  int32_t sends_at_once;
} cinch_ucx_options;

typedef struct cinch_ucx_calls {
  int32_t (*open)(const cinch_ucx_options* options, const cinch_ucx_events* events,
                  cinch_ucx_worker** worker);
  /* Ends all messages under way, without `ended`: their memory is not used afterwards. */
  void (*close)(cinch_ucx_worker* worker);
  /* The address to which other ranks connect; valid as long as the worker lives. */
  int32_t (*address)(cinch_ucx_worker* worker, const void** bytes, size_t* num_bytes);
  int32_t (*connect)(cinch_ucx_worker* worker, uint32_t peer, const void* address);
  /* Closes the connection at once. Messages to and from the peer end with errors. */
  void (*disconnect)(cinch_ucx_worker* worker, uint32_t peer);
  /* Sends a message. The header, at most 64 bytes, is copied. The body must stay as it is until
   * `ended`, which may be called before this returns. */
  void (*send)(cinch_ucx_worker* worker, uint32_t peer, const void* header, size_t header_bytes,
               const void* body, uint64_t bytes, uint64_t token);
  void (*take)(cinch_ucx_worker* worker, uint64_t number, void* room, uint64_t token);
  void (*drop)(cinch_ucx_worker* worker, uint64_t number);
  /* Advances everything. Returns whether anything progressed. */
  int32_t (*progress)(cinch_ucx_worker* worker);
  /* Are all connections that this side has begun there, over every interface? Returns 1 (yes), 0
   * (call it again after `progress`) or an error. */
  int32_t (*settle)(cinch_ucx_worker* worker);
  /* Accepts no more connections. Call it when `settle` has returned 1 on all ranks. UCX ends the
   * process when a stranger who knows its protocol sends it something wrong, and keeps what a
   * silent one has opened. */
  void (*stop_listening)(cinch_ucx_worker* worker);
  /* Returns when something may have progressed, after `wake`, or after `most_microseconds`. */
  void (*wait)(cinch_ucx_worker* worker, uint64_t most_microseconds);
  /* Makes `wait` return, the running one or the next. From any thread. */
  void (*wake)(cinch_ucx_worker* worker);
  /* Writes the meaning of an error, and what more UCX has said about the last one. */
  void (*error_text)(int32_t error, char* text, size_t room);
} cinch_ucx_calls;

/* Null if the module has another version. */
typedef const cinch_ucx_calls* (*cinch_ucx_calls_of_fn)(uint32_t version);

/* NOLINTEND(modernize-*,readability-identifier-naming,performance-enum-size,cppcoreguidelines-*) */

#ifdef __cplusplus
}
#endif

#endif
