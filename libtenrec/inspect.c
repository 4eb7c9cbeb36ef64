/* SPDX-License-Identifier: Apache-2.0 */
/* inspect.c - what each room that observes a worker shows of it, by one function. */
#include <tenrec/observe.h>

#include "observe/metrics/metrics.h"
#include "observe/profiler/profiler.h"
#include "observe/recorder/dump.h"

static const struct inspection {
    const char *function; /* by which another worker answers */
    worker_value_fn *value;
} inspections[] = {
    [TENREC_INSPECT_DEBUG_INFO] = { DEBUG_INFO_FUNCTION, debug_info_value },
    [TENREC_INSPECT_METRICS] = { METRICS_FUNCTION, metrics_value },
    [TENREC_INSPECT_DUMP] = { DUMP_FUNCTION, dump_value },
};

static tenrec_status inspect_copy(void *arg, const struct tenrec_value *v, tenrec_error *err)
{
    return tenrec_value_copy(v, arg, err);
}

tenrec_status tenrec_worker_inspect(struct tenrec_worker *w, const char *to,
                                    enum tenrec_inspection what,
                                    const struct tenrec_call_options *options,
                                    struct tenrec_value **ret, tenrec_error *err)
{
    const size_t i = what;

    if (!ret)
        return tenrec_fail(err, TENREC_EINVAL, "inspect: ret is NULL");
    *ret = NULL;
    if (i >= sizeof inspections / sizeof inspections[0])
        return tenrec_fail(err, TENREC_EINVAL,
                           "inspect: unknown inspection %zu, expected a TENREC_INSPECT_*", i);
    if (to)
        return tenrec_rpc_sync(w, to, inspections[i].function, NULL, 0, options, ret, err);
    return inspections[i].value(w, inspect_copy, ret, err);
}
