/* SPDX-License-Identifier: Apache-2.0 */
/* The state machine of references under every order of messages.
 *
 * Three workers without network: their messages are in a bag, and each step takes one
 * out. A run is a row of choices of the next message and its fate; all rows are
 * tried. */
#include "core/base/clock.h"
#include "rpc/rref/rref_context.h"

#include "../testing.h"

enum { A, B, C, WORKERS, BAG = 64, DEPTH = 128, RUNS_MAX = 60000 };

enum kind {
    CONTROL, /* of a job */
    ACK,
    CREATE, /* a value is to be made */
    MADE,   /* its function has ended */
    CREATED,
    TIMEOUT, /* of the creation, at its caller */
    CALL,    /* brings a fork */
    RETURN,  /* of that call */
    FETCH,
    DROP, /* the program at `to` drops its reference */
};

struct message {
    enum kind kind;
    int from, to;
    bool again; /* a copy: no caller waits for its answer */
    struct rref_job *job;
    struct rref_fork fork; /* also of a job */
    int32_t type;
    tenrec_status status; /* of an ACK */
    struct rref_owner *making;
    struct tenrec_rref *ref; /* whose */
};

/* ---- choices ------------------------------------------------------------------ */

static struct {
    int taken[DEPTH], of[DEPTH];
    int at, n;
} choice;

static int pick(int of)
{
    if (choice.at == choice.n) {
        assert_in_range(choice.n, 0, DEPTH - 1);
        choice.taken[choice.n] = 0;
        choice.of[choice.n++] = of;
    }
    assert_int_equal(choice.of[choice.at], of);
    return choice.taken[choice.at++];
}

/* The next row; false after the last. */
static bool next_row(void)
{
    while (choice.n > 0 && choice.taken[choice.n - 1] + 1 == choice.of[choice.n - 1])
        choice.n--;
    if (choice.n > 0)
        choice.taken[choice.n - 1]++;
    choice.at = 0;
    return choice.n > 0;
}

/* ---- the world ------------------------------------------------------------------ */

/* The steps after a reference has arrived. */
struct plan {
    void (*arrived)(int at, struct tenrec_rref *r);
    bool returns;   /* calls return when what they brought is confirmed */
    bool times_out; /* the creation does, at some time */
    int faults;     /* that may befall control messages in a run */
};

static char nobody; /* stands for a worker */
static struct rref_context *ctx[WORKERS];
static struct message bag[BAG];
static int in_bag, faults;
static struct plan plan;
static struct tenrec_rref *creating; /* until its creation ends */

static void push(struct message m)
{
    assert_in_range(in_bag, 0, BAG - 1);
    bag[in_bag++] = m;
}

/* Messages of jobs go into the bag; memory goes. */
static void act(int at, struct rref_acts *acts)
{
    struct rref_job *job;
    struct tenrec_rref *r, *next;

    for (job = acts->jobs; job; job = job->next)
        push((struct message){ .kind = CONTROL,
                               .from = at,
                               .to = job->to,
                               .job = job,
                               .type = job->type,
                               .fork = { .id = job->id, .fork = job->fork } });
    assert_null(acts->ready);
    for (r = acts->dead; r; r = next) {
        next = r->next;
        rref_free(r);
    }
    *acts = (struct rref_acts){ 0 };
}

static void open_world(const struct plan *p)
{
    static const struct tenrec_member member[] = { { .id = 0, .name = "A" },
                                                   { .id = 1, .name = "B" },
                                                   { .id = 2, .name = "C" } };

    plan = *p;
    faults = p->faults;
    in_bag = 0;
    creating = NULL;
    for (int i = 0; i < WORKERS; i++) {
        const struct rref_setup s = { .worker = (struct tenrec_worker *)(void *)&nobody,
                                      .member = member,
                                      .n = WORKERS,
                                      .room = WORKERS,
                                      .me = i,
                                      .session = 1 };
        assert_int_equal(rref_context_new(&s, &ctx[i], NULL), TENREC_OK);
    }
}

/* All is delivered and dropped: nothing may be left. */
static void close_world(void)
{
    struct rref_acts acts = { 0 };

    for (int i = 0; i < WORKERS; i++) {
        struct rref_counts n = rref_context_count(ctx[i]);
        if (n.num_owner_rrefs || n.num_forks || n.num_pending_users || n.num_confirmed_users ||
            n.num_pending_children || n.num_pending_owners || n.num_pending_futures)
            fail_msg(
                "worker %d: %zu owners, %zu forks, %zu + %zu users, %zu children, %zu awaited, "
                "%zu messages are left",
                i, n.num_owner_rrefs, n.num_forks, n.num_pending_users, n.num_confirmed_users,
                n.num_pending_children, n.num_pending_owners, n.num_pending_futures);
        assert_null(ctx[i]->owners);
        assert_null(ctx[i]->users);
        rref_context_close(ctx[i], &acts);
        rref_context_drop(ctx[i]);
    }
}

/* ---- what messages do ------------------------------------------------------------- */

static void drop(int at, struct tenrec_rref *r)
{
    struct rref_acts acts = { 0 };

    rref_release(r, &acts);
    act(at, &acts);
}

static void fetch_from(int at, struct tenrec_rref *r)
{
    const struct rref_user *u = rref_user_of(r);

    push((struct message){ .kind = FETCH,
                           .from = at,
                           .to = B,
                           .ref = r,
                           .fork = { .id = r->id, .fork = u ? u->fork : r->id } });
}

static void send_fork(int at, int to, struct tenrec_rref *r)
{
    struct rref_fork f;
    tenrec_error err;

    if (rref_fork_for(r, to, &f, &err) != TENREC_OK)
        return; /* its creation has failed */
    push((struct message){ .kind = CALL, .from = at, .to = to, .fork = f });
}

static void take_control(const struct message *m, int befalls)
{
    struct rref_acts acts = { 0 };
    tenrec_status st = TENREC_OK;

    if (m->type == TENREC_MSG_RREF_FORK_REQUEST)
        st = rref_fork_requested(ctx[m->to], m->fork.id, m->fork.fork, m->from, NULL);
    else if (m->type == TENREC_MSG_RREF_CHILD_ACCEPT)
        rref_child_arrived(ctx[m->to], m->fork.fork, m->from, &acts);
    else
        rref_user_deleted(ctx[m->to], m->fork.id, m->fork.fork, m->from, &acts);
    act(m->to, &acts);
    if (m->again)
        return;
    if (befalls == 2) { /* its answer is lost: it is sent again */
        push(*m);
        return;
    }
    if (befalls == 1) { /* it comes a second time, whenever */
        struct message copy = *m;
        copy.again = true;
        push(copy);
    }
    push(
        (struct message){ .kind = ACK, .from = m->to, .to = m->from, .job = m->job, .status = st });
}

static void take_ack(const struct message *m)
{
    struct rref_acts acts = { 0 };
    tenrec_error why;

    tenrec_fail(&why, m->status, "refused");
    assert_int_equal(m->status, TENREC_OK); /* no reference may be lost */
    rref_job_done(m->job, m->status ? &why : NULL, &acts);
    act(m->to, &acts);
}

static void take_create(const struct message *m)
{
    struct rref_owner *o;

    if (rref_begin_making(ctx[m->to], m->fork.id, m->fork.fork, m->from, &o, NULL) == TENREC_OK)
        push((struct message){
            .kind = MADE, .from = m->from, .to = m->to, .fork = m->fork, .making = o });
}

static void take_made(const struct message *m)
{
    const struct tenrec_value nil = tenrec_value_nil();
    struct tenrec_value *v;
    struct rref_acts acts = { 0 };

    assert_int_equal(tenrec_value_copy(&nil, &v, NULL), TENREC_OK);
    rref_made(m->making, m->fork.fork, m->from, v, NULL, &acts);
    act(m->to, &acts);
    push((struct message){ .kind = CREATED, .from = m->to, .to = m->from });
}

static void take_created(const struct message *m)
{
    struct tenrec_rref *r = creating;
    struct rref_acts acts = { 0 };
    tenrec_error why;

    if (!r)
        return; /* an answer after the timeout, or the other way round */
    creating = NULL;
    tenrec_fail(&why, TENREC_ETIMEDOUT, "too late");
    rref_created(r, m->kind == TIMEOUT ? &why : NULL, &acts);
    act(m->to, &acts);
}

static void take_call(const struct message *m)
{
    struct rref_acts acts = { 0 };
    struct tenrec_rref *r;
    tenrec_error err;

    if (rref_arrive(ctx[m->to], &m->fork, &r, &acts, &err) != TENREC_OK)
        fail_msg("%s", err.text);
    act(m->to, &acts);
    plan.arrived(m->to, r);
    if (plan.returns)
        push((struct message){ .kind = RETURN, .from = m->to, .to = m->from, .fork = m->fork });
}

/* The function runs when its argument is confirmed, and then returns. */
static bool may_return(const struct message *m)
{
    struct rref_user *u;

    HASH_FIND(hh, ctx[m->from]->users, &m->fork.fork, sizeof m->fork.fork, u);
    return !u || u->state != USER_PENDING;
}

static void take_return(const struct message *m)
{
    struct rref_acts acts = { 0 };

    rref_child_arrived(ctx[m->to], m->fork.fork, m->from, &acts);
    act(m->to, &acts);
}

/* The holder of a confirmed reference must find the value. */
static void take_fetch(const struct message *m)
{
    struct rref_owner *o;
    struct rref_acts acts = { 0 };
    tenrec_error err;

    if (rref_find(ctx[m->to], m->fork.id, m->fork.fork, m->from, &o, &err) != TENREC_OK)
        fail_msg("%s", err.text);
    rref_release(&o->ref, &acts);
    act(m->to, &acts);
    push((struct message){ .kind = DROP, .to = m->from, .ref = m->ref });
}

static bool is_ready(const struct message *m)
{
    return m->kind != RETURN || may_return(m);
}

static void step(void)
{
    int ready[BAG], n = 0, befalls = 0;
    struct message m;

    for (int i = 0; i < in_bag; i++)
        if (is_ready(&bag[i]))
            ready[n++] = i;
    assert_true(n > 0);
    n = ready[pick(n)];
    m = bag[n];
    bag[n] = bag[--in_bag];
    if ((m.kind == CONTROL || m.kind == CREATE) && !m.again && faults > 0) {
        befalls = pick(m.kind == CONTROL ? 3 : 2);
        faults -= befalls != 0;
    }
    switch (m.kind) {
    case CONTROL:
        take_control(&m, befalls);
        break;
    case ACK:
        take_ack(&m);
        break;
    case CREATE:
        if (befalls == 1) {
            m.again = true;
            push(m);
        }
        take_create(&m);
        break;
    case MADE:
        take_made(&m);
        break;
    case CREATED:
    case TIMEOUT:
        take_created(&m);
        break;
    case CALL:
        take_call(&m);
        break;
    case RETURN:
        take_return(&m);
        break;
    case FETCH:
        take_fetch(&m);
        break;
    case DROP:
        drop(m.to, m.ref);
    }
}

/* Runs `begin`, and what follows from it, under all rows of choices. */
static void all_orders(const struct plan *p, void (*begin)(void))
{
    int runs = 0;

    choice.n = choice.at = 0;
    do {
        open_world(p);
        begin();
        while (in_bag > 0)
            step();
        close_world();
        runs++;
    } while (next_row() && runs < RUNS_MAX);
    assert_true(runs > 1);
}

/* ---- the scenarios -------------------------------------------------------------------- */

static struct tenrec_rref *create(void)
{
    struct rref_user *u;

    assert_int_equal(rref_user_new(ctx[A], B, &u, NULL), TENREC_OK);
    creating = tenrec_rref_share(&u->ref);
    push((struct message){
        .kind = CREATE, .from = A, .to = B, .fork = { u->ref.id, u->fork, B, A } });
    if (plan.times_out)
        push((struct message){ .kind = TIMEOUT, .from = B, .to = A });
    return &u->ref;
}

static void then_fetch(int at, struct tenrec_rref *r)
{
    if (at == B)
        push((struct message){ .kind = DROP, .to = at, .ref = r });
    else
        fetch_from(at, r);
}

static void pass_on_to_a(int at, struct tenrec_rref *r)
{
    if (at == C)
        send_fork(C, A, r);
    push((struct message){ .kind = DROP, .to = at, .ref = r });
}

/* 1: a user creates on the owner, and fetches. */
static void begin_create(void)
{
    fetch_from(A, create());
}

static void begin_create_and_drop(void)
{
    drop(A, create());
}

/* 2: a user passes it to its owner. */
static void begin_user_to_owner(void)
{
    struct tenrec_rref *r = create();

    send_fork(A, B, r);
    drop(A, r);
}

/* 3: the owner passes it to a user. */
static void begin_owner_to_user(void)
{
    const struct tenrec_value nil = tenrec_value_nil();
    struct tenrec_value *v;
    struct tenrec_rref *r;

    assert_int_equal(tenrec_value_copy(&nil, &v, NULL), TENREC_OK);
    assert_int_equal(rref_local(ctx[B], v, &r, NULL), TENREC_OK);
    send_fork(B, C, r);
    drop(B, r);
}

/* 4: a user passes it to a user. */
static void begin_user_to_user(void)
{
    struct tenrec_rref *r = create();

    send_fork(A, C, r);
    drop(A, r);
}

TEST(order_does_not_matter_when_created)
{
    all_orders(&(struct plan){ then_fetch, false, false, 2 }, begin_create);
    all_orders(&(struct plan){ then_fetch, false, false, 2 }, begin_create_and_drop);
}

TEST(order_does_not_matter_when_the_creation_times_out)
{
    all_orders(&(struct plan){ then_fetch, false, true, 2 }, begin_create_and_drop);
}

TEST(order_does_not_matter_when_passed_to_the_owner)
{
    all_orders(&(struct plan){ then_fetch, false, false, 1 }, begin_user_to_owner);
    all_orders(&(struct plan){ then_fetch, true, false, 1 }, begin_user_to_owner);
}

TEST(order_does_not_matter_when_passed_by_the_owner)
{
    all_orders(&(struct plan){ then_fetch, true, false, 2 }, begin_owner_to_user);
}

TEST(order_does_not_matter_when_passed_to_another_user)
{
    all_orders(&(struct plan){ then_fetch, false, false, 0 }, begin_user_to_user);
    all_orders(&(struct plan){ then_fetch, false, false, 1 }, begin_user_to_user);
    all_orders(&(struct plan){ then_fetch, true, false, 1 }, begin_user_to_user);
}

TEST(order_does_not_matter_when_passed_back)
{
    all_orders(&(struct plan){ pass_on_to_a, false, false, 0 }, begin_user_to_user);
    all_orders(&(struct plan){ pass_on_to_a, true, false, 1 }, begin_owner_to_user);
}
