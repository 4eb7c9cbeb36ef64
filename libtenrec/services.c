/* SPDX-License-Identifier: Apache-2.0 */
#include "libtenrec/services.h"

#include <tenrec/chain.h>

#include "core/plugin/plugin.h"
#include "observe/metrics/metrics.h"
#include "observe/profiler/profiler.h"
#include "observe/recorder/recorder.h"
#include "rpc/gather/gather.h"
#include "rpc/link/link.h"
#include "rpc/monitor/monitor.h"
#include "rpc/region/region.h"
#include "rpc/rref/rref.h"
#include "rpc/weights/weights.h"
#include "rpc/worker/worker.h"

const struct service *const worker_services[SERVICES] = {
    [SERVICE_METRICS] = &metrics_service,   [SERVICE_RECORDER] = &recorder_service,
    [SERVICE_PROFILER] = &profiler_service, [SERVICE_RREF] = &rref_service,
    [SERVICE_REGION] = &region_service,     [SERVICE_WEIGHTS] = &weights_service,
    [SERVICE_MEMBER] = &member_service,     [SERVICE_GATHER] = &gather_service,
    [SERVICE_LINK] = &link_service,
};

tenrec_status tenrec_worker_new(const struct tenrec_config *config, struct tenrec_worker **ret,
                                tenrec_error *err)
{
    struct tenrec_chain_options *options;
    struct tenrec_config *own = NULL;
    tenrec_status st = TENREC_OK;

    *ret = NULL;
    if (!config)
        st = tenrec_config_load(NULL, &own, err);
    if (st == TENREC_OK)
        st = tenrec_chain_options_new(config ? config : own, &options, err);
    if (st == TENREC_OK)
        st = worker_new(config ? config : own, options, worker_services, ret, err);
    tenrec_config_drop(own);
    return st;
}

/* Without a name: what the default configuration names. */
static bool services_available(void)
{
    struct tenrec_chain_options *options = NULL;
    struct tenrec_config *config = NULL;
    bool found;

    found = tenrec_config_load(NULL, &config, NULL) == TENREC_OK &&
            tenrec_chain_options_new(config, &options, NULL) == TENREC_OK;
    tenrec_chain_options_drop(options);
    tenrec_config_drop(config);
    return found;
}

bool tenrec_is_available(const char *backend)
{
    struct plugin *b = NULL;

    if (!backend)
        return services_available();
    if (plugin_get(backend, &b, NULL) != TENREC_OK)
        return false;
    plugin_put(b);
    return true;
}
