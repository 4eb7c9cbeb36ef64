/* SPDX-License-Identifier: Apache-2.0 */
/* header_check.c - is what cuda/driver.h says of the driver what the Toolkit's
 * cuda.h says? Compiled where that is installed; there is nothing to run. */
#include <cuda.h>

#include <stdint.h>

/* The declarations once more, with cuda.h's own types. */
#define DRIVER_TYPES
#define driver_result CUresult
#define driver_device CUdevice
#define driver_address CUdeviceptr
#define DRIVER_UUID CUuuid
#define DRIVER_IPC_MEMORY CUipcMemHandle
#define DRIVER_IPC_EVENT CUipcEventHandle
#define DRIVER_POINTER_ATTRIBUTE CUpointer_attribute
#include "cuda/driver.h"

#define SAME(name, symbol, parameters)                                                             \
    _Static_assert(__builtin_types_compatible_p(driver_result(*) parameters, __typeof__(&symbol)), \
                   #symbol " takes other parameters");
DRIVER_CALLS(SAME)

/* What driver.h puts in the place of these types. */
_Static_assert(sizeof(CUresult) == sizeof(int), "CUresult");
_Static_assert(sizeof(CUdevice) == sizeof(int), "CUdevice");
_Static_assert(sizeof(CUpointer_attribute) == sizeof(int), "CUpointer_attribute");
_Static_assert(sizeof(CUdeviceptr) == sizeof(unsigned long long), "CUdeviceptr");
_Static_assert(sizeof(CUuuid) == 16 && _Alignof(CUuuid) == 1, "CUuuid");
_Static_assert(sizeof(CUipcMemHandle) == 64 && _Alignof(CUipcMemHandle) == 1, "CUipcMemHandle");
_Static_assert(sizeof(CUipcEventHandle) == 64 && _Alignof(CUipcEventHandle) == 1,
               "CUipcEventHandle");

#define EQUAL(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #ours)
EQUAL(DRIVER_SUCCESS, CUDA_SUCCESS);
EQUAL(DRIVER_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
EQUAL(DRIVER_NOT_READY, CUDA_ERROR_NOT_READY);
EQUAL(DRIVER_BUFFER_ID, CU_POINTER_ATTRIBUTE_BUFFER_ID);
EQUAL(DRIVER_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING);
EQUAL(DRIVER_EVENT_DISABLE_TIMING, CU_EVENT_DISABLE_TIMING);
EQUAL(DRIVER_EVENT_INTERPROCESS, CU_EVENT_INTERPROCESS);
EQUAL(DRIVER_IPC_LAZY_PEER_ACCESS, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
EQUAL(DRIVER_HOST_PORTABLE, CU_MEMHOSTALLOC_PORTABLE);
