/* SPDX-License-Identifier: Apache-2.0 */
/* scope.h - collects the futures made on a thread. */
#ifndef TENREC_RPC_SCOPE_H
#define TENREC_RPC_SCOPE_H

#include <tenrec/future.h>

struct scope;

/* Remembers f (shared once more) in the innermost scope of this thread, if
 * there is one. errors: ENOMEM */
tenrec_status scope_add(struct tenrec_future *f, tenrec_error *err);

/* Lets go of what `who`, who ran on this thread, has left open, and says so. */
void scope_abandon(const char *who);

#endif
