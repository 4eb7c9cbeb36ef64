/* SPDX-License-Identifier: Apache-2.0 */
/* sharing_test.c - memory that is lent and moved, owner and holder in one process. */
#include "../support/tensors.h"
#include "../testing.h"
#include "sharing_pair.h"

#include <tenrec/message.h>
#include <tenrec/tensor.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/tensor/mapping.h"
#include "core/tensor/release_page.h"
#include "core/tensor/shared_memory.h"
#include "core/tensor/sharing.h"
#include "core/tensor/sharing_inside.h"

/* ---- lending ------------------------------------------------------------------- */

TEST_WITH(sharing_maps_lent_memory, open_both, close_both)
{
    struct tenrec_tensor *t = make(5 * MIB, TENREC_SHARED, 3), *got = carry(t);

    assert_ptr_not_equal(bytes_of(got), bytes_of(t));
    assert_memory_equal(bytes_of(got), bytes_of(t), 5 * MIB);
    assert_true(tenrec_tensor_desc(got)->flags & TENREC_TENSOR_READ_ONLY);
    bytes_of(t)[77] = 9;
    assert_int_equal(bytes_of(got)[77], 9); /* the same memory */
    assert_int_equal(sharing_lent(), 1);
    assert_int_equal(mapping_count().tensors, 1);
    tenrec_tensor_drop(got);
    tenrec_tensor_drop(t);
}

TEST_WITH(sharing_passes_descriptors_once, open_both, close_both)
{
    struct tenrec_tensor *t = make(MIB, TENREC_SHARED, 1), *u = make(MIB, TENREC_SHARED, 2);
    struct tenrec_tensor *got[3];
    struct tenrec_share share;
    tenrec_error err;

    got[0] = carry(t);
    assert_true(sharing_share(owner, tenrec_tensor_desc(t), &share));
    assert_int_equal(share.n_fds, 0);
    assert_status(take(holder, &share, tenrec_tensor_desc(t), &got[1], &err), &err);
    assert_true(sharing_share(owner, tenrec_tensor_desc(u), &share)); /* of the same region */
    assert_int_equal(share.n_fds, 0);
    assert_status(take(holder, &share, tenrec_tensor_desc(u), &got[2], &err), &err);
    assert_ptr_equal(bytes_of(got[0]), bytes_of(got[1]));
    assert_int_equal(bytes_of(got[2])[0], 2);
    assert_int_equal(mapping_count().regions, 1);
    for (int i = 0; i < 3; i++)
        tenrec_tensor_drop(got[i]);
    tenrec_tensor_drop(t);
    tenrec_tensor_drop(u);
}

TEST_WITH(sharing_gives_memory_back_when_dropped_by_the_holder, open_both, close_both)
{
    struct tenrec_tensor *t = make(MIB, TENREC_SHARED, 1), *got = carry(t);

    tenrec_tensor_drop(t);
    assert_true(sharing_collect(clock_now_ns()) != CLOCK_NEVER);
    assert_int_equal(shared_memory_count().blocks, 1);
    assert_int_equal(bytes_of(got)[0], 1);
    tenrec_tensor_drop(got);
    assert_true(sharing_collect(clock_now_ns()) == CLOCK_NEVER);
    assert_int_equal(shared_memory_count().blocks, 0);
}

TEST_WITH(sharing_uses_memory_again_only_when_given_back, open_both, close_both)
{
    struct tenrec_tensor *t = make(MIB, TENREC_SHARED, 1), *got = carry(t), *u;
    void *data = bytes_of(t);

    tenrec_tensor_drop(t);
    u = make(MIB, TENREC_SHARED, 2);
    assert_ptr_not_equal(bytes_of(u), data);
    assert_int_equal(bytes_of(got)[MIB - 1], 1);
    tenrec_tensor_drop(got);
    t = make(MIB, TENREC_SHARED, 3);
    assert_ptr_equal(bytes_of(t), data);
    tenrec_tensor_drop(t);
    tenrec_tensor_drop(u);
}

TEST_WITH(sharing_carries_views_of_a_shared_storage, open_both, close_both)
{
    static const int64_t shape[] = { 10, 100 }, strides[] = { 1000, 2 };
    struct tenrec_tensor *t = make(MIB, TENREC_SHARED, 0), *got = NULL, *view = NULL;
    struct tenrec_tensor_desc d;
    struct tenrec_share share;
    tenrec_error err;

    bytes_of(t)[6400 + 9 * 1000 + 99 * 2] = 42;
    /* A tensor of the program's own on a part of the storage. */
    assert_status(
        tensors_view(bytes_of(t) + 6400, 64000, TENREC_UINT8, 2, shape, strides, &view, &err),
        &err);
    assert_true(sharing_share(owner, tenrec_tensor_desc(view), &share));
    assert_status(take(holder, &share, tenrec_tensor_desc(view), &got, &err), &err);
    assert_int_equal(bytes_of(got)[9 * 1000 + 99 * 2], 42);
    tenrec_tensor_drop(got);
    /* An offset within it, as a message brings it. */
    d = *tenrec_tensor_desc(t);
    d.byte_offset = 100;
    d.ndim = 2;
    memcpy(d.shape, shape, sizeof shape);
    memcpy(d.strides, strides, sizeof strides);
    assert_true(sharing_share(owner, &d, &share));
    assert_status(take(holder, &share, &d, &got, &err), &err);
    assert_ptr_equal(bytes_of(got), (char *)tenrec_tensor_desc(got)->data + 100);
    tenrec_tensor_drop(got);
    tenrec_tensor_drop(view);
    tenrec_tensor_drop(t);
}

TEST_WITH(sharing_leaves_other_memory_to_be_copied, open_both, close_both)
{
    static unsigned char data[100];
    const int64_t shape[] = { 100 };
    struct tenrec_tensor *t = NULL, *shared = make(MIB, TENREC_SHARED, 0), *odd = NULL;
    struct tenrec_share share;
    tenrec_error err;

    assert_status(tensors_view(data, 100, TENREC_UINT8, 1, shape, NULL, &t, &err), &err);
    assert_false(sharing_share(owner, tenrec_tensor_desc(t), &share));
    /* No tensor begins so in memory of Tenrec's. */
    assert_status(tensors_view(bytes_of(shared) + 4, 100, TENREC_UINT8, 1, shape, NULL, &odd, &err),
                  &err);
    assert_false(sharing_share(owner, tenrec_tensor_desc(odd), &share));
    tenrec_tensor_drop(odd);
    tenrec_tensor_drop(shared);
    tenrec_tensor_drop(t);
}

/* The receiver's tensor is the owner's memory: the next receiver gets a copy. */
TEST_WITH(sharing_does_not_lend_borrowed_memory, open_both, close_both)
{
    struct tenrec_tensor *t = make(MIB, TENREC_SHARED, 1), *got = carry(t);
    struct tenrec_share share;

    assert_false(sharing_share(holder, tenrec_tensor_desc(got), &share));
    tenrec_tensor_drop(got);
    tenrec_tensor_drop(t);
}

TEST_WITH(sharing_copies_when_all_slots_are_lent, open_both, close_both)
{
    static struct tenrec_tensor *got[RELEASE_PAGE_SLOTS];
    struct tenrec_tensor *t = make(MIB, TENREC_SHARED, 1);
    struct tenrec_share share;

    for (int i = 0; i < RELEASE_PAGE_SLOTS; i++)
        got[i] = carry(t);
    assert_false(sharing_share(owner, tenrec_tensor_desc(t), &share));
    tenrec_tensor_drop(got[500]);
    got[500] = carry(t);
    for (int i = 0; i < RELEASE_PAGE_SLOTS; i++)
        tenrec_tensor_drop(got[i]);
    tenrec_tensor_drop(t);
}

TEST_WITH(sharing_keeps_a_bounded_number_of_mappings, open_both, close_both)
{
    enum { MORE = SHARING_REGIONS + 8 };
    struct tenrec_tensor *t[MORE], *first, *again;

    for (int i = 0; i < MORE; i++)
        t[i] = make(17 * MIB, TENREC_SHARED, i);
    first = carry(t[0]);
    for (int i = 1; i < MORE; i++)
        tenrec_tensor_drop(carry(t[i]));
    /* All that it may have, and the one that is in use. */
    assert_int_equal(mapping_count().regions, SHARING_REGIONS + 1);
    assert_int_equal(bytes_of(first)[5], 0);
    again = carry(t[0]);
    assert_ptr_not_equal(bytes_of(again), bytes_of(first));
    tenrec_tensor_drop(again);
    tenrec_tensor_drop(first);
    assert_int_equal(mapping_count().regions, SHARING_REGIONS);
    for (int i = 0; i < MORE; i++)
        tenrec_tensor_drop(t[i]);
}

TEST_WITH(sharing_reclaims_loans_that_could_not_be_queued, open_both, close_both)
{
    struct tenrec_tensor *t = make(MIB, TENREC_SHARED, 1), *got;
    struct tenrec_share share[2];

    assert_true(sharing_share(owner, tenrec_tensor_desc(t), &share[0]));
    assert_true(sharing_share(owner, tenrec_tensor_desc(t), &share[1]));
    sharing_share_back(owner, &share[1]);
    sharing_share_back(owner, &share[0]);
    assert_int_equal(sharing_lent(), 0);
    got = carry(t); /* and brings all descriptors again */
    assert_int_equal(bytes_of(got)[0], 1);
    tenrec_tensor_drop(got);
    tenrec_tensor_drop(t);
}

TEST_WITH(sharing_ends_a_loan_when_the_message_is_dropped, open_both, close_both)
{
    struct tenrec_tensor *t = make(MIB, TENREC_SHARED, 1), *got;
    struct tenrec_share share;
    tenrec_error err;

    assert_true(sharing_share(owner, tenrec_tensor_desc(t), &share));
    assert_status(sharing_shared(holder, &share, NULL, &err), &err);
    sharing_collect(clock_now_ns());
    assert_int_equal(sharing_lent(), 0);
    got = carry(t); /* the region that came with it is known */
    tenrec_tensor_drop(got);
    tenrec_tensor_drop(t);
}

/* ---- connections that end --------------------------------------------------------- */

TEST_WITH(sharing_leaves_the_holder_its_memory_when_the_connection_ends, open_both, close_both)
{
    struct tenrec_tensor *t = make(MIB, TENREC_SHARED, 6), *got = carry(t), *u;

    sharing_close(owner);
    sharing_close(holder);
    owner = holder = NULL;
    tenrec_tensor_drop(t);
    sharing_collect(clock_now_ns());
    assert_int_equal(sharing_lent(), 1);
    u = make(MIB, TENREC_SHARED, 7);
    assert_int_equal(bytes_of(got)[MIB - 1], 6);
    tenrec_tensor_drop(u);
    tenrec_tensor_drop(got);
    sharing_collect(clock_now_ns());
    assert_int_equal(sharing_lent(), 0);
}

TEST_WITH(sharing_reclaims_undelivered_loans_when_the_connection_ends, open_both, close_both)
{
    struct tenrec_tensor *t = make(MIB, TENREC_SHARED, 6), *got = carry(t);
    struct tenrec_share lost;

    assert_true(sharing_share(owner, tenrec_tensor_desc(t), &lost));
    sharing_close(owner);
    owner = NULL;
    tenrec_tensor_drop(t);
    sharing_collect(clock_now_ns());
    assert_int_equal(sharing_lent(), 2); /* it may still come */
    sharing_close(holder);
    holder = NULL;
    sharing_collect(clock_now_ns());
    assert_int_equal(sharing_lent(), 1);
    assert_int_equal(bytes_of(got)[0], 6);
    tenrec_tensor_drop(got);
}

TEST_WITH(sharing_takes_all_memory_back_when_no_release_page_arrived, open_both, close_both)
{
    struct tenrec_tensor *t = make(MIB, TENREC_SHARED, 6);
    struct tenrec_share lost;

    assert_true(sharing_share(owner, tenrec_tensor_desc(t), &lost));
    assert_int_equal(lost.n_fds, 3);
    sharing_close(owner);
    owner = NULL;
    tenrec_tensor_drop(t);
    sharing_collect(clock_now_ns());
    assert_int_equal(sharing_lent(), 1);
    for (unsigned i = 0; i < lost.n_fds; i++)
        close(lost.fd[i]);
    sharing_collect(clock_now_ns());
    assert_int_equal(sharing_lent(), 0);
}

/* ---- moving ----------------------------------------------------------------------- */

TEST_WITH(sharing_moves_memory_that_its_receiver_may_write, open_both, close_both)
{
    struct tenrec_tensor *t = make(MIB, TENREC_SHARED | TENREC_MOVES, 5), *got = carry(t);

    assert_false(tenrec_tensor_desc(got)->flags & TENREC_TENSOR_READ_ONLY);
    tenrec_tensor_drop(t);
    assert_int_equal(bytes_of(got)[MIB - 1], 5);
    memset(bytes_of(got), 8, MIB);
    assert_int_equal(bytes_of(got)[3], 8);
    assert_int_equal(sharing_lent(), 0);
    tenrec_tensor_drop(got);
}

TEST_WITH(sharing_moves_memory_once, open_both, close_both)
{
    struct tenrec_tensor *t = make(MIB, TENREC_SHARED | TENREC_MOVES, 5), *got = carry(t);
    struct tenrec_share share;

    assert_false(sharing_share(owner, tenrec_tensor_desc(t), &share));
    tenrec_tensor_drop(got);
    tenrec_tensor_drop(t);
}

/* The new owner of moved memory lends it as its own. */
TEST_WITH(sharing_lends_moved_memory_on, open_both, close_both)
{
    struct tenrec_tensor *t = make(MIB, TENREC_SHARED | TENREC_MOVES, 5), *got = carry(t), *back;
    struct tenrec_share share;
    tenrec_error err;

    tenrec_tensor_drop(t);
    bytes_of(got)[0] = 99;
    assert_true(sharing_share(holder, tenrec_tensor_desc(got), &share));
    assert_status(take(owner, &share, tenrec_tensor_desc(got), &back, &err), &err);
    assert_int_equal(bytes_of(back)[0], 99);
    assert_true(tenrec_tensor_desc(back)->flags & TENREC_TENSOR_READ_ONLY);
    tenrec_tensor_drop(got);
    assert_int_equal(bytes_of(back)[0], 99);
    tenrec_tensor_drop(back);
}
