/* SPDX-License-Identifier: Apache-2.0 */
/* dying_test.c - an object that is freed while a task of its own is posted. */
#include "node.h"
#include "reactor/reactor.h"

struct object {
    struct reactor reactor;
    struct reactor_task begin, own, free_task;
    bool own_ran; /* loop thread only */
    atomic_bool freed, own_ran_first;
};

static void run_begin(struct reactor_task *t)
{
    struct object *o = CONTAINER(t, struct object, begin);

    reactor_post(&o->reactor, &o->own);
    reactor_defer(&o->reactor, &o->free_task);
}

static void run_own(struct reactor_task *t)
{
    CONTAINER(t, struct object, own)->own_ran = true;
}

static void run_free(struct reactor_task *t)
{
    struct object *o = CONTAINER(t, struct object, free_task);

    atomic_store(&o->own_ran_first, o->own_ran);
    atomic_store(&o->freed, true);
}

TEST(object_is_freed_after_the_tasks_that_it_posted)
{
    struct object o = { .begin.run = run_begin, .own.run = run_own, .free_task.run = run_free };
    tenrec_error err;

    assert_status(reactor_init(&o.reactor, &err), &err);
    assert_status(reactor_start(&o.reactor, &err), &err);
    reactor_post(&o.reactor, &o.begin);
    assert_becomes(atomic_load(&o.freed));
    assert_true(atomic_load(&o.own_ran_first));
    reactor_stop(&o.reactor);
    reactor_finish(&o.reactor);
}
