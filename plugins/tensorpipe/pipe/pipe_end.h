/* SPDX-License-Identifier: Apache-2.0 */
/* pipe_end.h - references to a pipe, and how it breaks. */
#ifndef TENSORPIPE_PIPE_END_H
#define TENSORPIPE_PIPE_END_H

#include "reactor/reactor.h"
#include <tenrec/error.h>

struct pipe;

struct pipe_end {
    bool torn_down;
    bool was_established;
    bool seen_empty[2];    /* the sides of `to` since it was taken out */
    struct pipe *next_old; /* of to->old; under its lock, as the last */
    struct reactor_task teardown_task, free_task;
};

void pipe_ref(struct pipe *p);
void pipe_unref(struct pipe *p); /* NULL is fine */
/* Posts a task that keeps the pipe until it ran. */
void pipe_post(struct pipe *p, struct reactor_task *t);
/* The pipe is broken from now on; the loop tears it down. The first reason
 * stays. From any thread, without locks. */
void pipe_fail(struct pipe *p, const tenrec_error *why);
TENREC_PRINTF(4, 5)
void pipe_failf(struct pipe *p, tenrec_status code, int os_errno, const char *fmt, ...);

#endif
