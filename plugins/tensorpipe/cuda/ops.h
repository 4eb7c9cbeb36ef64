/* SPDX-License-Identifier: Apache-2.0 */
/* ops.h - what the core asks of devices. */
#ifndef TENSORPIPE_CUDA_OPS_H
#define TENSORPIPE_CUDA_OPS_H

#include <tenrec/agent.h>

extern const struct tenrec_device_ops cuda_device_ops;

#endif
