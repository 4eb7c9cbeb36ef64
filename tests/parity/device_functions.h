/* SPDX-License-Identifier: Apache-2.0 */
/* device_functions.h - what the workers of the tests with devices serve. */
#ifndef TESTS_PARITY_DEVICE_FUNCTIONS_H
#define TESTS_PARITY_DEVICE_FUNCTIONS_H

#include <tenrec/testkit.h>

/* Devices in arguments are integers: -1 is the host.
 *
 *   gpu_add(x, y)             (x + y).to(0), of two on cuda:1
 *   add(x, y)                 x + y, where they are
 *   gpu_add_given(x, y, x_to, y_to, z_to)   x.to(z_to) + y.to(z_to), where x and y must
 *                             be on x_to and y_to
 *   gpu_add_multi(x, y)       [x.to(0) + y, x - y.to(1)], of cuda:1 and cuda:0
 *   add_return_to_gpus(x, y)  [(x + y).to(0), (x - y).to(1), (x * y).to(2), x.to(3)]
 *   add_to_gpu(x, y)          (x + y).to(0)
 *   add_one(x)                x + 1, where x is
 *   slow_add(x, y)            x + y, late on a stream of its own that is joined
 *   nested_slow_add(to, x, y, z)   slow_add(slow_add(x, y) asked of `to`, z)
 *   gpu_add_wrong(x, y)       x.cpu() + y, which are on two devices
 *   tensor_view(i)            the first 100 x 200 of 1000 x 200, all i, on cuda:0
 *   make_model(device)        weights, all 2, on a device
 *   forward(model, x)         model * x, late; x may be a reference
 *   sum_of(x)                 the sum of its elements, as a number
 *   relay(reference)          its value
 *   sleep_and_set_to_one(x)   answers later: x becomes 1
 *   async_nested_add(to, x, y, z)   answers later: x + y asked of `to`, + z, late
 *   make_object(x), object_increase(object, by), object_sum(object) */
tenrec_status device_functions_setup(struct tenrec_worker *w, int32_t rank, void *arg,
                                     tenrec_error *err);

#endif
