/* SPDX-License-Identifier: Apache-2.0 */
/* wanted.h - connections that the pipes of an agent wait for in their handshakes. Loop thread
 * only. */
#ifndef TENSORPIPE_WANTED_H
#define TENSORPIPE_WANTED_H

#include "transport/conn.h"

struct pipe;

struct registration {
    uint64_t id;       /* random */
    struct pipe *pipe; /* borrowed: the pipe withdraws it */
    enum conn_role role;
};

/* Zeroed: empty. */
struct wanted {
    struct registration *list;
    size_t n, cap;
};

/* The pipe wants a connection of its transport, which brings the id. errors: ENOMEM, EOS */
tenrec_status wanted_add(struct wanted *w, struct pipe *p, enum conn_role role, uint64_t *ret_id);
/* Returns NULL if no pipe waits for this id; borrowed until the next change. */
const struct registration *wanted_find(const struct wanted *w, uint64_t id);
void wanted_remove(struct wanted *w, uint64_t id);
/* Forgets all that `p` still waits for. */
void wanted_withdraw(struct wanted *w, const struct pipe *p);
void wanted_finish(struct wanted *w);

#endif
