/* SPDX-License-Identifier: Apache-2.0 */
/* future_scope.h - scopes, which collect the futures made on a thread. Per thread, no locks. */
#ifndef TENREC_FUTURE_FUTURE_SCOPE_H
#define TENREC_FUTURE_FUTURE_SCOPE_H

#include <tenrec/future.h>

/* The futures of one scope, each shared. */
struct future_scope {
    struct future_scope *outer;
    struct tenrec_future **future;
    size_t n, room;
};

/* Adds `f` (shared) to the innermost scope of this thread, if there is one. errors: ENOMEM */
tenrec_status future_scope_add(struct tenrec_future *f, tenrec_error *err);

/* Closes the innermost scope of this thread; the caller owns it. Returns NULL if no scope is open.
 */
struct future_scope *future_scope_close(void);

/* Drops the futures of a closed scope, and the scope. */
void future_scope_drop(struct future_scope *s);

/* Drops and logs the scopes that `name`, a function or callback on this thread, left open. */
void future_scope_abandon(const char *name);

#endif
