/* SPDX-License-Identifier: Apache-2.0 */
#include "device_worker.h"

#include "device_functions.h"
#include "own.h"

/* Two devices may be one, see device_index. */
static bool is_mapped(const struct device_way *way, size_t n, const struct device_way *one)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(way[i].to, one->to) == 0 && same_device(way[i].from, one->from))
            return true;
    return false;
}

struct tenrec_worker *device_worker(const struct tenrec_test *t, const struct device_way *way,
                                    size_t n, const struct tenrec_device *device, size_t n_devices)
{
    struct tenrec_worker *w = NULL;
    tenrec_error err;

    assert_status(own_worker(t, device_functions_setup, NULL, NULL, &w, &err), &err);
    for (size_t i = 0; i < n; i++) {
        const struct tenrec_device_pair pair = { way[i].from, way[i].there };

        if (!is_mapped(way, i, &way[i]))
            assert_status(tenrec_worker_set_device_map(w, way[i].to, &pair, 1, &err), &err);
    }
    if (n_devices > 0)
        assert_status(tenrec_worker_set_devices(w, device, n_devices, &err), &err);
    assert_status(tenrec_init_rpc(w, &err), &err);
    devices_use(w);
    return w;
}
