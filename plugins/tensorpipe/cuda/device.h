/* SPDX-License-Identifier: Apache-2.0 */
/* device.h - the devices of this process: contexts, streams, events.
 *
 * All of it is of the process, not of an agent, and lives as long. A function that
 * takes a device makes the device's primary context current itself, and gives the
 * thread back the one that it had: the program may use CUDA on that thread too. */
#ifndef TENSORPIPE_CUDA_DEVICE_H
#define TENSORPIPE_CUDA_DEVICE_H

#include "cuda/driver.h"
#include <tenrec/agent.h>

#define DEVICES_MAX 16
#define DEVICE_STREAMS 32 /* as many as torch's pool has */

/* How many there are. Loads the driver at the first call; makes no context.
 *
 * errors   EUNSUPPORTED: there is none, and why
 */
tenrec_status devices_open(uint32_t *ret_n, tenrec_error *err);

/* Which of them has that number, which is the same in all processes; -1: none. */
int device_of_uuid(const unsigned char uuid[16]);
bool device_uuid(int index, unsigned char ret[16]);
/* Returns true if `from` can access the memory of `to`. */
bool device_reaches(int from, int to);

/* Makes sure that there is such a device. errors: EINVAL, EUNSUPPORTED */
tenrec_status device_check(int index, tenrec_error *err);

/* Between the two the device's context is current. They nest: a function that calls several which
 * enter a device enters it first, which saves calls of the driver. No code of the program may run
 * between them. After a failure leave nothing.
 * errors   EINVAL (no such device), EOS */
tenrec_status device_enter(int index, tenrec_error *err);
void device_leave(void);

/* A point in the work of a stream. */
struct device_event {
    struct device_event *next;
    struct CUevent_st *event;
    int device;
    bool shared; /* other processes may wait for it: `handle` */
    struct driver_ipc_event handle;
};

/* Returns it to the process's store for reuse: no reference may remain. NULL is fine. */
void device_event_give(struct device_event *e);
/* TENREC_EAGAIN when it is not there yet. */
tenrec_status device_event_query(struct device_event *e, tenrec_error *err);
/* An event of the store behind what is on `s` now. After a failure there is none. */
tenrec_status device_event_mark(const struct tenrec_stream *s, bool shared,
                                struct device_event **ret, tenrec_error *err);
/* What is queued on `s` from now on waits for the event. */
tenrec_status device_event_wait(const struct tenrec_stream *s, const struct device_event *e,
                                tenrec_error *err);

/* Queues a copy on `s`, within devices and from and to pinned memory of the host. */
tenrec_status device_copy(const struct tenrec_stream *s, void *to, const void *from, uint64_t bytes,
                          tenrec_error *err);
/* Waits until the present work on `s` is complete. */
tenrec_status device_stream_wait(const struct tenrec_stream *s, tenrec_error *err);

/* What the core asks of devices. */
extern const struct tenrec_device_ops cuda_device_ops;

/* Counts the users of devices; the last one frees the recycled events and memory. */
void devices_hold(void);
void devices_let_go(void);
bool devices_held(void);

/* memory.c: memory of devices for tensors that arrive.
 *
 * What is dropped is kept for the next tensor, in the order of streams: the next
 * one to use it waits on its device, not here. Each piece is an allocation of its
 * own, so that a peer which maps one sees no other tensor. */

/* Memory that may be used on `s` at once. errors: ENOMEM, EOS */
tenrec_status device_memory_new(const struct tenrec_stream *s, uint64_t bytes, void **ret,
                                tenrec_error *err);
/* Frees the memory once the present work on `s` is complete. */
void device_memory_drop(const struct tenrec_stream *s, void *data);

/* Limit of the recycled bytes per device; memory beyond it returns to the driver when it is
 * dropped. The largest of all callers' counts. */
void device_memory_keep(uint64_t bytes);
/* Gives back what is kept. */
void device_memory_trim(int index);

/* handover.c: memory of devices that agents of one process lend each other.
 *
 * What travels is a number, never an address: a peer that names what was not lent,
 * or was taken already, gets nothing. Of the process; of any thread. */

enum handover_state { HANDOVER_OFFERED, HANDOVER_TAKEN, HANDOVER_RETURNED };

struct handover {
    struct handover *next; /* under the lock of handover.c, as state */
    enum handover_state state;
    uint64_t number, bytes;
    const void *data;
    struct device_event *event;
};

/* `bytes` at `data`, which are valid after `event`. Both belong to the lender until the handover
 * has ended. NULL: out of memory. */
struct handover *handover_offer(const void *data, uint64_t bytes, struct device_event *event);
/* Returns true if no borrower has the memory, or has it any more: then the handover is freed. */
bool handover_end(struct handover *l, bool withdraw);

/* The borrower's side. NULL: no memory of that number and length is offered. */
struct handover *handover_take(uint64_t number, uint64_t bytes);
void handover_return(struct handover *l);

#endif
