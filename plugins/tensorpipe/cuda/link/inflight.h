/* SPDX-License-Identifier: Apache-2.0 */
/* inflight.h - device work that is not known to be complete.
 *
 * No thread waits for a device: while work is in flight the loop thread polls from time to time,
 * every 10 us at first and every millisecond while nothing completes. (The driver could call us
 * instead. It does not when an earlier work of the stream has failed, and then the message would
 * wait for ever.) Works of one stream complete in order. All of it is the loop thread's. */
#ifndef TENSORPIPE_CUDA_INFLIGHT_H
#define TENSORPIPE_CUDA_INFLIGHT_H

#include "cuda/device.h"
#include "reactor/reactor.h"

struct inflight {
    struct inflight *next;
    struct device_event *event; /* owns; recorded behind the work */
    struct tenrec_stream stream;
    /* `why` is NULL when it is done, else the driver failed. Takes `f`. */
    void (*landed)(struct inflight *f, const tenrec_error *why);
};

struct inflight_list {
    struct reactor *reactor;
    struct reactor_timer timer;
    struct inflight *first, **last;
    uint64_t gap_ns;
    unsigned lookouts;                     /* events other than works in flight to poll for */
    void (*look)(struct inflight_list *f); /* at those; after each round */
};

void inflight_list_init(struct inflight_list *fs, struct reactor *r,
                        void (*look)(struct inflight_list *fs));
/* Queues a copy on `s` (device_copy), and polls for its completion. After a failure no copy is
 * under way, and `landed` is not called. */
tenrec_status inflight_copy(struct inflight_list *fs, struct inflight *f,
                            const struct tenrec_stream *s, void *to, const void *from,
                            uint64_t bytes, tenrec_error *err);
/* Something else is worth looking at soon. */
void inflight_list_look_soon(struct inflight_list *fs);
/* Polls until nothing is left, for `ms` at most. Returns false if something is. */
bool inflight_list_finish(struct inflight_list *fs, uint32_t ms);

#endif
