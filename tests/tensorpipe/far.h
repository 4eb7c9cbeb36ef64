/* SPDX-License-Identifier: Apache-2.0 */
/* far.h - nodes that share memory, and worker 1 in a process of its own. */
#ifndef TENSORPIPE_TEST_FAR_H
#define TENSORPIPE_TEST_FAR_H

#include "node.h"

#include <sys/resource.h>

extern const char *const far_modes[3]; /* values of `progress` */

void open_node(struct node *n, tenrec_peer id, const char *progress);
/* Both in this process. group_close ends them. */
void open_pair(struct node n[2], const char *progress);

/* Worker 1 in another process: requests that begin with 'k' are kept, others echoed. */
struct far {
    pid_t pid;
    int fd; /* its end ends the process */
};

/* Worker 0 starts here. To be called while this process has no threads.
 *
 * spare    descriptors that worker 1 may still open; 0: as many as this process */
struct far far_open(struct node n[2], const char *progress, rlim_t spare);
void far_close(struct far *far, struct node n[2]);

/* Returns true if debug_info has `key` with a value that contains `text`. */
bool node_tells(struct node *n, const char *key, const char *text);
/* Fails the test unless worker 1 is reached over `transport`. */
void assert_over(struct node *n, const char *transport);

#endif
