/* SPDX-License-Identifier: Apache-2.0 */
/* cluster.h - several workers in one test process. */
#ifndef TESTS_CLUSTER_H
#define TESTS_CLUSTER_H

#include <stddef.h>
#include <tenrec/tenrec.h>

enum { CLUSTER_MAX = 8, CLUSTER_LONG_MS = 30000 /* only a broken test waits so long */ };

struct cluster {
    size_t n;
    struct tenrec_worker *worker[CLUSTER_MAX];
};

/* Registers functions before a worker starts. */
typedef void cluster_setup_fn(struct tenrec_worker *w, size_t rank);

/* Makes and starts `n` workers that meet in a store of their own. `extra`
 * ("worker.num_worker_threads=1", ended by NULL; may be NULL) is set in each
 * configuration. Fails the running test when something does not work. */
void cluster_open(struct cluster *c, size_t n, const char *const *extra, cluster_setup_fn *setup);

/* Shuts all down at once in threads, and drops them. All must return OK. */
void cluster_close(struct cluster *c, enum tenrec_shutdown_mode mode);

/* The backend of what is opened from now on: inproc (default), tensorpipe, or
 * faulty over one of these (faulty_inproc ...), also with rules: doubling_inproc,
 * shuffling_tensorpipe; or meter over limit (meter_inproc ...). `name` is borrowed for ever. */
void cluster_use(const char *name);
const char *cluster_backend(void);

/* A configuration with that backend; owns: tenrec_config_drop it. */
struct tenrec_config *cluster_config(void);

#endif
