/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation of the codec and of the tables fails once: no leak, no crash, ENOMEM. */
#include "../support/basic_functions.h"
#include "../support/tensors.h"
#include "rpc/call/calls.h"
#include "rpc/value/codec.h"

#include "../testing.h"

#include <dlpack/dlpack.h>
#include <tenrec/future.h>
#include <tenrec/message.h>

static int fail_at; /* the allocation that fails; 0: none */

static bool fails(void)
{
    return fail_at > 0 && --fail_at == 0;
}

/* The linker puts these in the place of the C library's (--wrap). */
void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t n);

void *__wrap_malloc(size_t n)
{
    return fails() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t n)
{
    return fails() ? NULL : __real_aligned_alloc(alignment, n);
}

/* A matrix whose columns are what was its rows, so that sending it copies. */
static tenrec_status transposed(struct tenrec_tensor **ret)
{
    static int32_t data[4096];
    const int64_t shape[] = { 64, 64 }, strides[] = { 1, 64 };

    return tensors_view(data, sizeof data, TENREC_INT32, 2, shape, strides, ret, NULL);
}

/* Writes a call that needs every allocation there is and reads it back. */
static tenrec_status call_and_back(void)
{
    struct tenrec_value items[100], args[2];
    struct tenrec_tensor *t = NULL;
    struct tenrec_msg *msg = NULL;
    struct codec_call call;
    tenrec_status status = transposed(&t);

    if (status)
        return status;
    for (size_t i = 0; i < 100; i++)
        items[i] = tenrec_value_text("a text that needs room");
    args[0] = tenrec_value_array(items, 100);
    args[1] = tenrec_value_tensor(t);
    status =
        codec_write_call(TENREC_MSG_CALL, "f", args, 2, 0, &(struct codec_extra){ 0 }, &msg, NULL);
    tenrec_tensor_drop(t);
    if (status)
        return status;
    status = codec_read_call(msg, &call, NULL);
    if (status == TENREC_OK)
        codec_call_finish(&call);
    msg->release(msg);
    return status;
}

static tenrec_status value_and_back(void)
{
    struct tenrec_value *read = NULL, *copy = NULL;
    struct tenrec_tensor *t = NULL;
    struct tenrec_value v;
    struct tenrec_msg *msg = NULL;
    tenrec_status status = transposed(&t);

    if (status)
        return status;
    v = tenrec_value_tensor(t);
    status = codec_write_value(&v, TENREC_MSG_RET, &msg, NULL);
    tenrec_tensor_drop(t);
    if (status)
        return status;
    status = codec_read_value(msg, &read, NULL);
    msg->release(msg);
    if (status == TENREC_OK)
        status = tenrec_value_copy(read, &copy, NULL);
    tenrec_value_drop(read);
    tenrec_value_drop(copy);
    return status;
}

static tenrec_status error_and_back(void)
{
    struct tenrec_msg *msg = NULL;
    tenrec_error why;
    tenrec_status status;

    tenrec_fail(&why, TENREC_EREMOTE, "because");
    status = codec_write_error(&why, true, &msg, NULL);
    if (status == TENREC_OK)
        msg->release(msg);
    return status;
}

static tenrec_status dlpack_and_back(void)
{
    struct tenrec_tensor *t = NULL, *back = NULL;
    DLManagedTensor *dl = NULL;
    tenrec_status status = transposed(&t);

    if (status)
        return status;
    status = tenrec_tensor_to_dlpack(t, &dl, NULL);
    tenrec_tensor_drop(t);
    if (status)
        return status;
    status = tenrec_tensor_from_dlpack(dl, &back, NULL);
    if (status)
        dl->deleter(dl);
    tenrec_tensor_drop(back);
    return status;
}

/* More names than a table has room for at first, so that it grows, too. */
enum { N_NAMES = 400 };

static void make_names(char name[N_NAMES][8], const char *ret[N_NAMES])
{
    for (int i = 0; i < N_NAMES; i++) {
        snprintf(name[i], sizeof name[i], "n%d", i);
        ret[i] = name[i];
    }
}

static tenrec_status peers_and_none(void)
{
    char text[N_NAMES][8];
    const char *name[N_NAMES];
    struct peers p;
    tenrec_peer id;
    tenrec_status status;

    make_names(text, name);
    status = peers_init(&p, N_NAMES, 0, NULL);
    for (size_t i = 0; i < N_NAMES && !status; i++)
        status = peers_add(&p, (tenrec_peer)i, 1, name[i], NULL);
    if (!status)
        status = peers_find(&p, "n399", &id, NULL);
    peers_finish(&p);
    return status;
}

static tenrec_status functions_and_none(void)
{
    struct calls calls = { .functions = { .by_name = NULL } };
    struct tenrec_worker w = { .calls = &calls }; /* the test uses nothing else of it */
    char text[N_NAMES][8];
    const char *name[N_NAMES];
    tenrec_status status = TENREC_OK;

    make_names(text, name);
    functions_init(&calls.functions);
    for (int i = 0; i < N_NAMES && status == TENREC_OK; i++)
        status = tenrec_worker_register_function(&w, name[i], basic_noop, NULL, 0, NULL);
    functions_finish(&calls.functions);
    return status;
}

static tenrec_status served_and_none(void)
{
    static struct tenrec_call call[N_NAMES];
    struct active_calls s;
    tenrec_status status = TENREC_OK;

    active_calls_init(&s);
    for (int i = 0; i < N_NAMES; i++) {
        call[i] = (struct tenrec_call){ .key = { .id = i } };
        if (status == TENREC_OK)
            status = active_calls_add(&s, &call[i], NULL);
    }
    for (int i = 0; i < N_NAMES; i++)
        active_calls_remove(&s, &call[i]);
    assert_null(s.calls);
    active_calls_finish(&s);
    return status;
}

/* Fails the first allocation, the second ..., until none is left to fail. */
static void torture(tenrec_status (*fn)(void), int least)
{
    int n = 0;
    bool left;

    do {
        tenrec_status status;

        fail_at = ++n;
        status = fn();
        left = fail_at == 0;
        fail_at = 0;
        assert_int_equal(status, left ? TENREC_ENOMEM : TENREC_OK);
    } while (left);
    assert_true(n > least);
}

TEST(codec_call_fails_cleanly_when_any_allocation_fails)
{
    torture(call_and_back, 4);
}

TEST(codec_value_fails_cleanly_when_any_allocation_fails)
{
    torture(value_and_back, 4);
}

/* An error comes from the reserve then. */
TEST(codec_error_is_written_when_any_allocation_fails)
{
    int n = 0;
    bool left;

    do {
        fail_at = ++n;
        assert_int_equal(error_and_back(), TENREC_OK);
        left = fail_at == 0;
        fail_at = 0;
    } while (left);
}

TEST(dlpack_fails_cleanly_when_any_allocation_fails)
{
    torture(dlpack_and_back, 3);
}

TEST(peers_fail_cleanly_when_any_allocation_fails)
{
    torture(peers_and_none, N_NAMES);
}

TEST(functions_fail_cleanly_when_any_allocation_fails)
{
    torture(functions_and_none, 2 * N_NAMES);
}

TEST(served_fails_cleanly_when_any_allocation_fails)
{
    torture(served_and_none, 2);
}
