/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/agent.h"
#include "channel/channel.h"
#include "cuda/link/link.h"
#include "transport/ring/transport_ring.h"

static bool not_built(char why[], size_t cap)
{
    snprintf(why, cap, "this build does not have it");
    return false;
}

static bool shm_viable(char why[], size_t cap)
{
    return transport_ring.viable(why, cap);
}

const struct registry_entry registry_transports[] = {
    { "shm", true, shm_viable },
    { "ibv", true, not_built },
    { "uv", true, NULL },
    { NULL, false, NULL },
};

const struct registry_entry registry_channels[] = {
    { "cma", true, cma_viable },
    { "mpt_uv", true, not_built },
    { "xth", true, not_built },
    { "basic", true, NULL },
    { "cuda_xth", false, cuda_viable },
    { "cuda_ipc", false, cuda_viable },
    { "cuda_gdr", false, not_built },
    { "cuda_basic", false, cuda_viable },
    { NULL, false, NULL },
};

bool registry_viable(const struct registry_entry *k, char why[REGISTRY_WHY])
{
    *why = '\0';
    return !k->viable || k->viable(why, REGISTRY_WHY);
}

static bool is_listed(const struct tenrec_option_list *list, const char *name)
{
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->v[i].s, name) == 0)
            return true;
    return false;
}

tenrec_status registry_check(const struct registry_entry *all, const char *what,
                             const struct tenrec_option_list *list, tenrec_error *err)
{
    char text[256] = "", here[64] = "", why[REGISTRY_WHY];
    size_t n = 0, k = 0;

    for (; all->name; all++) {
        const bool listed = is_listed(list, all->name), viable = registry_viable(all, why);

        if (viable && listed)
            return TENREC_OK;
        if (viable && k < sizeof here)
            k += (size_t)snprintf(here + k, sizeof here - k, "%s%s", k ? ", " : "", all->name);
        else if (listed && n < sizeof text)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%s: %s", n ? "; " : "", all->name,
                                  why);
    }
    return tenrec_fail(err, TENREC_ECONFIG,
                       "%s: none is left that can be used here (%s), expected at least one of %s",
                       what, *text ? text : "the list is empty", here);
}

void registry_tell_unused(const struct registry_entry *all, const char *what, const char *used,
                          const struct tenrec_option_list *list, tenrec_sink_fn *sink, void *arg)
{
    char key[64], why[REGISTRY_WHY];

    for (; all->name && strcmp(all->name, used) != 0; all++) {
        const bool viable = registry_viable(all, why);

        if (!all->host || (viable && is_listed(list, all->name)))
            continue;
        snprintf(key, sizeof key, "not_used.%s.%s", what, all->name);
        sink(arg, key, viable ? "the options do not list it" : why);
    }
}
