/* SPDX-License-Identifier: Apache-2.0 */
/* member.h - the life of a worker of a group, in a thread or a process. member.lock guards the
 * worker against a shutdown from another thread. */
#ifndef TENREC_TESTKIT_MEMBER_H
#define TENREC_TESTKIT_MEMBER_H

#include <pthread.h>

#include "testkit/record.h"
#include "testkit/setting.h"

struct member {
    struct tenrec_test test; /* first; given to the body */
    const struct setting *setting;
    struct board *board;
    int64_t deadline;
    bool serves; /* has no body, and waits for the close */
    char name[TENREC_NAME_MAX + 1];

    tenrec_status status; /* of the body */
    tenrec_error err;

    /* Set while the worker runs; does not change while the lock is held. */
    _Atomic(struct tenrec_worker *) worker;
    pthread_mutex_t lock;
    pthread_t thread; /* of a threaded member */
    bool threaded;
    int pid;  /* of a member that is a process; 0 otherwise */
    int exit; /* status of waitpid, once `reaped` */
    bool reaped;
    tenrec_status noted; /* set by the group for a member that crashed or hangs */
    tenrec_error note;
};

/* What the member tells the others of itself. */
static inline struct record *member_record(const struct member *m)
{
    return &m->board->worker[m->test.rank];
}

/* Shuts the worker of a thread down at once, from another thread. */
void member_give_up(struct member *m);

/* Runs the member from its configuration to the leak check; writes the result to the board. */
void member_run(struct member *m);

#endif
