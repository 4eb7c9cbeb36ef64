/* SPDX-License-Identifier: Apache-2.0 */
/* member.h - the life of one worker of a group, in a thread or a process. */
#ifndef TENREC_TESTKIT_MEMBER_H
#define TENREC_TESTKIT_MEMBER_H

#include <pthread.h>

#include "testkit/record.h"
#include "testkit/setting.h"

struct member {
    struct tenrec_test test; /* first: what the body has */
    const struct setting *setting;
    struct board *board;
    int64_t deadline;
    bool serves; /* has no body, and waits for the close */
    char name[TENREC_NAME_MAX + 1];

    tenrec_status status; /* of the body */
    tenrec_error err;

    /* While it runs; whoever holds the lock can rely on it. */
    _Atomic(struct tenrec_worker *) worker;
    pthread_mutex_t lock;
    pthread_t thread; /* of a member that is one */
    bool threaded;
    int pid;  /* of a member that is a process; 0 otherwise */
    int exit; /* what waitpid said, once `reaped` */
    bool reaped;
    tenrec_status noted; /* what the group says of a member that cannot */
    tenrec_error note;
};

/* Shuts the worker of a thread down at once, from another thread. */
void member_give_up(struct member *m);

/* From the configuration to the end; tells the board. */
void member_run(struct member *m);

#endif
