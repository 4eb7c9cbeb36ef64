/* SPDX-License-Identifier: Apache-2.0 */
/* tenrec/types.h - ids, element types, devices and tensors: types that programs and plugins share.
 */
#ifndef TENREC_TYPES_H
#define TENREC_TYPES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Id of a worker: its rank in a static group, 0..32767 (torch's int16). */
typedef int32_t tenrec_peer;
#define TENREC_ANONYMOUS ((tenrec_peer)-1) /* a caller that is not a member */

#define TENREC_NAME_MAX 127 /* bytes of a worker's name, without the NUL */
#define TENREC_MAX_DIMS 16

/* DLPack's triple, so that no translation is needed.
 * Never grows: the triple is DLPack's ABI. */
struct tenrec_dtype {
    uint8_t code; /* enum tenrec_dtype_code */
    uint8_t bits;
    uint16_t lanes; /* 1 for all types of torch */
};

enum tenrec_dtype_code {
    TENREC_DTYPE_INT = 0,
    TENREC_DTYPE_UINT = 1,
    TENREC_DTYPE_FLOAT = 2,
    TENREC_DTYPE_BFLOAT = 4,
    TENREC_DTYPE_COMPLEX = 5,
    TENREC_DTYPE_BOOL = 6,
};

/* DLPack's numbers. */
enum tenrec_device_kind { TENREC_CPU = 1, TENREC_CUDA = 2 };

struct tenrec_mapping; /* opaque */

/* A device, as DLPack's pair.
 * Never grows: the pair is DLPack's ABI. */
struct tenrec_device {
    int32_t kind;  /* enum tenrec_device_kind */
    int32_t index; /* 0 for the CPU */
};

/* A queue of work that a device runs in order: a cudaStream_t as a number, or 0 for the
 * device's default (legacy) stream.
 * Never grows: CUDA needs no more to identify a stream. */
struct tenrec_stream {
    struct tenrec_device device;
    uint64_t stream;
};

/* One tensor of a message: a storage and a view of it. Zero the struct before you fill it.
 * Never grows: programs build it, and `reserved` has room for one addition. In messages the
 * element size of arrays is tenrec_msg.tensor_size. */
struct tenrec_tensor_desc {
    void *data;                  /* start of the storage, in `device` memory */
    uint64_t bytes;              /* length of the storage */
    uint64_t byte_offset;        /* of the first element in the storage */
    struct tenrec_dtype dtype;   /* of an element */
    uint32_t ndim;               /* 0 for a scalar, at most TENREC_MAX_DIMS */
    struct tenrec_device device; /* where `data` lives */
    struct tenrec_device target; /* device for the receiver's copy */
    uint64_t stream;             /* of `device`: work queued on it sees the elements; sent, see
                                    ops->send; 0 for host memory */
    uint64_t flags;              /* TENREC_TENSOR_... */
    int64_t shape[TENREC_MAX_DIMS];
    int64_t strides[TENREC_MAX_DIMS]; /* in elements */
    struct tenrec_mapping *mapping;   /* of a tensor received as shared memory, from host->shared
                                         until host->place; else NULL */
    struct tenrec_device source;      /* of a received tensor: the sender's device; kind 0:
                                         unknown */
    uint64_t same_storage;            /* 1 + index of the earlier tensor of the message that has
                                         the same storage; 0: a storage of its own */
    uint64_t reserved[1];             /* zero */
};

#define TENREC_TENSOR_REQUIRES_GRAD ((uint64_t)1)
#define TENREC_TENSOR_READ_ONLY ((uint64_t)2) /* another process's memory: a write faults */
#define TENREC_TENSOR_UNSHARED ((uint64_t)4)  /* sent as bytes, never as a mapping */

/* An optional part of a table of the plugin contract (`extensions` of tenrec_plugin, tenrec_host
 * and tenrec_agent_ops): the first member of a struct of that kind. `extensions` is read only where
 * TENREC_HAS(table, extensions). A reader skips kinds that it does not know. Kinds below
 * TENREC_EXTENSION_PRIVATE are Tenrec's, listed in docs/abi.md; the others are free for a plugin
 * and a host that know each other.
 *
 * next     borrowed as long as the table lives; NULL ends the list, which has no cycle
 */
struct tenrec_extension {
    uint32_t kind;
    uint32_t size; /* bytes of the whole struct of that kind */
    const struct tenrec_extension *next;
};

#define TENREC_EXTENSION_PRIVATE 0x80000000u

/* Returns the first extension of this kind that has at least `size` bytes, or NULL. */
static inline const struct tenrec_extension *
tenrec_extension_find(const struct tenrec_extension *list, uint32_t kind, uint32_t size)
{
    for (; list; list = list->next)
        if (list->kind == kind && list->size >= size)
            break;
    return list;
}

enum tenrec_log_level {
    TENREC_LOG_ERROR,
    TENREC_LOG_WARN,
    TENREC_LOG_INFO,
    TENREC_LOG_DEBUG,
    TENREC_LOG_TRACE,
};

/* Receives one key and its value, borrowed during the call. */
typedef void tenrec_sink_fn(void *arg, const char *key, const char *value);

#ifdef __cplusplus
}
#endif

#endif
