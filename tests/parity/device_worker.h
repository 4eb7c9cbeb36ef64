/* SPDX-License-Identifier: Apache-2.0 */
/* device_worker.h - workers that bodies make, with device maps. */
#ifndef TESTS_PARITY_DEVICE_WORKER_H
#define TESTS_PARITY_DEVICE_WORKER_H

#include "devices.h"

/* Tensors sent from `from` to worker `to` arrive there on `there`. */
struct device_way {
    const char *to;
    struct tenrec_device from, there;
};

/* One with these maps, which lists these devices (0: none are listed); started. */
struct tenrec_worker *device_worker(const struct tenrec_test *t, const struct device_way *way,
                                    size_t n, const struct tenrec_device *device, size_t n_devices);

#endif
