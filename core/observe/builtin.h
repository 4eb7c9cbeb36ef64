/* SPDX-License-Identifier: Apache-2.0 */
/* builtin.h - the functions that every worker serves, by which other workers inspect it. Their
 * names begin with FUNCTION_RESERVED_PREFIX. */
#ifndef TENREC_OBSERVE_BUILTIN_H
#define TENREC_OBSERVE_BUILTIN_H

#include <tenrec/rpc.h>

struct functions;

/* errors: ENOMEM */
tenrec_status builtin_add(struct functions *f, tenrec_error *err);

#endif
