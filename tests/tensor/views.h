/* SPDX-License-Identifier: Apache-2.0 */
/* views.h - tensors of a case's own memory, and their end. */
#ifndef TENREC_TESTS_TENSOR_VIEWS_H
#define TENREC_TESTS_TENSOR_VIEWS_H

#include "../support/tensors.h"

#include "../testing.h"

struct freed {
    int count;
    void *data;
};

static inline void note_free(void *arg, void *data)
{
    struct freed *f = arg;

    f->count++;
    f->data = data;
}

static inline struct tenrec_tensor *view_of(void *data, uint64_t bytes, uint32_t ndim,
                                            const int64_t *shape, const int64_t *strides)
{
    struct tenrec_tensor *t = NULL;
    tenrec_error err;

    if (tensors_view(data, bytes, TENREC_INT32, ndim, shape, strides, &t, &err))
        fail_msg("%s", err.text);
    return t;
}

#endif
