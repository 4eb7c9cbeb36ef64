/* SPDX-License-Identifier: Apache-2.0 */
/* watching.h - `observe:` of a worker put into force. */
#ifndef TENREC_WORKER_WATCHING_H
#define TENREC_WORKER_WATCHING_H

#include <tenrec/rpc.h>

struct config_observe;

/* A worker has started, or stops. */
tenrec_status watching_start(struct tenrec_worker *w, tenrec_error *err);
void watching_stop(struct tenrec_worker *w);

/* Puts changed values into force. */
void watching_set(struct tenrec_worker *w, const struct config_observe *o);

#endif
