/* SPDX-License-Identifier: Apache-2.0 */
/* tenrec/tensor.h - a tensor: memory, element type, shape, and the owner of the memory.
 *
 * A tensor is shared (counted): each holder - the caller, a message that is still being written,
 * a result - keeps its memory alive, so a call that timed out never leads to access to freed
 * memory.
 * Shape and type never change; the elements are yours to synchronise.
 */
#ifndef TENREC_TENSOR_H
#define TENREC_TENSOR_H

#include <stdbool.h>
#include <tenrec/error.h>
#include <tenrec/types.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

#ifdef __cplusplus /* has no compound literals */
#define TENREC_DTYPE(code, bits)                                                                   \
    (tenrec_dtype{ static_cast<uint8_t>(code), static_cast<uint8_t>(bits), 1 })
#else
#define TENREC_DTYPE(code, bits) ((struct tenrec_dtype){ (code), (bits), 1 })
#endif

#define TENREC_UINT8 TENREC_DTYPE(TENREC_DTYPE_UINT, 8)
#define TENREC_INT8 TENREC_DTYPE(TENREC_DTYPE_INT, 8)
#define TENREC_INT16 TENREC_DTYPE(TENREC_DTYPE_INT, 16)
#define TENREC_INT32 TENREC_DTYPE(TENREC_DTYPE_INT, 32)
#define TENREC_INT64 TENREC_DTYPE(TENREC_DTYPE_INT, 64)
#define TENREC_FLOAT16 TENREC_DTYPE(TENREC_DTYPE_FLOAT, 16)
#define TENREC_FLOAT32 TENREC_DTYPE(TENREC_DTYPE_FLOAT, 32)
#define TENREC_FLOAT64 TENREC_DTYPE(TENREC_DTYPE_FLOAT, 64)
#define TENREC_BFLOAT16 TENREC_DTYPE(TENREC_DTYPE_BFLOAT, 16)
#define TENREC_COMPLEX64 TENREC_DTYPE(TENREC_DTYPE_COMPLEX, 64)
#define TENREC_COMPLEX128 TENREC_DTYPE(TENREC_DTYPE_COMPLEX, 128)
#define TENREC_BOOL TENREC_DTYPE(TENREC_DTYPE_BOOL, 8)

struct tenrec_tensor;   /* opaque */
struct DLManagedTensor; /* of <dlpack/dlpack.h> */

/* Frees the memory given to tenrec_tensor_from_desc; from any thread, once. */
typedef void tenrec_tensor_free_fn(void *arg, void *data);

/* Makes a contiguous tensor in host memory, aligned to 64 bytes, contents
 * undefined.
 *
 * shape    ndim lengths in elements, each >= 0; borrowed during the call
 * ret      shares: drop it when done
 * errors   EINVAL (dtype, shape), ETOOBIG (the product overflows), ENOMEM
 * threads  any
 */
tenrec_status tenrec_tensor_new(struct tenrec_dtype dtype, uint32_t ndim, const int64_t *shape,
                                struct tenrec_tensor **ret, tenrec_error *err);

enum tenrec_tensor_alloc_flags {
    TENREC_SHARED = 1u << 0, /* peers on this host may map it: see below */
    TENREC_MOVES = 1u << 1,  /* with it: the first receiver may write it */
};

/* Where the memory of a tensor is. A zeroed struct with size set means the default: private memory
 * of the host. */
struct tenrec_tensor_options {
    uint32_t size;               /* sizeof(struct tenrec_tensor_options) */
    uint32_t flags;              /* enum tenrec_tensor_alloc_flags; of the host only */
    struct tenrec_device device; /* to be used on the thread's current stream there
                                    (tenrec/device.h); kind 0: the host */
};

/* Makes a contiguous tensor in other memory.
 *
 * With TENREC_SHARED it is memory that a worker on the same host can map, so that the time
 * to send it does not depend on its size. Over a connection that cannot carry mappings its bytes
 * are copied, as of any other tensor. The received tensor is read-only (TENREC_TENSOR_READ_ONLY in
 * its descriptor's flags): a write ends the process with SIGSEGV. tenrec_tensor_copy makes a tensor
 * that may be written; a call with `into` and a worker with an allocator get a copy. The receiver
 * sees writes that the sender makes after sending. The memory is reused when sender and receivers
 * have dropped the tensor. With TENREC_MOVES the first message that carries it gives it away: the
 * receiver may write it, and the sender may only drop it.
 *
 * options  borrowed during the call; NULL is tenrec_tensor_new
 * errors   as tenrec_tensor_new; EINVAL (options), EOS (no descriptor left), EUNSUPPORTED (no such
 *          devices here)
 * threads  any
 */
tenrec_status tenrec_tensor_new_with(struct tenrec_dtype dtype, uint32_t ndim, const int64_t *shape,
                                     const struct tenrec_tensor_options *options,
                                     struct tenrec_tensor **ret, tenrec_error *err);

#define TENREC_TENSOR_ROW_MAJOR ((uint64_t)1 << 63)

/* Makes a tensor of memory that exists, on the host or a device, with the storage and view of
 * `desc`: its data, bytes, byte_offset, dtype, ndim, device (kind 0: the host), shape and strides;
 * the rest is zero. Its `stream` is one on which the elements are ready, or 0. With
 * TENREC_TENSOR_ROW_MAJOR in its flags the strides are not read: the tensor is contiguous.
 *
 * desc     borrowed during the call. desc->data is owned by the tensor from success on if free_fn
 *          is given, else borrowed until the last holder has dropped it; desc->bytes of it must
 *          hold every element that shape and strides reach
 * free_fn  called once, after the last use of the memory; may be NULL
 * errors   EINVAL, ETOOBIG, ENOMEM
 */
tenrec_status tenrec_tensor_from_desc(const struct tenrec_tensor_desc *desc,
                                      tenrec_tensor_free_fn *free_fn, void *arg,
                                      struct tenrec_tensor **ret, tenrec_error *err);

/* Adds a share of the same tensor; drop both. */
struct tenrec_tensor *tenrec_tensor_share(struct tenrec_tensor *t);
void tenrec_tensor_drop(struct tenrec_tensor *t); /* NULL is allowed */

/* Type, shape, strides, device, storage; borrowed until t is dropped. */
const struct tenrec_tensor_desc *tenrec_tensor_desc(const struct tenrec_tensor *t);

/* Address of the first element; borrowed until t is dropped. */
void *tenrec_tensor_data(const struct tenrec_tensor *t);

/* Number of elements; and their bytes when contiguous. */
static inline uint64_t tenrec_tensor_count(const struct tenrec_tensor *t)
{
    const struct tenrec_tensor_desc *d = tenrec_tensor_desc(t);
    uint64_t n = 1;

    for (uint32_t i = 0; i < d->ndim; i++)
        n *= (uint64_t)d->shape[i];
    return n;
}

static inline uint64_t tenrec_tensor_bytes(const struct tenrec_tensor *t)
{
    const struct tenrec_dtype dtype = tenrec_tensor_desc(t)->dtype;

    return tenrec_tensor_count(t) * (dtype.bits / 8u * dtype.lanes);
}

/* Checks a tensor before its elements are used through a pointer: in memory of the host, row-major
 * without gaps, of this type and number of dimensions. A caller may send any view of anything.
 *
 *     const float *x;
 *     size_t n;
 *     tenrec_tensor_expect(t, TENREC_FLOAT32, 1, &x, &n, err);
 *
 * ndim      -1: any
 * ret_data  address of a pointer that gets the first element, borrowed until t is dropped; or NULL
 * ret_n     number of elements; or NULL
 * errors    EINVAL: "the tensor is int32 of [4], expected float32 of 2 dimensions"
 */
tenrec_status tenrec_tensor_expect(const struct tenrec_tensor *t, struct tenrec_dtype dtype,
                                   int ndim, void *ret_data, size_t *ret_n, tenrec_error *err);

/* t itself (shared once more) when it is contiguous and fills its storage,
 * else a contiguous copy. Host memory only.
 *
 * errors   ENOMEM, EUNSUPPORTED (device memory)
 */
tenrec_status tenrec_tensor_contiguous(struct tenrec_tensor *t, struct tenrec_tensor **ret,
                                       tenrec_error *err);

/* A copy of the elements, contiguous in writable memory of this process. Host memory only.
 *
 * errors   ENOMEM, EUNSUPPORTED (device memory)
 */
tenrec_status tenrec_tensor_copy(const struct tenrec_tensor *t, struct tenrec_tensor **ret,
                                 tenrec_error *err);

/* Makes a tensor of a DLPack one, without a copy. One on a device is ordered as
 * any other: on the current stream of its sender (tenrec/device.h).
 *
 * dl       taken on success: its deleter runs when the last holder drops
 * errors   EINVAL (null data, negative strides, too many dimensions),
 *          EUNSUPPORTED (device), ENOMEM
 * source   DLManagedTensor of DLPack 0.6
 */
tenrec_status tenrec_tensor_from_dlpack(struct DLManagedTensor *dl, struct tenrec_tensor **ret,
                                        tenrec_error *err);

/* Makes a DLPack view that shares t; its deleter drops that share.
 *
 * errors   ENOMEM
 */
tenrec_status tenrec_tensor_to_dlpack(struct tenrec_tensor *t, struct DLManagedTensor **ret,
                                      tenrec_error *err);

/* "float32", "bfloat16", "bool"; "?" for a type without a name. */
const char *tenrec_dtype_name(struct tenrec_dtype dtype);

/* Returns true if both are the same element type. */
static inline bool tenrec_dtype_equal(struct tenrec_dtype a, struct tenrec_dtype b)
{
    return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes;
}

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
