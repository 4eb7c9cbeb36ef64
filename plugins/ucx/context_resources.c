/* SPDX-License-Identifier: Apache-2.0 */
/* context_resources.c - the text of a context's transports and devices. */
#include "resources.h"

#include "ucx.h"

tenrec_status resources_read(struct ucp_context *context, struct resources *ret, tenrec_error *err)
{
    size_t len;
    FILE *out = open_memstream(&ret->text, &len);

    if (!out)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for UCX's list of transports");
    ucp_context_print_info(context, out);
    if (fclose(out) == 0)
        return TENREC_OK;
    resources_drop(ret);
    return tenrec_fail(err, TENREC_ENOMEM, "no memory for UCX's list of transports");
}

tenrec_status resources_find(const struct ucx_options *o, struct resources *ret, tenrec_error *err)
{
    ucp_context_h context;
    ucp_config_t *config;
    tenrec_status st = o ? context_config(o, context_is_loopback(o->listen), &config, err)
                         : context_config_all(&config, err);

    if (st != TENREC_OK)
        return st;
    st = context_init(config, &context, err);
    ucp_config_release(config);
    if (st != TENREC_OK)
        return st;
    st = resources_read(context, ret, err);
    ucp_cleanup(context);
    return st;
}
