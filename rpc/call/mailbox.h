/* SPDX-License-Identifier: Apache-2.0 */
/* mailbox.h - calls that wait until the program receives them. */
#ifndef TENREC_CALL_MAILBOX_H
#define TENREC_CALL_MAILBOX_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <tenrec/rpc.h>

struct pool_task;

struct mailbox {
    pthread_mutex_t lock; /* guards the fields below */
    pthread_cond_t moved; /* a call has arrived, or closed */
    struct pool_task *first, **last;
    size_t calls;
    uint64_t bytes; /* of these calls */
    bool closed;
};

void mailbox_init(struct mailbox *m);
void mailbox_finish(struct mailbox *m);

/* The function of a mailbox, which is inline and answers later; `arg` is the mailbox. errors:
 * EAGAIN (it holds as much as the limits of the pool's queue permit), ESHUTDOWN */
tenrec_function_fn mailbox_put;

/* Waits for a call, which it no longer holds then. Returns NULL at the deadline, or if the mailbox
 * is closed. */
struct tenrec_call *mailbox_wait(struct mailbox *m, uint64_t until, bool *ret_closed);

/* Wakes its receivers, and returns the calls that it held; calls are refused until it opens. */
struct pool_task *mailbox_close(struct mailbox *m);
void mailbox_open(struct mailbox *m);

#endif
