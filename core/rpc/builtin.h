/* SPDX-License-Identifier: Apache-2.0 */
/* builtin.h - the functions that every worker has from its birth, so that others
 * can look into it. Their names begin with BUILTIN_PREFIX, which nobody else may
 * use. What they do belongs to the layers above this one, so the table does too:
 * core/observe/builtin.c. */
#ifndef TENREC_RPC_BUILTIN_H
#define TENREC_RPC_BUILTIN_H

#include <tenrec/rpc.h>

#define BUILTIN_PREFIX "tenrec."

struct builtin {
    const char *name; /* NULL at the end of the table */
    tenrec_function_fn *fn;
    uint32_t flags; /* enum tenrec_function_flags */
};

extern const struct builtin builtin_functions[];

#endif
