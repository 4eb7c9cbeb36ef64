/* SPDX-License-Identifier: Apache-2.0 */
/* storage.h - names of storage classes, the storages of a message, and whether a
 * view stays inside. */
#ifndef TENSORPIPE_STORAGE_H
#define TENSORPIPE_STORAGE_H

#include "wire/nop.h"
#include <tenrec/types.h>

#define STORAGE_TENREC "tenrec" /* module of the classes that torch lacks */
#define STORAGE_CLASS_MAX 24    /* bytes of a class name with its NUL */

/* A storage that a message carries, in the order of its descriptor. Several tensors of
 * the list may be views of it. */
struct carried {
    uint64_t bytes;  /* as the descriptor says: set before the list is read */
    uint32_t tensor; /* the first tensor of the list that is a view of it */
    uint32_t memo;   /* the pickle's, as the next two: what recalls it */
    bool named;      /* the pickle gave it that number */
    struct tenrec_dtype dtype;
};

/* Filled by the readers of lists. */
struct listed {
    struct carried *carried;
    uint32_t n_carried;
    struct tenrec_tensor_desc *tensors; /* room for `room` of them ... */
    uint32_t room, tensor_size;         /* ... each `tensor_size` bytes after the one before */
    uint32_t max;                       /* tensors that a list may have */
};

static inline struct tenrec_tensor_desc *listed_tensor(const struct listed *l, uint32_t i)
{
    return (struct tenrec_tensor_desc *)(void *)((char *)l->tensors + (size_t)i * l->tensor_size);
}

/* "torch", "FloatStorage", or our own module and "1.16.1" (code.bits.lanes)
 * where torch has none; `ret_module` points to constant text.
 *
 * return   false when torch has none
 */
bool storage_class(struct tenrec_dtype dtype, const char **ret_module,
                   char ret_name[STORAGE_CLASS_MAX]);

/* The dtype of a class; false when it is unknown. */
bool storage_dtype(struct nop_bytes module, struct nop_bytes name, struct tenrec_dtype *ret);

/* Bytes of an element; 0 for a dtype without whole bytes. */
uint32_t storage_element_bytes(struct tenrec_dtype dtype);

/* Checks that every element of the view is within desc->bytes; dimensions and strides
 * that overflow are not.
 *
 * errors   `code`
 */
tenrec_status storage_check_view(const struct tenrec_tensor_desc *desc, tenrec_status code,
                                 tenrec_error *err);

/* Bytes that the elements of a view take when they are copied one after the other: a stride of 0
 * makes more of them than the storage has. UINT64_MAX when that cannot be counted. */
uint64_t storage_view_bytes(const struct tenrec_tensor_desc *desc);

#endif
