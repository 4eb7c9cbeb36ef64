/* SPDX-License-Identifier: Apache-2.0 */
/* flight.h - what devices have been told to do and is not known to be done.
 *
 * Nobody waits for a device: while something is under way the loop thread looks
 * from time to time, every 10 us at first and every millisecond when nothing comes.
 * (The driver could call us instead. It does not when an earlier work of the
 * stream has failed, and then the message would wait for ever.) What is behind each
 * other on one stream lands in that order. All of it is the loop thread's. */
#ifndef TENSORPIPE_CUDA_FLIGHT_H
#define TENSORPIPE_CUDA_FLIGHT_H

#include "cuda/device.h"
#include "reactor/reactor.h"

struct flight {
    struct flight *next;
    struct device_event *event; /* owns; recorded behind the work */
    struct tenrec_stream stream;
    /* `why` is NULL when it is done, else the driver failed. Takes `f`. */
    void (*landed)(struct flight *f, const tenrec_error *why);
};

struct flights {
    struct reactor *reactor;
    struct reactor_timer timer;
    struct flight *first, **last;
    uint64_t gap_ns;
    unsigned lookouts;               /* things beside flights that are worth a look */
    void (*look)(struct flights *f); /* at those; after each round */
};

void flights_init(struct flights *fs, struct reactor *r, void (*look)(struct flights *fs));
/* Records behind what is on `stream`, and looks from now on. After a failure
 * `landed` is not called. */
tenrec_status flight_start(struct flights *fs, struct flight *f, const struct tenrec_stream *s,
                           tenrec_error *err);
/* Something else is worth looking at soon. */
void flights_look_soon(struct flights *fs);
/* Looks until nothing is left, for `ms` at most. False: something is. */
bool flights_finish(struct flights *fs, uint32_t ms);

#endif
