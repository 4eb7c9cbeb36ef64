/* SPDX-License-Identifier: Apache-2.0 */
/* export.h - memory of this process that others map.
 *
 * The driver makes a handle by a system call. An allocation has a number of its own for
 * the process's life, so its handle is made once, and kept beside that number. */
#ifndef TENSORPIPE_CUDA_EXPORT_H
#define TENSORPIPE_CUDA_EXPORT_H

#include "cuda/driver.h"
#include <tenrec/error.h>

/* An allocation. */
struct export
{
    driver_address base;
    uint64_t len;    /* bytes */
    uint64_t buffer; /* its number; 0 of no allocation */
    struct driver_ipc_memory handle;
};

/* The allocation around `at`, a place in memory of device `index`, whose context is current.
 *
 * errors   EOS: the driver does not share it, such as that of cuMemAllocAsync
 */
tenrec_status export_find(int index, driver_address at, struct export *ret, tenrec_error *err);

#endif
