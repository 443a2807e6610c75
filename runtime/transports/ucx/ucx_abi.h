/* What the transport asks of UCX, through a module of its own that is opened when UCX is first
 * asked for: nothing else links UCX or sees its headers. Plain C; both sides check `version`. One
 * thread at a time makes the calls of a worker. Functions that return int32_t give 0 or an error of
 * UCX, which is negative. */
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

#define CINCH_UCX_ABI_VERSION 2
#define CINCH_UCX_MODULE "libcinch_ucx.so"
#define CINCH_UCX_ENTRY "cinch_ucx_calls_of"

/* One rank's connections to the others, and the messages that are under way on them. */
typedef struct cinch_ucx_worker cinch_ucx_worker;

/* What the receiver decides about a message that arrives. */
enum {
  CINCH_UCX_DROP, /* the sender is not told */
  CINCH_UCX_KEEP, /* until `take` or `drop` */
  CINCH_UCX_TAKE  /* its bytes go to `room`, and `ended` reports the end */
};

/* A message that arrives. The header is valid during the call only. */
typedef struct cinch_ucx_arrival {
  const void* header;
  size_t header_bytes;
  uint64_t bytes;  /* of the body */
  uint64_t number; /* that `take` and `drop` know it by */
  /* Answers, where the message is taken at once. */
  void* room;
  uint64_t token;
} cinch_ucx_arrival;

/* Functions that `progress` and, for `ended`, `send` and `take` call. They do not call the worker.
 * `context` outlives the worker. */
typedef struct cinch_ucx_events {
  void* context;
  int32_t (*arrived)(void* context, cinch_ucx_arrival* arrival);
  /* A message was sent, or taken: its memory is the caller's again. */
  void (*ended)(void* context, uint64_t token, int32_t error);
  /* The connection to a peer has failed. Messages to it end with errors. */
  void (*lost)(void* context, uint32_t peer, int32_t error);
} cinch_ucx_events;

typedef struct cinch_ucx_options {
  const char* transports; /* as UCX_TLS, which wins where the environment has it */
  const char* devices;    /* as UCX_NET_DEVICES, which wins where the environment has it */
  uint32_t num_peers;
  /* A message is sent at once, as a whole, not after the receiver has asked for it: on a slow
   * network that saves a way there and back, behind all that is on its way already. */
  int32_t sends_at_once;
} cinch_ucx_options;

typedef struct cinch_ucx_calls {
  int32_t (*open)(const cinch_ucx_options* options, const cinch_ucx_events* events,
                  cinch_ucx_worker** worker);
  /* Ends everything that is under way, without `ended`: no memory of messages is used after it. */
  void (*close)(cinch_ucx_worker* worker);
  /* What other ranks connect to; as long as the worker lives. */
  int32_t (*address)(cinch_ucx_worker* worker, const void** bytes, size_t* num_bytes);
  int32_t (*connect)(cinch_ucx_worker* worker, uint32_t peer, const void* address);
  /* Closes the connection at once. Messages to and from the peer end with errors. */
  void (*disconnect)(cinch_ucx_worker* worker, uint32_t peer);
  /* The header, of at most 64 bytes, is copied; the body stays as it is until `ended`, which may
   * come before this returns. */
  void (*send)(cinch_ucx_worker* worker, uint32_t peer, const void* header, size_t header_bytes,
               const void* body, uint64_t bytes, uint64_t token);
  void (*take)(cinch_ucx_worker* worker, uint64_t number, void* room, uint64_t token);
  void (*drop)(cinch_ucx_worker* worker, uint64_t number);
  /* Moves everything on; has something moved? */
  int32_t (*progress)(cinch_ucx_worker* worker);
  /* No more connections are accepted: once all ranks have heard from each other. UCX ends the
   * process when a stranger who knows its protocol sends it something that is wrong. Does nothing
   * where UCX listens at several interfaces, over which it may still be connecting. */
  void (*stop_listening)(cinch_ucx_worker* worker);
  /* Returns when something may have moved, after `wake`, or after so long. */
  void (*wait)(cinch_ucx_worker* worker, uint64_t most_microseconds);
  /* From any thread: `wait`, the running one or the next, returns. */
  void (*wake)(cinch_ucx_worker* worker);
  /* What an error means, and, where UCX has said more about the last one, that. */
  void (*error_text)(int32_t error, char* text, size_t room);
} cinch_ucx_calls;

/* Null: of another version. */
typedef const cinch_ucx_calls* (*cinch_ucx_calls_of_fn)(uint32_t version);

/* NOLINTEND(modernize-*,readability-identifier-naming,performance-enum-size,cppcoreguidelines-*) */

#ifdef __cplusplus
}
#endif

#endif
