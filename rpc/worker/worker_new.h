/* SPDX-License-Identifier: Apache-2.0 */
/* worker_new.h - what libtenrec makes a worker of. */
#ifndef TENREC_WORKER_WORKER_NEW_H
#define TENREC_WORKER_WORKER_NEW_H

#include <tenrec/chain.h>
#include <tenrec/rpc.h>

struct functions;
struct service;

/* tenrec_worker_new with a table of services. `config` is borrowed during the call, `options`
 * (those of a chain with this configuration) are taken always. */
tenrec_status worker_new(const struct tenrec_config *config, struct tenrec_chain_options *options,
                         const struct service *const *services, struct tenrec_worker **ret,
                         tenrec_error *err);

/* set.c: adds the function "tenrec.set", by which an operator changes a running worker. errors:
 * ENOMEM */
tenrec_status set_serve(struct functions *f, tenrec_error *err);

#endif
