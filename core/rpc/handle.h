/* SPDX-License-Identifier: Apache-2.0 */
/* handle.h - references as values see them: a value shares and drops the handles that it
 * holds, whatever is behind them. */
#ifndef TENREC_RPC_HANDLE_H
#define TENREC_RPC_HANDLE_H

struct tenrec_rref;

struct handle_ops {
    struct tenrec_rref *(*share)(struct tenrec_rref *r);
    void (*drop)(struct tenrec_rref *r); /* not NULL */
};

/* What each reference begins with. */
struct handle {
    const struct handle_ops *ops;
};

static inline const struct handle_ops *handle_ops_of(struct tenrec_rref *r)
{
    return ((const struct handle *)(const void *)r)->ops;
}

#endif
