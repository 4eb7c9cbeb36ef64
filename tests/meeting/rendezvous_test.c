/* SPDX-License-Identifier: Apache-2.0 */
/* From init_method and environment to rank, world and store. The environment
 * is a list of the test's own. */
#include "../support/test_store.h"

#include "core/base/clock.h"
#include "group/meeting/meeting.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "environment.h"

static tenrec_error err;

/* Of options that the case does not care about. */
#define OTHERS .group = "default", .name = "worker{rank}", .lease_ms = 5000

TEST(rendezvous_refuses_invalid_settings)
{
    const struct {
        const char *init;
        int32_t rank, world;
        const char *says;
    } rows[] = {
        { "ftp//x", -1, 0, "expected env://" },
        { "tcp://127.0.0.1:5?world_size=2", -1, 0, "the rank of this process is missing" },
        { "tcp://127.0.0.1:5?rank=2&world_size=2", -1, 0, "rank 2 is not within 0..1" },
        { "tcp://127.0.0.1:5?rank=x&world_size=2", -1, 0, "rank=\"x\"" },
        { "tcp://127.0.0.1:5?rang=1", -1, 0, "\"rang=1\" is neither" },
        { "tcp://127.0.0.1:5?rank=1&world_size=2", 0, 2, "rank 0 is configured" },
        { "tcp://127.0.0.1?rank=1&world_size=2", -1, 0, "host:port" },
        { "env://", 1, 2, "set MASTER_ADDR" },
        { "env://", 1, 0, "the group is dynamic: set MASTER_ADDR" },
        { "file://?rank=0&world_size=1", -1, 0, "path" },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct rendezvous_options o = { OTHERS, .init_method = rows[i].init, .rank = rows[i].rank,
                                        .world = rows[i].world };
        struct rendezvous *r = NULL;
        assert_int_equal(rendezvous_open(&o, clock_deadline_ms(TEST_MS), &r, &err), TENREC_EINVAL);
        assert_text_has(err.text, rows[i].says);
        assert_text_has(err.text, "init_method");
        assert_null(r);
    }
}

static void host_has_rank(const char *host, const char *init, int32_t rank, const char *says)
{
    struct rendezvous_options o = { OTHERS, .init_method = init, .rank = -1, .store_only = true };
    struct rendezvous *r = NULL;

    environment = ENV("HOSTNAME", host);
    if (says) {
        assert_int_equal(rendezvous_open(&o, clock_deadline_ms(TEST_MS), &r, &err), TENREC_EINVAL);
        assert_text_has(err.text, says);
    } else {
        assert_status(rendezvous_open(&o, clock_deadline_ms(TEST_MS), &r, &err), &err);
        assert_int_equal(r->launch.rank, rank);
        rendezvous_close(r, clock_deadline_ms(TEST_MS));
    }
    environment = nothing;
}

TEST(rendezvous_takes_the_rank_of_the_host)
{
    host_has_rank("worker-3", "memory://hosts?rank=host", 3, NULL);
    host_has_rank("gpu07.cluster.example2", "memory://hosts?rank=host", 7, NULL);
    host_has_rank("12", "memory://hosts?rank=host", 12, NULL);
    host_has_rank("worker-4", "memory://hosts?rank=host&world_size=4", 0,
                  "rank 4 is not within 0..3");
    host_has_rank("bastion", "memory://hosts?rank=host", 0,
                  "\"bastion\" of this host ends with no number");
    host_has_rank("w-99999999999999999999", "memory://hosts?rank=host", 0,
                  "must be a whole number");
    host_has_rank("worker-3", "memory://hosts?rank=hosts", 0, "rank=\"hosts\"");
    assert_status(rendezvous_check("tcp://worker-0.worker:29500?rank=host", &err), &err);
}

TEST(rendezvous_alone_needs_nothing)
{
    struct rendezvous_options o = { OTHERS, .init_method = "env://", .rank = -1 };
    struct rendezvous *r;
    struct members *members;

    assert_status(rendezvous_open(&o, clock_deadline_ms(TEST_MS), &r, &err), &err);
    assert_int_equal(r->launch.rank, 0);
    assert_int_equal(r->launch.world, 1);
    assert_status(
        members_join(&r->generation, "w", "a", NULL, clock_deadline_ms(TEST_MS), &members, &err),
        &err);
    members_drop(members);
    rendezvous_close(r, clock_deadline_ms(TEST_MS));
}

#define MOST 8

/* One process of a group, as a worker would do it, twice or more. */
struct process {
    struct rendezvous_options o;
    const char *const *env; /* NULL: no variables */
    int rounds;
    int64_t ms;
    char address[16];
    tenrec_status st;
    tenrec_error err;
};

static tenrec_status one_life(struct process *p)
{
    struct rendezvous *r;
    struct members *members = NULL;
    struct tenrec_process_group *pg;
    int64_t sum = -1;
    char name[16];
    tenrec_status st = rendezvous_open(&p->o, clock_deadline_ms((uint64_t)p->ms), &r, &p->err);

    if (st != TENREC_OK)
        return st;
    snprintf(name, sizeof name, "w%d", r->launch.rank);
    st = members_join(&r->generation, name, p->address, NULL, clock_deadline_ms((uint64_t)p->ms),
                      &members, &p->err);
    if (st == TENREC_OK)
        st = process_group_new_once(r->generation.store, r->launch.rank, r->launch.world,
                                    "shutdown", NULL, &pg, &p->err);
    if (st == TENREC_OK) {
        st = process_group_sum(pg, &(int64_t){ r->launch.rank }, 1, NULL,
                               clock_deadline_ms((uint64_t)p->ms), &sum, &p->err);
        if (st == TENREC_OK && sum != r->launch.world * (r->launch.world - 1) / 2)
            st = tenrec_fail(&p->err, TENREC_EPROTOCOL, "the sum is %lld", (long long)sum);
        tenrec_process_group_drop(pg);
    }
    members_drop(members);
    rendezvous_close(r, clock_deadline_ms((uint64_t)p->ms));
    return st;
}

static void *live(void *arg)
{
    struct process *p = arg;

    environment = p->env ? p->env : nothing;
    p->st = TENREC_OK;
    for (int i = 0; i < p->rounds && p->st == TENREC_OK; i++)
        p->st = one_life(p);
    return NULL;
}

static void live_all(const char *init, int n, int rounds, const char *const *const *env)
{
    struct process p[MOST];
    pthread_t thread[MOST];

    for (int i = 0; i < n; i++) {
        p[i] = (struct process){
            .rounds = rounds, .ms = TEST_MS, .address = "nowhere", .env = env ? env[i] : NULL
        };
        p[i].o = (struct rendezvous_options){ OTHERS, .init_method = init, .rank = env ? -1 : i,
                                              .world = env ? 0 : n };
        assert_int_equal(pthread_create(&thread[i], NULL, live, &p[i]), 0);
    }
    for (int i = 0; i < n; i++)
        pthread_join(thread[i], NULL);
    for (int i = 0; i < n; i++)
        if (p[i].st != TENREC_OK)
            print_message("# rank %d: %s\n", i, p[i].err.text);
    for (int i = 0; i < n; i++)
        assert_int_equal(p[i].st, TENREC_OK);
}

static uint16_t free_port(void)
{
    struct tenrec_store_server *server;
    uint16_t port;

    assert_status(tenrec_store_server_new("127.0.0.1", 0, &server, &port, &err), &err);
    tenrec_store_server_drop(server);
    return port;
}

/* Each life serves its own store at the same port. */
TEST(rendezvous_by_tcp_works_again_and_again)
{
    char init[64];

    snprintf(init, sizeof init, "tcp://127.0.0.1:%u", free_port());
    live_all(init, 4, 20, NULL);
}

TEST(rendezvous_by_file_works_again_and_again)
{
    char path[64], init[80];

    snprintf(path, sizeof path, "/tmp/tenrec-rdv-%d", (int)getpid());
    snprintf(init, sizeof init, "file://%s", path);
    live_all(init, 8, 5, NULL);
    assert_int_equal(access(path, F_OK), -1); /* the last one has removed it */
}

TEST(rendezvous_by_torchruns_variables_serves_at_rank_0)
{
    char port[8];
    const char *const *env[2];

    snprintf(port, sizeof port, "%u", free_port());
    env[0] = ENV("RANK", "0", "WORLD_SIZE", "2", "MASTER_ADDR", "localhost", "MASTER_PORT", port);
    env[1] = ENV("RANK", "1", "WORLD_SIZE", "2", "MASTER_ADDR", "localhost", "MASTER_PORT", port);
    live_all("env://", 2, 2, env);
}

TEST(rendezvous_only_connects_to_an_agents_store)
{
    struct tenrec_store_server *server;
    char port[8];
    uint16_t n;
    const char *const *env[2];

    assert_status(tenrec_store_server_new("127.0.0.1", 0, &server, &n, &err), &err);
    snprintf(port, sizeof port, "%u", n);
    env[0] = ENV("RANK", "0", "WORLD_SIZE", "2", "MASTER_ADDR", "127.0.0.1", "MASTER_PORT", port,
                 "TORCHELASTIC_USE_AGENT_STORE", "True");
    env[1] = ENV("RANK", "1", "WORLD_SIZE", "2", "MASTER_ADDR", "127.0.0.1", "MASTER_PORT", port,
                 "TORCHELASTIC_USE_AGENT_STORE", "True");
    live_all("env://", 2, 3, env);
    tenrec_store_server_drop(server);
}

TEST(rendezvous_of_two_groups_shares_a_store)
{
    struct process p[4];
    pthread_t thread[4];

    for (int i = 0; i < 4; i++) {
        p[i] = (struct process){ .rounds = 3, .ms = TEST_MS, .address = "x" };
        p[i].o = (struct rendezvous_options){ .name = "worker{rank}",
                                              .lease_ms = 5000,
                                              .init_method = "memory://two-groups",
                                              .group = i < 2 ? "left" : "right",
                                              .rank = i % 2,
                                              .world = 2 };
        assert_int_equal(pthread_create(&thread[i], NULL, live, &p[i]), 0);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    for (int i = 0; i < 4; i++)
        if (p[i].st != TENREC_OK)
            fail_msg("process %d: %s", i, p[i].err.text);
}

TEST(rendezvous_of_rank_0_names_a_port_that_is_taken)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
    socklen_t len = sizeof at;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct rendezvous *r = NULL;
    struct rendezvous_options o = { OTHERS, .rank = 0, .world = 2 };
    char init[64];

    assert_int_equal(bind(fd, (struct sockaddr *)&at, len), 0);
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    snprintf(init, sizeof init, "tcp://127.0.0.1:%u", ntohs(at.sin_port));
    o.init_method = init;
    assert_int_equal(rendezvous_open(&o, clock_deadline_ms(TEST_MS), &r, &err), TENREC_EOS);
    assert_text_has(err.text, "in use");
    assert_text_has(err.text, "use another port");
    assert_text_has(err.text, init);
    close(fd);
}

TEST(rendezvous_of_rank_0_shares_the_store_that_has_the_port)
{
    struct rendezvous_options o = { OTHERS, .rank = 0, .world = 1 };
    struct process p[2];
    pthread_t thread[2];
    struct rendezvous *r;
    char init[64];

    snprintf(init, sizeof init, "tcp://127.0.0.1:%u", free_port());
    o.init_method = init;
    assert_status(rendezvous_open(&o, clock_deadline_ms(TEST_MS), &r, &err), &err);
    for (int i = 0; i < 2; i++) {
        p[i] = (struct process){ .rounds = 2, .ms = TEST_MS, .address = "x" };
        p[i].o = (struct rendezvous_options){ OTHERS, .init_method = init, .rank = i, .world = 2 };
        p[i].o.group = "second";
        assert_int_equal(pthread_create(&thread[i], NULL, live, &p[i]), 0);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    for (int i = 0; i < 2; i++)
        if (p[i].st != TENREC_OK)
            fail_msg("process %d: %s", i, p[i].err.text);
    rendezvous_close(r, clock_deadline_ms(TEST_MS));
}

static bool second_is_lost(void *arg, int32_t rank, uint64_t waited_ms)
{
    (void)arg, (void)waited_ms;
    return rank == 1;
}

TEST(rendezvous_of_rank_0_does_not_wait_for_the_lost)
{
    const uint64_t deadline_ns = clock_deadline_ms(TEST_MS);
    struct rendezvous *r[2] = { NULL };
    char init[64];

    snprintf(init, sizeof init, "tcp://127.0.0.1:%u", free_port());
    for (int32_t i = 0; i < 2; i++) {
        const struct rendezvous_options o = { OTHERS, .init_method = init, .rank = i, .world = 2 };
        assert_status(rendezvous_open(&o, deadline_ns, &r[i], &err), &err);
        r[i]->generation.end = GENERATION_LEFT;
    }
    r[0]->lost = (struct group_lost){ second_is_lost, NULL };
    rendezvous_close(r[0], deadline_ns);
    assert_false(clock_passed(deadline_ns));
    rendezvous_close(r[1], clock_now_ns());
}

TEST(rendezvous_of_rank_0_does_not_wait_for_a_last_key_that_was_lost)
{
    const uint64_t deadline_ns = clock_deadline_ms(TEST_MS);
    struct rendezvous *r[2] = { NULL };
    char init[64];

    snprintf(init, sizeof init, "tcp://127.0.0.1:%u", free_port());
    for (int32_t i = 0; i < 2; i++) {
        const struct rendezvous_options o = { OTHERS, .init_method = init, .rank = i, .world = 2 };
        assert_status(rendezvous_open(&o, deadline_ns, &r[i], &err), &err);
        r[i]->generation.end = GENERATION_LEFT;
    }
    rendezvous_close(r[0], deadline_ns);
    assert_false(clock_passed(deadline_ns));
    rendezvous_close(r[1], clock_now_ns());
}

static tenrec_status visit(const char *init, struct rendezvous **ret)
{
    const struct rendezvous_options o = { OTHERS, .init_method = init };

    return rendezvous_visit(&o, clock_deadline_ms(TEST_MS), ret, &err);
}

TEST(rendezvous_visitor_makes_no_file)
{
    struct rendezvous *r;
    char init[64];

    snprintf(init, sizeof init, "file:///tmp/tenrec-visit-%d", (int)getpid());
    assert_int_equal(visit(init, &r), TENREC_ENOTFOUND);
    assert_text_has(err.text, init);
    assert_int_not_equal(access(init + strlen("file://"), F_OK), 0);
}

TEST(rendezvous_visitor_gets_the_names_of_missing_settings)
{
    struct rendezvous *r;

    assert_int_equal(visit("env://", &r), TENREC_EINVAL);
    assert_text_has(err.text, "set MASTER_ADDR and MASTER_PORT as for its workers");
}

static int64_t keys_of(struct tenrec_store *s)
{
    int64_t n;

    assert_status(store_num_keys(s, clock_deadline_ms(TEST_MS), &n, &err), &err);
    return n;
}

TEST(rendezvous_visitor_leaves_a_static_group_unchanged)
{
    const struct rendezvous_options o = { OTHERS, .init_method = "memory://visited", .rank = 0,
                                          .world = 1 };
    const uint64_t deadline_ns = clock_deadline_ms(TEST_MS);
    struct rendezvous *r, *visitor;
    struct members *members;
    int64_t n;

    assert_status(rendezvous_open(&o, deadline_ns, &r, &err), &err);
    assert_status(members_join(&r->generation, "w", "a", NULL, deadline_ns, &members, &err), &err);
    n = keys_of(r->store);
    assert_status(visit(o.init_method, &visitor), &err);
    assert_false(visitor->dynamic);
    assert_int_equal(visitor->generation.world, 1);
    assert_int_equal(visitor->generation.rank, TENREC_ANONYMOUS);
    rendezvous_close(visitor, deadline_ns);
    assert_int_equal(keys_of(r->store), n);
    members_drop(members);
    rendezvous_close(r, deadline_ns);
}

TEST(rendezvous_visitor_leaves_a_dynamic_group_unchanged)
{
    const struct rendezvous_options o = { OTHERS, .init_method = "memory://visited", .rank = -1 };
    const uint64_t deadline_ns = clock_deadline_ms(TEST_MS);
    struct rendezvous *r, *visitor;
    struct membership_view v;
    int64_t n;

    assert_status(rendezvous_open(&o, deadline_ns, &r, &err), &err);
    assert_status(membership_list_join(&r->member_list, "a", NULL, deadline_ns, &v, &err), &err);
    membership_view_finish(&v);
    n = keys_of(r->store);
    assert_status(visit(o.init_method, &visitor), &err);
    assert_true(visitor->dynamic);
    assert_status(membership_list_read(&visitor->member_list, deadline_ns, &v, &err), &err);
    assert_int_equal(v.n, 1);
    membership_view_finish(&v);
    rendezvous_close(visitor, deadline_ns);
    assert_int_equal(keys_of(r->store), n);
    rendezvous_close(r, deadline_ns);
}
