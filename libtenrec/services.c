/* SPDX-License-Identifier: Apache-2.0 */
#include "libtenrec/services.h"

#include "observe/metrics/metrics.h"
#include "observe/profiler/builtin.h"
#include "observe/recorder/recorder.h"
#include "rpc/member/membership.h"
#include "rpc/rref/rref_call.h"
#include "rpc/worker/parts.h"

const struct service *const worker_services[SERVICES] = {
    [SERVICE_METRICS] = &metrics_service,   [SERVICE_RECORDER] = &recorder_service,
    [SERVICE_PROFILER] = &profiler_service, [SERVICE_RREF] = &rref_service,
    [SERVICE_MEMBER] = &member_service,
};

tenrec_status tenrec_worker_new(const struct tenrec_config *config, struct tenrec_worker **ret,
                                tenrec_error *err)
{
    return worker_new(config, worker_services, ret, err);
}
