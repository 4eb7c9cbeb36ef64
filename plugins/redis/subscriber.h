/* SPDX-License-Identifier: Apache-2.0 */
/* subscriber.h - a subscriber: a connection that receives a notification when a key is
 * set. Used by one thread. */
#ifndef REDIS_SUBSCRIBER_H
#define REDIS_SUBSCRIBER_H

#include "store.h"

/* Subscribes to the channels of the `n` keys that `missing` marks. */
enum conn_end subscriber_open(struct redis_store *s, const char *const *keys, uint32_t n,
                              const bool *missing, uint64_t deadline_ns, struct conn **ret,
                              tenrec_error *err);

/* Returns CONN_OK when the caller should read the keys: after `count`
 * notifications, a moment after the last of fewer, some seconds without any, or
 * at the deadline. */
enum conn_end subscriber_wait(struct conn *subscriber, uint32_t count, uint64_t deadline_ns,
                              tenrec_error *err);

/* Unsubscribes and keeps the connection for the next wait; drops it if `broken`. */
void subscriber_close(struct redis_store *s, struct conn *subscriber, bool broken,
                      uint64_t deadline_ns);

#endif
