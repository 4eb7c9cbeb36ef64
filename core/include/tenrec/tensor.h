/* SPDX-License-Identifier: Apache-2.0 */
/* tenrec/tensor.h - a tensor: memory, element type, shape, and who frees it.
 *
 * A tensor is shared (counted): whoever holds one - the caller, a message that
 * is still being written, a result - keeps its memory alive, so a call that
 * timed out can never make somebody write into or read from freed memory.
 * Shape and type never change; the elements are yours to synchronise.
 */
#ifndef TENREC_TENSOR_H
#define TENREC_TENSOR_H

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

struct tenrec_tensor; /* opaque */

/* Frees what tenrec_tensor_from_data was given; from any thread, once. */
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
    TENREC_MOVES = 1u << 1,  /* with it: who receives it first may write it */
};

/* Makes a contiguous tensor in memory that a worker on the same host can map, so
 * that it travels in the time of a small message whatever its size is. Where the
 * connection cannot carry that its bytes are copied, as of any other tensor.
 *
 * What arrives is read-only (TENREC_TENSOR_READ_ONLY in its descriptor's flags):
 * a write ends the process with SIGSEGV. tenrec_tensor_copy makes one that may
 * be written; a call with `into` and a worker with an allocator get a copy. The
 * receiver sees what the sender writes after sending. The memory is used for
 * other tensors when here and there all have dropped it.
 *
 * With TENREC_MOVES the first message that carries it gives it away: the
 * receiver may write it, and the sender may only drop it.
 *
 * flags    enum tenrec_tensor_alloc_flags; 0 is tenrec_tensor_new
 * errors   as tenrec_tensor_new; EINVAL (flags), EOS (no descriptor left)
 * threads  any
 */
tenrec_status tenrec_tensor_alloc(struct tenrec_dtype dtype, uint32_t ndim, const int64_t *shape,
                                  uint32_t flags, struct tenrec_tensor **ret, tenrec_error *err);

/* Makes a tensor of memory that exists.
 *
 * data     first byte of the storage; owned by the tensor from success on when
 *          free_fn is given, else borrowed until the last holder dropped it
 * bytes    length of the storage; must hold every element that shape and
 *          strides reach
 * strides  in elements, >= 0; NULL for contiguous (row-major)
 * free_fn  called once when nobody uses the memory any more; may be NULL
 * errors   EINVAL, ETOOBIG, ENOMEM
 */
tenrec_status tenrec_tensor_from_data(void *data, uint64_t bytes, struct tenrec_dtype dtype,
                                      uint32_t ndim, const int64_t *shape, const int64_t *strides,
                                      tenrec_tensor_free_fn *free_fn, void *arg,
                                      struct tenrec_tensor **ret, tenrec_error *err);

/* The same tensor once more; drop both. */
struct tenrec_tensor *tenrec_tensor_share(struct tenrec_tensor *t);
void tenrec_tensor_drop(struct tenrec_tensor *t);

/* Type, shape, strides, device, storage; borrowed until t is dropped. */
const struct tenrec_tensor_desc *tenrec_tensor_desc(const struct tenrec_tensor *t);

/* Address of the first element; borrowed until t is dropped. */
void *tenrec_tensor_data(const struct tenrec_tensor *t);

/* Number of elements; and bytes that they take when contiguous. */
uint64_t tenrec_tensor_count(const struct tenrec_tensor *t);
uint64_t tenrec_tensor_bytes(const struct tenrec_tensor *t);

/* t itself (shared once more) when it is contiguous and fills its storage,
 * else a contiguous copy. Host memory only.
 *
 * errors   ENOMEM, EUNSUPPORTED (device memory)
 */
tenrec_status tenrec_tensor_contiguous(struct tenrec_tensor *t, struct tenrec_tensor **ret,
                                       tenrec_error *err);

/* The elements of t once more, contiguous in memory of this process that may be
 * written. Host memory only.
 *
 * errors   ENOMEM, EUNSUPPORTED (device memory)
 */
tenrec_status tenrec_tensor_copy(const struct tenrec_tensor *t, struct tenrec_tensor **ret,
                                 tenrec_error *err);

/* "float32", "bfloat16", "bool"; "?" for what has no name. */
const char *tenrec_dtype_name(struct tenrec_dtype dtype);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
