/* SPDX-License-Identifier: Apache-2.0 */
/* listed.h - lists of tensors, as a message reads them. */
#ifndef TENREC_TEST_LISTED_H
#define TENREC_TEST_LISTED_H

#include "wire/storage.h"

#include <stdlib.h>

typedef tenrec_status read_list_fn(const void *list, size_t len, const struct listed *to,
                                   uint32_t *ret_n, tenrec_error *err);

/* Reads a list of `n_carried` storages of carried[i].bytes each, into room for `room`
 * tensors. */
static inline tenrec_status read_views(read_list_fn *read, const void *list, size_t len,
                                       struct carried *carried, uint32_t n_carried,
                                       struct tenrec_tensor_desc *tensors, uint32_t room,
                                       uint32_t *ret_n, tenrec_error *err)
{
    const struct listed to = { .carried = carried,
                               .n_carried = n_carried,
                               .tensors = tensors,
                               .room = room,
                               .tensor_size = sizeof *tensors,
                               .max = 4096 };

    return read(list, len, &to, ret_n, err);
}

/* The same of `n` tensors with a storage each, of tensors[i].bytes. */
static inline tenrec_status read_exactly(read_list_fn *read, const void *list, size_t len,
                                         struct tenrec_tensor_desc *tensors, uint32_t n,
                                         tenrec_error *err)
{
    struct carried *carried = calloc(n + 1, sizeof *carried);
    uint32_t got = 0;
    tenrec_status st;

    assert_non_null(carried);
    for (uint32_t i = 0; i < n; i++)
        carried[i].bytes = tensors[i].bytes;
    st = read_views(read, list, len, carried, n, tensors, n, &got, err);
    if (!st)
        assert_int_equal(got, n);
    free(carried);
    return st;
}

#endif
