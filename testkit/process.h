/* SPDX-License-Identifier: Apache-2.0 */
/* process.h - members in processes of their own, and the process that serves their store. */
#ifndef TENREC_TESTKIT_PROCESS_H
#define TENREC_TESTKIT_PROCESS_H

#include "testkit/member.h"

/* Starts the member; its output goes to a file in the group's folder.
 *
 * errors   EOS
 */
tenrec_status process_start(struct member *m, tenrec_error *err);

/* Returns true once the process has ended; m->exit is set then. Never blocks. */
bool process_ended(struct member *m);

/* "exited with status 3", "was killed by signal 11 (Segmentation fault)". */
void process_how(const struct member *m, char *ret, size_t room);

/* Serves a TCP store in a new process until process_end_store; fills in s->store.
 *
 * ret_pid  its process
 * errors   EOS
 */
tenrec_status process_serve_store(struct setting *s, int *ret_pid, tenrec_error *err);
void process_end_store(int pid);

/* The last bytes of the member's output, at most room - 1. */
void process_output(const struct member *m, char *ret, size_t room);

#endif
