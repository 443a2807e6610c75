/* Collectives and stores that a host program provides as C function pointers: a framework's
 * process group, say, and the store by which its ranks found each other. Plans, faults and
 * agreement stay on Cinch's side. */
#ifndef CINCH_TRANSPORT_H
#define CINCH_TRANSPORT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* This is C: typedefs, enums of its own kind, and names with a prefix.
 * NOLINTBEGIN(modernize-*,readability-identifier-naming,performance-enum-size,cppcoreguidelines-*)
 */

enum {
  CINCH_EXCHANGE_SEND,
  CINCH_EXCHANGE_RECEIVE,
  CINCH_EXCHANGE_ALL_REDUCE,
  CINCH_EXCHANGE_REDUCE_SCATTER,
  CINCH_EXCHANGE_ALL_GATHER,
  CINCH_EXCHANGE_ALL_TO_ALL,
  CINCH_EXCHANGE_BROADCAST
};
enum { CINCH_REDUCE_NONE, CINCH_REDUCE_SUM, CINCH_REDUCE_MEAN, CINCH_REDUCE_MIN, CINCH_REDUCE_MAX };
enum { CINCH_ELEMENT_INT, CINCH_ELEMENT_UINT, CINCH_ELEMENT_FLOAT, CINCH_ELEMENT_BFLOAT };

/* One exchange, as Exchange in transport.h, which says for each kind what input, output and
 * their parts are. `peer` is the other rank of a message, or the root of a broadcast. Offsets
 * and sizes are in bytes, by rank; null if the kind has none. All of this stays valid until the
 * exchange ends. */
typedef struct cinch_exchange {
  size_t struct_size;
  int32_t kind;
  uint32_t peer;
  int32_t reduction;
  int32_t element;      /* element type of a reduction */
  int32_t element_bits; /* 8, 16, 32 or 64 */
  const void* input;
  uint64_t input_bytes;
  void* output;
  uint64_t output_bytes;
  const uint64_t* sent_offsets;
  const uint64_t* sent_sizes;
  const uint64_t* received_offsets;
  const uint64_t* received_sizes;
} cinch_exchange;

/* The host's collectives. Functions return 0, or an error code of the host. One thread at a time
 * calls them: the thread that calls cinch_sync_step, opens or finishes, and, during a step in
 * parts, a thread of Cinch. All ranks start collectives in the same order. Messages between two
 * ranks start in the same order on both, for each direction. */
typedef struct cinch_transport_calls {
  size_t struct_size;
  void* context;
  uint32_t rank, world;       /* at most 1024 ranks */
  int32_t sums_in_rank_order; /* are floats added in rank order? */
  int32_t (*start)(void* context, const cinch_exchange* exchange, uint64_t* ticket);
  /* Sets `is_over` to 1 if the exchange has ended; the ticket is then invalid. */
  int32_t (*test)(void* context, uint64_t ticket, int32_t* is_over);
  /* Returns when an exchange may have progressed, or after `most_microseconds`. May be null. */
  void (*wait)(void* context, uint64_t most_microseconds);
  /* Tells that this rank gives up. The host notifies the other ranks, and moves nothing of this
   * rank any more. May be null: then the others find out by their time-outs. */
  void (*abandon)(void* context, const char* why);
  /* Writes the meaning of an error code, with a zero behind it. May be null. */
  void (*error_text)(void* context, int32_t error, char* text, size_t room);
  /* Writes the ranks whose part of the exchange has not arrived, at most `room` of them, and
   * returns how many it wrote, so that a time-out can name them. May be null. */
  size_t (*awaited)(void* context, uint64_t ticket, uint32_t* ranks, size_t room);
} cinch_transport_calls;

/* A store that a host program provides, by which ranks find each other: what one rank puts under
 * a key, the others can get. Functions return 0, or an error code of the host. One thread at a
 * time calls them, and only while a transport is opened. Keys begin with "cinch/". A transport
 * that is opened later over the same store needs new keys, so the host adds a prefix of its own. */
typedef struct cinch_store_calls {
  size_t struct_size;
  void* context;
  int32_t (*put)(void* context, const char* key, const void* value, size_t size);
  /* Waits for the key, at most `timeout_ms`. On entry `size` is the room at `value`; on return
   * it is the value's size. If the value does not fit, nothing is written. Returns
   * CINCH_STORE_NOTHING if the key has not arrived. */
  int32_t (*get)(void* context, const char* key, void* value, size_t* size, uint32_t timeout_ms);
  /* Writes the meaning of an error code, with a zero behind it. May be null. */
  void (*error_text)(void* context, int32_t error, char* text, size_t room);
} cinch_store_calls;
#define CINCH_STORE_NOTHING SIZE_MAX

/* NOLINTEND(modernize-*,readability-identifier-naming,performance-enum-size,cppcoreguidelines-*) */

#ifdef __cplusplus
}
#endif

#endif
