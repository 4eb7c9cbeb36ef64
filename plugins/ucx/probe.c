/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include "resources.h"
#include "ucx.h"

#include <stdlib.h>
#include <string.h>

/* What keeps a transport from being used, beside the options. */
enum family { NETWORK, IB, SHARED, DEVICE, OWN };

static const struct {
    const char *name;
    enum family family;
} known[] = {
    { "tcp", NETWORK },      { "rc_verbs", IB },     { "rc_mlx5", IB },      { "dc_mlx5", IB },
    { "ud_verbs", IB },      { "ud_mlx5", IB },      { "posix", SHARED },    { "sysv", SHARED },
    { "xpmem", SHARED },     { "cma", SHARED },      { "knem", SHARED },     { "self", OWN },
    { "cuda_copy", DEVICE }, { "cuda_ipc", DEVICE }, { "rocm_ipc", DEVICE },
};

/* Why `all` does not have it. */
static void probe_why_missing(const struct resources *all, const char *name, enum family family,
                              char why[RESOURCES_WHY])
{
    char devices[64];

    if (family == IB && strstr(name, "mlx5") && resources_has(all, "rc_verbs", devices, 64))
        snprintf(why, RESOURCES_WHY, "%s is no mlx5 device, or this UCX was built without mlx5",
                 devices);
    else if (family == IB)
        resources_why_no_ib(all, why);
    else if (family == NETWORK)
        snprintf(why, RESOURCES_WHY, "no network interface is up");
    else if (strcmp(name, "cma") == 0 && resources_has_component(all, "cma"))
        snprintf(why, RESOURCES_WHY,
                 "process_vm_readv is not permitted: CAP_SYS_PTRACE, or the seccomp profile of the "
                 "container");
    else
        snprintf(why, RESOURCES_WHY, "UCX does not find it on this machine");
}

/* Shared memory of UCX serves no endpoint that reports errors, unless this variable says so. */
static bool shared_serves(void)
{
    const char *value = secure_getenv("UCX_MM_ERROR_HANDLING");

    return value && (*value == 'y' || *value == 'Y' || *value == '1');
}

static void probe_one(const struct resources *all, const struct resources *ours, const char *name,
                      enum family family, tenrec_sink_fn *sink, void *arg)
{
    char key[80], devices[128], why[RESOURCES_WHY], value[RESOURCES_WHY + 16];

    snprintf(key, sizeof key, "transport.%s", name);
    snprintf(value, sizeof value, "viable");
    *why = '\0';
    if (family == DEVICE)
        snprintf(why, sizeof why, "backend ucx carries memory of the host only");
    else if (!resources_has(all, name, devices, sizeof devices))
        probe_why_missing(all, name, family, why);
    else if (family == SHARED && !shared_serves())
        snprintf(why, sizeof why,
                 "UCX reports no lost peer over it: UCX_MM_ERROR_HANDLING is not set");
    else if (!resources_has(ours, name, devices, sizeof devices))
        snprintf(why, sizeof why,
                 "the options tls and devices, or UCX_TLS and UCX_NET_DEVICES, leave it out");
    else if (family != OWN)
        snprintf(value, sizeof value, "viable, on %s", devices);
    if (*why)
        snprintf(value, sizeof value, "not viable: %s", why);
    sink(arg, key, value);
}

static bool is_known(const char *name)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(known[i].name, name) == 0)
            return true;
    return false;
}

/* Those of newer versions of UCX. */
static void probe_unknown(const struct resources *all, const struct resources *ours,
                          tenrec_sink_fn *sink, void *arg)
{
    char name[64], device[64], last[64] = "";
    size_t at = 0;

    while (resources_next(all, &at, name, device)) {
        if (strcmp(name, last) != 0 && !is_known(name))
            probe_one(all, ours, name, NETWORK, sink, arg);
        memcpy(last, name, sizeof last);
    }
}

struct unused {
    tenrec_sink_fn *sink;
    void *arg;
};

static void on_probed(void *arg, const char *key, const char *value)
{
    const struct unused *to = arg;
    static const char mark[] = "not viable: ";
    char longer[96];

    if (strncmp(value, mark, sizeof mark - 1) != 0)
        return;
    snprintf(longer, sizeof longer, "not_used.%s", key);
    to->sink(to->arg, longer, value + sizeof mark - 1);
}

void probe_push_unused(const void *options, tenrec_sink_fn *sink, void *arg)
{
    struct unused to = { sink, arg };

    probe_push(options, on_probed, &to);
}

void probe_push(const void *options, tenrec_sink_fn *sink, void *arg)
{
    struct resources all = { NULL }, ours = { NULL };
    char value[sizeof((tenrec_error *)0)->text + 32];
    tenrec_error err;

    sink(arg, "ucx", ucp_get_version_string());
    if (resources_find(NULL, &all, &err) != TENREC_OK) {
        snprintf(value, sizeof value, "not viable: %s", err.text);
        sink(arg, "transport.tcp", value);
        return;
    }
    if (resources_find(options, &ours, &err) != TENREC_OK) {
        sink(arg, "options", err.text);
        ours.text = calloc(1, 1);
    }
    if (ours.text) {
        for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
            probe_one(&all, &ours, known[i].name, known[i].family, sink, arg);
        probe_unknown(&all, &ours, sink, arg);
    }
    resources_drop(&ours);
    resources_drop(&all);
}
