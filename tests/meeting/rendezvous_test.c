/* SPDX-License-Identifier: Apache-2.0 */
/* From init_method and environment to rank, world and store. The environment
 * is a list of the test's own. */
#include "../support/test_store.h"

#include "core/base/clock.h"
#include "group/meeting/members.h"
#include "group/meeting/rendezvous.h"
#include "group/meeting/slurm.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

static tenrec_error err;

/* Of options that the case does not care about. */
#define OTHERS .group = "default", .name = "worker{rank}", .lease_ms = 5000

/* NAME, value, NAME, value, ..., NULL: all variables that the calling thread finds, and the secret
 * of the run. */
static const char *const nothing[] = { NULL };
static _Thread_local const char *const *environment = nothing;

char *__wrap_secure_getenv(const char *name);
char *__wrap_secure_getenv(const char *name)
{
    for (const char *const *at = environment; *at; at += 2)
        if (strcmp(at[0], name) == 0)
            return (char *)(uintptr_t)at[1];
    return strcmp(name, "TENREC_SECRET_FILE") == 0 ? getenv(name) : NULL;
}

#define ENV(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define MASTER "MASTER_ADDR", "10.1.2.3", "MASTER_PORT", "29500"

struct row {
    const char *what;
    const char *const *env;
    int32_t rank, world; /* given by the configuration; -1 none */
    struct launch expected;
};

TEST(launch_takes_the_first_launcher_that_is_there)
{
    const struct row rows[] = {
        { "nothing", ENV(NULL), -1, -1, { -1, -1, -1, -1, "single process" } },
        { "torchrun",
          ENV("RANK", "1", "WORLD_SIZE", "4", "LOCAL_RANK", "1", "LOCAL_WORLD_SIZE", "2", MASTER,
              "TORCHELASTIC_RUN_ID", "job/7", "TORCHELASTIC_RESTART_COUNT", "3"),
          -1,
          -1,
          { 1, 4, 1, 2, "torchrun's variables", .run = "job_7.3" } },
        { "tenrec before torchrun",
          ENV("TENREC_RANK", "2", "TENREC_WORLD_SIZE", "3", "RANK", "1", "WORLD_SIZE", "4"),
          -1,
          -1,
          { 2, 3, -1, -1, "TENREC_RANK" } },
        { "a rank alone: a dynamic group",
          ENV("RANK", "4"),
          -1,
          -1,
          { 4, -1, -1, -1, "torchrun's variables" } },
        { "configuration before all",
          ENV("TENREC_RANK", "x", "RANK", "1", "WORLD_SIZE", "4", "LOCAL_RANK", "1"),
          0,
          9,
          { 0, 9, -1, -1, "the configuration" } },
        { "configured rank, size from outside",
          ENV("WORLD_SIZE", "4"),
          3,
          -1,
          { 3, 4, -1, -1, "single process" } },
        { "configured size, rank from outside",
          ENV("RANK", "1"),
          -1,
          4,
          { 1, 4, -1, -1, "torchrun's variables" } },
        { "mpirun with PMIx",
          ENV("PMIX_RANK", "1", "PMIX_NAMESPACE", "123.1", "OMPI_COMM_WORLD_RANK", "1",
              "OMPI_COMM_WORLD_SIZE", "2", "OMPI_COMM_WORLD_LOCAL_RANK", "1",
              "OMPI_COMM_WORLD_LOCAL_SIZE", "2"),
          -1,
          -1,
          { 1, 2, 1, 2, "PMIx", .run = "123.1.0" } },
        { "mpirun without PMIx",
          ENV("OMPI_COMM_WORLD_RANK", "1", "OMPI_COMM_WORLD_SIZE", "2",
              "OMPI_COMM_WORLD_LOCAL_RANK", "0", "OMPI_COMM_WORLD_LOCAL_SIZE", "1"),
          -1,
          -1,
          { 1, 2, 0, 1, "Open MPI" } },
        { "srun --mpi=pmi2",
          ENV("PMI_RANK", "5", "PMI_SIZE", "8", "PMI_FD", "9", "SLURM_PROCID", "5", "SLURM_STEP_ID",
              "0", "SLURM_STEP_NUM_TASKS", "8", "SLURM_LOCALID", "1", "SLURM_STEP_TASKS_PER_NODE",
              "4(x2)", "SLURM_NODEID", "1"),
          -1,
          -1,
          { 5, 8, 1, 4, "PMI" } },
        { "PMI_RANK without its socket",
          ENV("PMI_RANK", "5", "PMI_SIZE", "8"),
          -1,
          -1,
          { -1, -1, -1, -1, "single process" } },
        { "srun",
          ENV("SLURM_PROCID", "2", "SLURM_STEP_NUM_TASKS", "3", "SLURM_STEP_ID", "1",
              "SLURM_JOB_ID", "77", "SLURM_LOCALID", "0", "SLURM_STEP_TASKS_PER_NODE", "2,1",
              "SLURM_NODEID", "1"),
          -1,
          -1,
          { 2, 3, 0, 1, "Slurm", .run = "77.1" } },
        { "a run id of our own",
          ENV("TENREC_RUN_ID", "night 3", "RANK", "0", "WORLD_SIZE", "1", "TORCHELASTIC_RUN_ID",
              "x"),
          -1,
          -1,
          { 0, 1, -1, -1, "torchrun's variables", .run = "night_3" } },
        { "shell of an sbatch job",
          ENV("SLURM_PROCID", "0", "SLURM_NTASKS", "8", "SLURM_JOB_ID", "77", "SLURM_STEP_ID",
              "4294967291"),
          -1,
          -1,
          { -1, -1, -1, -1, "single process" } },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row *r = &rows[i];
        struct launch got;
        print_message("# %s\n", r->what);
        environment = r->env;
        assert_status(launch_detect(r->rank, r->world, &got, &err), &err);
        assert_int_equal(got.rank, r->expected.rank);
        assert_int_equal(got.world, r->expected.world);
        assert_int_equal(got.local_rank, r->expected.local_rank);
        assert_int_equal(got.local_world, r->expected.local_world);
        assert_string_equal(got.source, r->expected.source);
        if (*r->expected.run)
            assert_string_equal(got.run, r->expected.run);
    }
    environment = nothing;
}

TEST(launch_says_which_variable_is_wrong)
{
    const struct {
        const char *const *env;
        const char *says;
    } rows[] = {
        { ENV("WORLD_SIZE", "2"), "WORLD_SIZE is set but not RANK" },
        { ENV("TENREC_WORLD_SIZE", "2"), "TENREC_WORLD_SIZE is set but not TENREC_RANK" },
        { ENV("RANK", "one", "WORLD_SIZE", "2"), "RANK=\"one\"" },
        { ENV("RANK", "-1", "WORLD_SIZE", "2"), "RANK=\"-1\"" },
        { ENV("RANK", "0", "WORLD_SIZE", "0"), "WORLD_SIZE=\"0\"" },
        { ENV("RANK", "0", "WORLD_SIZE", "99999999999999999999"), "WORLD_SIZE=" },
        { ENV("TENREC_RANK", "1x", "TENREC_WORLD_SIZE", "2"), "TENREC_RANK=\"1x\"" },
        { ENV("PMIX_RANK", "0"), "PMIX_RANK is set but not OMPI_COMM_WORLD_SIZE" },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct launch got;
        environment = rows[i].env;
        assert_int_equal(launch_detect(-1, -1, &got, &err), TENREC_EINVAL);
        assert_text_has(err.text, rows[i].says);
    }
    environment = nothing;
}

#define STEP "SLURM_PROCID", "0", "SLURM_STEP_ID", "2", "SLURM_JOB_ID", "1000"

TEST(place_is_that_of_the_launcher)
{
    const struct {
        const char *const *env;
        int32_t local_world; /* of 4 */
        const char *host;
        uint16_t port;
        bool agent, file;
    } rows[] = {
        { ENV(MASTER), -1, "10.1.2.3", 29500, false, false },
        { ENV(MASTER, "TORCHELASTIC_USE_AGENT_STORE", "True"), -1, "10.1.2.3", 29500, true, false },
        { ENV(MASTER, "TORCHELASTIC_USE_AGENT_STORE", "False"), -1, "10.1.2.3", 29500, false,
          false },
        { ENV(MASTER, STEP), -1, "10.1.2.3", 29500, false, false },
        { ENV(STEP, "SLURM_STEP_NODELIST", "gpu[03-07,9]", "SLURM_LAUNCH_NODE_IPADDR", "10.0.0.1"),
          -1, "gpu03", 10000 + (1000 * 61 + 2) % 20000, false, false },
        { ENV(STEP, "SLURM_LAUNCH_NODE_IPADDR", "10.0.0.1"), -1, "10.0.0.1",
          10000 + (1000 * 61 + 2) % 20000, false, false },
        { ENV(STEP, "SLURM_STEP_NODELIST", "n1", "SLURM_STEP_NUM_NODES", "1"), -1, "127.0.0.1",
          10000 + (1000 * 61 + 2) % 20000, false, false },
        { ENV("OMPI_MCA_ess_base_jobid", "99"), 4, "", 0, false, true },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct launch l = { .rank = 0, .world = 4, .local_world = rows[i].local_world };
        environment = rows[i].env;
        assert_status(launch_find_place(&l, &err), &err);
        assert_string_equal(l.host, rows[i].host);
        assert_int_equal(l.port, rows[i].port);
        assert_int_equal(l.agent_store, rows[i].agent);
        assert_int_equal(*l.file != '\0', rows[i].file);
    }
    environment = nothing;
}

TEST(place_names_the_settings_without_a_launcher)
{
    const struct {
        const char *const *env;
        const char *says;
    } rows[] = {
        { ENV(NULL), "set MASTER_ADDR and MASTER_PORT" },
        { ENV("OMPI_MCA_ess_base_jobid", "99"), "set MASTER_ADDR and MASTER_PORT" },
        { ENV("MASTER_ADDR", "h"), "MASTER_ADDR is set but not MASTER_PORT" },
        { ENV("MASTER_PORT", "5"), "MASTER_PORT is set but not MASTER_ADDR" },
        { ENV("MASTER_ADDR", "h", "MASTER_PORT", "http"), "MASTER_PORT=\"http\"" },
        { ENV("MASTER_ADDR", "h", "MASTER_PORT", "0"), "MASTER_PORT=\"0\"" },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct launch l = { .rank = 0, .world = 4, .local_world = 2 };
        environment = rows[i].env;
        assert_int_equal(launch_find_place(&l, &err), TENREC_EINVAL);
        assert_text_has(err.text, rows[i].says);
    }
    environment = nothing;
}

TEST(slurm_lists_are_read)
{
    static const char *const hosts[][2] = {
        { "n1", "n1" },
        { "n1,n2", "n1" },
        { "gpu[03-07,9],x", "gpu03" },
        { "a[12]-ib,b", "a12-ib" },
        { "rack-1-n[1,3]", "rack-1-n1" },
        { "[1-2]", "1" },
    };
    static const char *const bad[] = { "", ",a", "n[", "n[]", "n[1", "r[1-2]n[3-4]" };
    char host[64];

    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
        assert_true(slurm_first_host(hosts[i][0], host, sizeof host));
        assert_string_equal(host, hosts[i][1]);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(slurm_first_host(bad[i], host, sizeof host));
    assert_int_equal(slurm_count_at("4(x2),3", 1), 4);
    assert_int_equal(slurm_count_at("4(x2),3", 2), 3);
    assert_int_equal(slurm_count_at("4(x2),3", 3), -1);
    assert_int_equal(slurm_count_at("4(x", 0), -1);
    assert_int_equal(slurm_count_at("four", 0), -1);
}

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

TEST(rendezvous_alone_needs_nothing)
{
    struct rendezvous_options o = { OTHERS, .init_method = "env://", .rank = -1 };
    struct rendezvous *r;
    struct members *members;

    assert_status(rendezvous_open(&o, clock_deadline_ms(TEST_MS), &r, &err), &err);
    assert_int_equal(r->launch.rank, 0);
    assert_int_equal(r->launch.world, 1);
    assert_status(
        members_join(&r->meeting, "w", "a", NULL, clock_deadline_ms(TEST_MS), &members, &err),
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
    st = members_join(&r->meeting, name, p->address, NULL, clock_deadline_ms((uint64_t)p->ms),
                      &members, &p->err);
    if (st == TENREC_OK)
        st = process_group_new_once(r->meeting.store, r->launch.rank, r->launch.world, "shutdown",
                                    NULL, &pg, &p->err);
    if (st == TENREC_OK) {
        st = process_group_sum(pg, &(int64_t){ r->launch.rank }, 1,
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
        r[i]->meeting.end = GENERATION_LEFT;
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
        r[i]->meeting.end = GENERATION_LEFT;
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
    assert_status(members_join(&r->meeting, "w", "a", NULL, deadline_ns, &members, &err), &err);
    n = keys_of(r->store);
    assert_status(visit(o.init_method, &visitor), &err);
    assert_false(visitor->dynamic);
    assert_int_equal(visitor->meeting.world, 1);
    assert_int_equal(visitor->meeting.rank, TENREC_ANONYMOUS);
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
    assert_status(membership_list_join(&r->roster, "a", NULL, deadline_ns, &v, &err), &err);
    membership_view_finish(&v);
    n = keys_of(r->store);
    assert_status(visit(o.init_method, &visitor), &err);
    assert_true(visitor->dynamic);
    assert_status(membership_list_read(&visitor->roster, deadline_ns, &v, &err), &err);
    assert_int_equal(v.n, 1);
    membership_view_finish(&v);
    rendezvous_close(visitor, deadline_ns);
    assert_int_equal(keys_of(r->store), n);
    rendezvous_close(r, deadline_ns);
}
