/* SPDX-License-Identifier: Apache-2.0 */
#include "basic_functions.h"

tenrec_status basic_noop(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    (void)c, (void)arg, (void)err;
    return TENREC_OK;
}

tenrec_status basic_add(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    struct tenrec_value sum;
    int64_t a, b;
    tenrec_status st = tenrec_call_get_args(c, err, "ii", &a, &b);

    (void)arg;
    if (st != TENREC_OK)
        return st;
    sum = tenrec_value_int(a + b);
    return tenrec_call_return(c, &sum, err);
}

tenrec_status basic_echo(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    const struct tenrec_value *only;
    tenrec_status st = tenrec_call_get_args(c, err, "v", &only);

    (void)arg;
    return st == TENREC_OK ? tenrec_call_return(c, only, err) : st;
}

tenrec_status basic_identity(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    size_t n;
    const struct tenrec_value *v = tenrec_call_args(c, &n);
    struct tenrec_value all = tenrec_value_array(v, n);

    (void)arg;
    return tenrec_call_return(c, &all, err);
}

tenrec_status basic_register(struct tenrec_worker *w, const struct basic_function *list, size_t n,
                             tenrec_error *err)
{
    tenrec_status st = TENREC_OK;

    for (size_t i = 0; i < n && st == TENREC_OK; i++)
        st = tenrec_worker_register_function(w, list[i].name, list[i].fn, list[i].arg,
                                             list[i].flags, err);
    return st;
}
