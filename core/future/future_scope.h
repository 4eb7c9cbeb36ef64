/* SPDX-License-Identifier: Apache-2.0 */
/* future_scope.h - collects the futures made on a thread. */
#ifndef TENREC_FUTURE_FUTURE_SCOPE_H
#define TENREC_FUTURE_FUTURE_SCOPE_H

#include <tenrec/future.h>

/* The futures of one scope, each shared. */
struct future_scope {
    struct future_scope *outer;
    struct tenrec_future **future;
    size_t n, room;
};

/* Remembers f (shared once more) in the innermost scope of this thread, if
 * there is one. errors: ENOMEM */
tenrec_status future_scope_add(struct tenrec_future *f, tenrec_error *err);

/* Takes the innermost scope off this thread; the caller owns it. Returns NULL if no scope is open.
 */
struct future_scope *future_scope_close(void);

/* Drops the futures of a closed scope, and the scope. */
void future_scope_drop(struct future_scope *s);

/* Lets go of what `who`, who ran on this thread, has left open, and says so. */
void future_scope_abandon(const char *who);

#endif
