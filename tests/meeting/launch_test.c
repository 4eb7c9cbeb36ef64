/* SPDX-License-Identifier: Apache-2.0 */
/* From the variables of launchers and the configuration to rank and world size. The environment is
 * a list of the test's own. */
#include "../support/test_store.h"

#include "group/meeting/launch.h"

#include "environment.h"

static tenrec_error err;

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
        assert_status(launch_find_store(&l, &err), &err);
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
        assert_int_equal(launch_find_store(&l, &err), TENREC_EINVAL);
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
