/* SPDX-License-Identifier: Apache-2.0 */
/* ear.h - hears that keys are set: a connection that has subscribed to their
 * channels. Used by one thread. */
#ifndef REDIS_EAR_H
#define REDIS_EAR_H

#include "store.h"

/* Subscribes to the channels of the `n` keys that `missing` marks. */
enum conn_end ear_open(struct redis_store *s, const char *const *keys, uint32_t n,
                       const bool *missing, uint64_t deadline_ns, struct conn **ret,
                       tenrec_error *err);

/* Returns CONN_OK when it is time to look: `count` changes were heard, or none
 * more for a moment after one, or nothing for some seconds, or at the deadline. */
enum conn_end ear_wait(struct conn *ear, uint32_t count, uint64_t deadline_ns, tenrec_error *err);

/* Unsubscribes and keeps the connection for the next wait; `broken`: drops it. */
void ear_close(struct redis_store *s, struct conn *ear, bool broken, uint64_t deadline_ns);

#endif
