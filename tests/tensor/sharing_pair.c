/* SPDX-License-Identifier: Apache-2.0 */
#include "sharing_pair.h"
#include "../support/tensors.h"
#include "../testing.h"

#include <stdlib.h>

#include "core/base/clock.h"
#include "core/tensor/mapping.h"
#include "core/tensor/shared_memory.h"
#include "core/tensor/sharing_inside.h"
#include "core/tensor/tensor.h"

struct tenrec_sharing *owner, *holder;

void open_both(void)
{
    owner = sharing_open();
    holder = sharing_open();
    assert_true(owner && holder);
}

/* After each case nothing is left of anything. */
void close_both(void)
{
    sharing_close(holder);
    sharing_close(owner);
    sharing_collect(clock_now_ns());
    assert_int_equal(sharing_lent(), 0);
    assert_int_equal(mapping_count().regions, 0);
    assert_int_equal(mapping_count().tensors, 0);
    assert_int_equal(shared_memory_count().blocks, 0);
    assert_int_equal(shared_memory_count().regions, 0); /* no worker allows to keep any */
}

struct tenrec_tensor *make(int64_t bytes, uint32_t flags, int fill)
{
    struct tenrec_tensor *t = NULL;
    tenrec_error err;

    assert_status(tensors_new(TENREC_UINT8, 1, &bytes, flags, &t, &err), &err);
    memset(tenrec_tensor_data(t), fill, (size_t)bytes);
    return t;
}

struct tenrec_tensor *make_private(int64_t bytes, int fill)
{
    const struct tenrec_tensor_desc d = { .bytes = (uint64_t)bytes,
                                          .device = { TENREC_CPU, 0 },
                                          .dtype = TENREC_UINT8,
                                          .ndim = 1,
                                          .shape = { bytes },
                                          .strides = { 1 } };
    struct tenrec_tensor *t = NULL;
    tenrec_error err;

    assert_status(tensor_new_private(&d, &t, &err), &err);
    memset(tenrec_tensor_data(t), fill, (size_t)bytes);
    return t;
}

/* As a plugin and the place of messages do it. */
tenrec_status take(struct tenrec_sharing *to, struct tenrec_share *share,
                   const struct tenrec_tensor_desc *desc, struct tenrec_tensor **ret,
                   tenrec_error *err)
{
    struct tenrec_tensor_desc d = *desc;
    tenrec_status st = sharing_shared(to, share, &d, err);

    if (st != TENREC_OK)
        return st;
    st = mapped_tensor_new(d.mapping, &d, ret, err);
    if (st != TENREC_OK)
        mapping_drop(d.mapping);
    return st;
}

struct tenrec_tensor *carry(const struct tenrec_tensor *t)
{
    struct tenrec_tensor *got = NULL;
    struct tenrec_share share;
    tenrec_error err;

    assert_true(sharing_share(owner, tenrec_tensor_desc(t), &share));
    assert_status(take(holder, &share, tenrec_tensor_desc(t), &got, &err), &err);
    assert_int_equal(share.n_fds, 0);
    return got;
}

unsigned char *bytes_of(const struct tenrec_tensor *t)
{
    return tenrec_tensor_data(t);
}
