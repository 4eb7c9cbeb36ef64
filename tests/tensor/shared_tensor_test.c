/* SPDX-License-Identifier: Apache-2.0 */
/* shared_tensor_test.c - shared tensors between three workers, on the backend
 * named in argv. "mapped" as the second argument: its connections carry shared
 * memory; else the same calls copy. */
#include "../support/basic_functions.h"
#include "../support/cluster.h"
#include "../support/tensors.h"
#include "../testing.h"
#include "core/base/clock.h"
#include "core/tensor/mapping.h"
#include "core/tensor/shared_memory.h"
#include "core/tensor/sharing.h"

#include <pthread.h>
#include <stdlib.h>

enum { MIB = 1 << 20 };

static struct cluster three;
static bool mapped;
static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;
static struct tenrec_tensor *kept;

/* ---- what the workers do -------------------------------------------------------- */

static tenrec_status get_tensor(struct tenrec_call *c, struct tenrec_tensor **ret,
                                tenrec_error *err)
{

    return tenrec_call_get_args(c, err, "t", ret);
}

/* [first byte, last byte, is it read-only] */
static tenrec_status look(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    struct tenrec_tensor *t;
    struct tenrec_value item[3], v;
    const unsigned char *p;
    tenrec_status st = get_tensor(c, &t, err);

    (void)arg;
    if (st != TENREC_OK)
        return st;
    p = tenrec_tensor_data(t);
    item[0] = tenrec_value_int(p[0]);
    item[1] = tenrec_value_int(p[tenrec_tensor_bytes(t) - 1]);
    item[2] = tenrec_value_bool(tenrec_tensor_desc(t)->flags & TENREC_TENSOR_READ_ONLY);
    v = tenrec_value_array(item, 3);
    return tenrec_call_return(c, &v, err);
}

static void keep_instead(struct tenrec_tensor *t)
{
    struct tenrec_tensor *before;

    pthread_mutex_lock(&kept_lock);
    before = kept;
    kept = t;
    pthread_mutex_unlock(&kept_lock);
    tenrec_tensor_drop(before);
}

static tenrec_status keep(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    struct tenrec_tensor *t;
    tenrec_status st = get_tensor(c, &t, err);

    (void)arg;
    if (st == TENREC_OK)
        keep_instead(tenrec_tensor_share(t));
    return st;
}

/* Writes into what it got, and gives it back. */
static tenrec_status write_into(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    struct tenrec_tensor *t;
    struct tenrec_value v;
    tenrec_status st = get_tensor(c, &t, err);

    (void)arg;
    if (st != TENREC_OK)
        return st;
    ((unsigned char *)tenrec_tensor_data(t))[0] = 99;
    v = tenrec_value_tensor(t);
    return tenrec_call_return(c, &v, err);
}

/* The answer of worker2 about the received tensor. */
static tenrec_status pass_on(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    size_t n;
    const struct tenrec_value *args = tenrec_call_args(c, &n);
    struct tenrec_value *got = NULL;
    tenrec_status st;

    (void)arg;
    st = tenrec_rpc_sync(tenrec_call_worker(c), "worker2", "look", args, n, NULL, &got, err);
    if (st == TENREC_OK)
        st = tenrec_call_return(c, got, err);
    tenrec_value_drop(got);
    return st;
}

/* A shared tensor of so many bytes, all of them 7. */
static tenrec_status make_result(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    struct tenrec_tensor *t = NULL;
    struct tenrec_value v;
    int64_t bytes;
    tenrec_status st = tenrec_call_get_args(c, err, "i", &bytes);

    (void)arg;
    if (st == TENREC_OK)
        st = tensors_new(TENREC_UINT8, 1, &bytes, TENREC_SHARED, &t, err);
    if (st != TENREC_OK)
        return st;
    memset(tenrec_tensor_data(t), 7, (size_t)bytes);
    v = tenrec_value_tensor(t);
    st = tenrec_call_return(c, &v, err);
    tenrec_tensor_drop(t);
    return st;
}

static void register_all(struct tenrec_worker *w, size_t rank)
{
    static const struct {
        const char *name;
        tenrec_function_fn *fn;
    } function[] = { { "look", look },
                     { "keep", keep },
                     { "write_into", write_into },
                     { "pass_on", pass_on },
                     { "make_result", make_result } };
    tenrec_error err;

    (void)rank;
    for (size_t i = 0; i < sizeof function / sizeof function[0]; i++)
        assert_status(tenrec_worker_register_function(w, function[i].name, function[i].fn, NULL,
                                                      TENREC_POOL, &err),
                      &err);
}

/* ---- calling them ---------------------------------------------------------------- */

static struct tenrec_tensor *make(int64_t bytes, uint32_t flags, int fill)
{
    struct tenrec_tensor *t = NULL;
    tenrec_error err;

    assert_status(tensors_new(TENREC_UINT8, 1, &bytes, flags, &t, &err), &err);
    if (fill)
        memset(tenrec_tensor_data(t), fill, (size_t)bytes);
    return t;
}

static struct tenrec_value *call_with(const char *fn, struct tenrec_value arg)
{
    struct tenrec_value *got = NULL;
    tenrec_error err;

    assert_status(tenrec_rpc_sync(three.worker[0], "worker1", fn, &arg, 1, NULL, &got, &err), &err);
    return got;
}

static void expect_look(const char *fn, struct tenrec_tensor *t, int first, int last,
                        bool read_only)
{
    struct tenrec_value *got = call_with(fn, tenrec_value_tensor(t));

    assert_int_equal(got->u.array[0].u.integer, first);
    assert_int_equal(got->u.array[1].u.integer, last);
    assert_int_equal(got->u.array[2].u.boolean, read_only);
    tenrec_value_drop(got);
}

static bool all_came_back(void)
{
    sharing_collect(clock_now_ns());
    return sharing_lent() == 0 && mapping_count().tensors == 0;
}

static void nothing_is_left(void)
{
    assert_becomes(all_came_back());
    assert_becomes(shared_memory_count().blocks == 0);
}

/* ---- cases ------------------------------------------------------------------------ */

TEST(shared_tensor_arrives_as_an_argument)
{
    struct tenrec_tensor *t = make(3 * MIB, TENREC_SHARED, 5);

    ((unsigned char *)tenrec_tensor_data(t))[3 * MIB - 1] = 6;
    expect_look("look", t, 5, 6, mapped);
    tenrec_tensor_drop(t);
    nothing_is_left();
}

TEST(shared_tensor_arrives_as_a_result)
{
    struct tenrec_value *got = call_with("make_result", tenrec_value_int(2 * MIB));
    const unsigned char *p = tenrec_tensor_data(got->u.tensor);

    for (int i = 0; i < 2 * MIB; i += 1000)
        assert_int_equal(p[i], 7);
    assert_int_equal(mapping_count().tensors, mapped);
    tenrec_value_drop(got);
    nothing_is_left();
}

TEST(shared_tensor_is_copied_into_a_given_buffer)
{
    struct tenrec_call_options o = { .size = sizeof o };
    const struct tenrec_value bytes = tenrec_value_int(MIB);
    struct tenrec_value *got = NULL;
    tenrec_error err;

    o.into = make(MIB, 0, 1);
    assert_status(
        tenrec_rpc_sync(three.worker[0], "worker1", "make_result", &bytes, 1, &o, &got, &err),
        &err);
    assert_ptr_equal(tenrec_tensor_data(got->u.tensor), tenrec_tensor_data(o.into));
    assert_int_equal(((unsigned char *)tenrec_tensor_data(o.into))[MIB - 1], 7);
    assert_int_equal(mapping_count().tensors, 0);
    tenrec_value_drop(got);
    tenrec_tensor_drop(o.into);
    nothing_is_left();
}

static void *allocate(void *arg, const struct tenrec_tensor_desc *desc)
{
    ++*(int *)arg;
    return malloc(desc->bytes);
}

static void deallocate(void *arg, void *data)
{
    (void)arg;
    free(data);
}

TEST(shared_tensor_is_copied_when_the_user_has_an_allocator)
{
    int allocated = 0;
    const struct tenrec_allocator a = {
        .size = sizeof a, .alloc = allocate, .free_fn = deallocate, .arg = &allocated
    };
    struct tenrec_value *got;
    tenrec_error err;

    assert_status(tenrec_worker_set_allocator(three.worker[0], &a, &err), &err);
    got = call_with("make_result", tenrec_value_int(MIB));
    assert_int_equal(allocated, 1);
    assert_int_equal(mapping_count().tensors, 0);
    assert_int_equal(((unsigned char *)tenrec_tensor_data(got->u.tensor))[MIB - 1], 7);
    tenrec_value_drop(got);
    assert_status(tenrec_worker_set_allocator(three.worker[0], NULL, &err), &err);
    nothing_is_left();
}

TEST(shared_tensor_is_passed_on_to_a_third_worker)
{
    struct tenrec_tensor *t = make(MIB, TENREC_SHARED, 5);

    expect_look("pass_on", t, 5, 5, false); /* copied on its second way */
    tenrec_tensor_drop(t);
    nothing_is_left();
}

TEST(shared_tensor_is_kept_by_its_receiver)
{
    struct tenrec_tensor *t = make(MIB, TENREC_SHARED, 5), *u;

    tenrec_value_drop(call_with("keep", tenrec_value_tensor(t)));
    tenrec_tensor_drop(t);
    for (int i = 0; i < 20; i++) {
        u = make(MIB, TENREC_SHARED, 100 + i);
        expect_look("look", u, 100 + i, 100 + i, mapped);
        tenrec_tensor_drop(u);
    }
    assert_int_equal(((unsigned char *)tenrec_tensor_data(kept))[MIB - 1], 5);
    keep_instead(NULL);
    nothing_is_left();
}

TEST(shared_tensor_is_lent_many_times)
{
    struct tenrec_tensor *t = make(MIB, TENREC_SHARED, 5);

    for (int i = 0; i < 2000; i++)
        expect_look("look", t, 5, 5, mapped);
    tenrec_tensor_drop(t);
    nothing_is_left();
}

TEST(shared_tensor_may_be_larger_than_its_touched_part)
{
    /* Where it is copied, in so much memory as any machine has. */
    const int64_t bytes = mapped ? INT64_C(1) << 30 : 16 * MIB;
    struct tenrec_tensor *t = make(bytes, TENREC_SHARED, 0);

    ((unsigned char *)tenrec_tensor_data(t))[0] = 2;
    ((unsigned char *)tenrec_tensor_data(t))[bytes - 1] = 3;
    expect_look("look", t, 2, 3, mapped);
    tenrec_tensor_drop(t);
    nothing_is_left();
}

TEST(shared_tensor_that_moves_may_be_written)
{
    struct tenrec_tensor *t = make(MIB, TENREC_SHARED | TENREC_MOVES, 5);
    struct tenrec_value *got = call_with("write_into", tenrec_value_tensor(t));
    const unsigned char *p = tenrec_tensor_data(got->u.tensor);

    assert_int_equal(p[0], 99);
    assert_int_equal(p[MIB - 1], 5);
    /* The tensor returned as a loan of its present owner, which has dropped its argument. */
    assert_becomes(mapping_count().tensors == mapped);
    tenrec_tensor_drop(t);
    tenrec_value_drop(got);
    nothing_is_left();
}

TEST(shared_tensors_come_several_with_other_tensors)
{
    static unsigned char plain[3000];
    const int64_t length = sizeof plain;
    struct tenrec_tensor *t[3] = { make(MIB, TENREC_SHARED, 1), NULL,
                                   make(20 * MIB, TENREC_SHARED, 3) };
    struct tenrec_value item[3], v, *got;
    tenrec_error err;

    memset(plain, 2, sizeof plain);
    assert_status(tensors_view(plain, sizeof plain, TENREC_UINT8, 1, &length, NULL, &t[1], &err),
                  &err);
    for (int i = 0; i < 3; i++)
        item[i] = tenrec_value_tensor(t[i]);
    v = tenrec_value_array(item, 3);
    assert_status(tenrec_rpc_sync(three.worker[0], "worker1", "echo", &v, 1, NULL, &got, &err),
                  &err);
    for (int i = 0; i < 3; i++) {
        const struct tenrec_tensor *back = got->u.array[i].u.tensor;
        const unsigned char *p = tenrec_tensor_data(back);
        assert_int_equal(p[0], i + 1);
        assert_int_equal(p[tenrec_tensor_bytes(back) - 1], i + 1);
    }
    tenrec_value_drop(got);
    for (int i = 0; i < 3; i++)
        tenrec_tensor_drop(t[i]);
    nothing_is_left();
}

/* Loans of several threads go over one connection, new tensors and known ones by turns. */
enum { LENDERS = 4, LOANS = 200 };

static bool lend_own(unsigned char mark, struct tenrec_tensor *t)
{
    struct tenrec_value v = tenrec_value_tensor(t), *got = NULL;
    bool good =
        tenrec_rpc_sync(three.worker[0], "worker1", "echo", &v, 1, NULL, &got, NULL) == TENREC_OK;

    if (good) {
        const unsigned char *p = tenrec_tensor_data(got->u.tensor);
        good = tenrec_tensor_bytes(got->u.tensor) == tenrec_tensor_bytes(t) && p[0] == mark &&
               p[tenrec_tensor_bytes(t) - 1] == mark;
    }
    tenrec_value_drop(got);
    return good;
}

static void *lend_in_a_loop(void *arg)
{
    const unsigned char mark = *(const unsigned char *)arg;
    struct tenrec_tensor *mine = make(MIB + mark, TENREC_SHARED, mark);
    bool good = true;

    for (int i = 0; i < LOANS && good; i++) {
        struct tenrec_tensor *fresh = make(70000 + mark, TENREC_SHARED, mark);

        good = lend_own(mark, mine) && lend_own(mark, fresh);
        tenrec_tensor_drop(fresh);
    }
    tenrec_tensor_drop(mine);
    return good ? NULL : "a tensor did not come back as it was";
}

TEST(shared_tensors_of_several_threads_are_told_apart)
{
    static const unsigned char mark[LENDERS] = { 11, 22, 33, 44 };
    pthread_t thread[LENDERS];
    void *wrong[LENDERS];

    for (size_t i = 0; i < LENDERS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, lend_in_a_loop, (void *)&mark[i]), 0);
    for (size_t i = 0; i < LENDERS; i++)
        pthread_join(thread[i], &wrong[i]);
    for (size_t i = 0; i < LENDERS; i++)
        assert_null(wrong[i]);
    nothing_is_left();
}

/* The receiver keeps what it has when the group is gone, and the memory comes
 * back when it drops that. */
TEST(shared_tensor_outlives_the_workers)
{
    struct tenrec_tensor *t = make(MIB, TENREC_SHARED, 5);

    tenrec_value_drop(call_with("keep", tenrec_value_tensor(t)));
    cluster_close(&three, TENREC_GRACEFUL);
    tenrec_tensor_drop(t);
    sharing_collect(clock_now_ns());
    assert_int_equal(sharing_lent(), mapped);
    assert_int_equal(((unsigned char *)tenrec_tensor_data(kept))[77], 5);
    keep_instead(NULL);
    sharing_collect(clock_now_ns());
    assert_int_equal(sharing_lent(), 0);
    assert_int_equal(mapping_count().regions, 0);
    assert_int_equal(shared_memory_count().regions, 0);
}

static void register_echo_too(struct tenrec_worker *w, size_t rank)
{
    tenrec_error err;

    register_all(w, rank);
    assert_status(tenrec_worker_register_function(w, "echo", basic_echo, NULL, TENREC_INLINE, &err),
                  &err);
}

static void open_three(void)
{
    const char *const transports[] = { mapped ? "backends.tensorpipe.options.transports=[shm, uv]"
                                              : "backends.tensorpipe.options.transports=[uv]",
                                       NULL };

    cluster_open(&three, 3, transports, register_echo_too);
}

int main(int argc, char **argv)
{
    /* The last one closes what the others use. */

    if (argc > 1)
        cluster_use(argv[1]);
    mapped = argc > 2;
    return testing_run(open_three, NULL);
}
