/* SPDX-License-Identifier: Apache-2.0 */
#include "device_worker.h"

#include "device_functions.h"
#include "own.h"

struct tenrec_worker *device_worker(const struct tenrec_test *t, const struct device_way *way,
                                    size_t n, const struct tenrec_device *device, size_t n_devices)
{
    struct tenrec_worker *w = NULL;
    tenrec_error err;

    assert_status(own_worker(t, device_functions_setup, NULL, NULL, &w, &err), &err);
    for (size_t i = 0; i < n; i++)
        assert_status(
            tenrec_worker_set_device_map(
                w, way[i].to, &(struct tenrec_device_pair){ way[i].from, way[i].there }, 1, &err),
            &err);
    if (n_devices > 0)
        assert_status(tenrec_worker_set_devices(w, device, n_devices, &err), &err);
    assert_status(tenrec_init_rpc(w, &err), &err);
    devices_use(w);
    return w;
}
