#include "known.h"

#define NOT_BUILT "this build does not have it"

const struct known known_transports[] = {
    { "shm", NOT_BUILT, true },
    { "ibv", NOT_BUILT, true },
    { "uv", NULL, true },
    { NULL, NULL, false },
};

const struct known known_channels[] = {
    { "cma", NOT_BUILT, true },
    { "mpt_uv", NOT_BUILT, true },
    { "xth", NOT_BUILT, true },
    { "basic", NULL, true },
    { "cuda_xth", NOT_BUILT, false },
    { "cuda_ipc", NOT_BUILT, false },
    { "cuda_gdr", NOT_BUILT, false },
    { "cuda_basic", NOT_BUILT, false },
    { NULL, NULL, false },
};

static bool is_listed(const struct tenrec_option_list *list, const char *name)
{
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->v[i].s, name) == 0)
            return true;
    return false;
}

tenrec_status known_check(const struct known *all, const char *what,
                          const struct tenrec_option_list *list, tenrec_error *err)
{
    char text[256] = "", here[64] = "";
    size_t n = 0, k = 0;

    for (; all->name; all++) {
        const bool listed = is_listed(list, all->name);

        if (!all->missing && listed)
            return TENREC_OK;
        if (!all->missing && k < sizeof here)
            k += (size_t)snprintf(here + k, sizeof here - k, "%s%s", k ? ", " : "", all->name);
        else if (listed && n < sizeof text)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%s: %s", n ? "; " : "", all->name,
                                  all->missing);
    }
    return tenrec_fail(err, TENREC_ECONFIG,
                       "%s: none is left that can be used here (%s), expected at least %s", what,
                       *text ? text : "the list is empty", here);
}

void known_tell_unused(const struct known *all, const char *what, const char *used,
                       const struct tenrec_option_list *list, tenrec_sink_fn *sink, void *arg)
{
    char key[64];

    for (; all->name && strcmp(all->name, used) != 0; all++) {
        if (!all->host || (!all->missing && is_listed(list, all->name)))
            continue;
        snprintf(key, sizeof key, "not_used.%s.%s", what, all->name);
        sink(arg, key, all->missing ? all->missing : "the options do not list it");
    }
}
