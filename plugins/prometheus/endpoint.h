/* SPDX-License-Identifier: Apache-2.0 */
/* endpoint.h - the HTTP server: GET /metrics. */
#ifndef PROMETHEUS_ENDPOINT_H
#define PROMETHEUS_ENDPOINT_H

#include <tenrec/error.h>

struct MHD_Daemon;

/* Makes the answer, on the server's thread.
 *
 * ret      malloced; the server frees it
 * errors   ENOMEM */
typedef tenrec_status endpoint_text_fn(void *arg, char **ret, size_t *ret_len, tenrec_error *err);

struct endpoint {
    endpoint_text_fn *fn;
    void *arg;
    struct MHD_Daemon *daemon; /* NULL: not started */
};

/* listener   taken on success; `fn` and `arg` are set
 * errors     EOS */
tenrec_status endpoint_start(struct endpoint *e, int listener, tenrec_error *err);
void endpoint_stop(struct endpoint *e); /* also if not started */

#endif
