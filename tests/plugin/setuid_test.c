/* SPDX-License-Identifier: Apache-2.0 */
/* setuid_test.c - which plugins a program with the rights of another user loads, and that none of
 * them, and no library of theirs, reads the environment of the caller. The program under test is a
 * setuid copy of this one. */
#include "../support/setuid.h"
#include "../testing.h"

#include "core/plugin/plugin.h"
#include "core/plugin/plugin_file.h"
#include "cuda/driver.h"

#include <stdio.h>
#include <sys/auxv.h>
#include <tenrec/backend.h>
#include <unistd.h>

extern char **environ;

static bool privileged; /* this is the setuid program */
static struct setuid_copy copy;
static bool copied;

/* In the place of libc's, for all libraries: secure_getenv, which obeys nothing in a setuid
 * program, does not come here. */
__attribute__((visibility("default"))) char *getenv(const char *name)
{
    const size_t len = strlen(name);

    /* libtenrec itself links libcrypto, which asks for the processor's abilities when it is loaded.
     */
    if (privileged && strcmp(name, "OPENSSL_ia32cap") != 0)
        printf("read %s\n", name);
    for (char **e = environ; e && *e; e++)
        if (strncmp(*e, name, len) == 0 && (*e)[len] == '=')
            return *e + len + 1;
    return NULL;
}

/* In the setuid program: loads each plugin. */
static int load_all(int n, char **path)
{
    for (int i = 0; i < n; i++) {
        struct loaded l;
        tenrec_error err = { 0 };

        if (loader_open(path[i], PLUGIN_KIND_ANY, &l, &err) == TENREC_OK)
            printf("loaded %s\n", l.plugin->name);
        else
            printf("refused: %s\n", err.text);
    }
    return 0;
}

static int privileged_main(int argc, char **argv)
{
    tenrec_error err = { 0 };
    int rc;

    if (!getauxval(AT_SECURE))
        return SETUID_NOT_SECURE;
    privileged = true;
    rc = load_all(argc - 1, argv + 1);
    printf("driver: %s\n", driver_open(&err) == TENREC_OK ? "opened" : err.text);
    return rc;
}

/* ---- the caller ----------------------------------------------------------------- */

static char text[16384]; /* what the program printed */

static void set_up(void)
{
    copied = setuid_copy_make(&copy);
}

static void tear_down(void)
{
    if (copied)
        setuid_copy_remove(&copy);
}

/* Variables that make libcurl, UCX and others write a file, or open what is named. */
static void run(char *path)
{
    char file[96], curl[128], ucx[128], ucm[128];
    char *args[] = { path, NULL };
    char *env[] = { curl,
                    ucx,
                    ucm,
                    "UCX_LOG_LEVEL=info",
                    "UCX_LOG_LEVEL_TRIGGER=info",
                    "UCX_CONFIG_FOO=1",
                    "http_proxy=http://127.0.0.1:9",
                    "P11_KIT_DEBUG=all",
                    NULL };
    int status;

    if (!copied)
        skip(); /* only root can give the copy to another user */
    snprintf(file, sizeof file, "%s/written", copy.folder);
    snprintf(curl, sizeof curl, "SSLKEYLOGFILE=%s", file);
    snprintf(ucx, sizeof ucx, "UCX_LOG_FILE=%s", file);
    snprintf(ucm, sizeof ucm, "UCX_STATS_DEST=file:%s", file);
    status = setuid_copy_run(&copy, args, env, text, sizeof text);
    if (unlink(file) == 0)
        fail_msg("a variable made '%s' write a file", path);
    if (strstr(text, "read "))
        fail_msg("'%s' reads the environment: %s", path, text);
    assert_int_equal(status, 0);
    assert_text_has(text, "driver: ");
}

static void is_loaded(const char *name)
{
    char path[512], want[64];

    snprintf(path, sizeof path, PLUGINS "/%s.so", name);
    snprintf(want, sizeof want, "loaded %s\n", name);
    run(path);
    assert_text_has(text, want);
}

static void is_refused(const char *path)
{
    run((char *)path);
    assert_text_has(text, "refused: plugin '");
    assert_text_has(text, "is not loaded in a setuid or setgid program: it does not declare");
}

/* A case for a plugin that this build may lack. */
#define WITH_PLUGIN(plugin, case_name, run_with)                                                   \
    static bool has_##plugin(void)                                                                 \
    {                                                                                              \
        return access(PLUGINS "/" #plugin ".so", R_OK) == 0;                                       \
    }                                                                                              \
    TEST_WHEN(case_name, has_##plugin, set_up, tear_down)                                          \
    {                                                                                              \
        run_with;                                                                                  \
    }

WITH_PLUGIN(tensorpipe, plugin_tensorpipe_is_loaded_and_reads_no_variable_when_program_is_setuid,
            is_loaded("tensorpipe"))
WITH_PLUGIN(faulty, plugin_faulty_is_loaded_and_reads_no_variable_when_program_is_setuid,
            is_loaded("faulty"))
WITH_PLUGIN(trace, plugin_trace_is_loaded_and_reads_no_variable_when_program_is_setuid,
            is_loaded("trace"))
WITH_PLUGIN(meter, plugin_meter_is_loaded_and_reads_no_variable_when_program_is_setuid,
            is_loaded("meter"))
WITH_PLUGIN(limit, plugin_limit_is_loaded_and_reads_no_variable_when_program_is_setuid,
            is_loaded("limit"))
WITH_PLUGIN(redis, plugin_redis_is_loaded_and_reads_no_variable_when_program_is_setuid,
            is_loaded("redis"))

WITH_PLUGIN(ucx, plugin_ucx_is_refused_before_it_is_loaded_when_program_is_setuid,
            is_refused(PLUGINS "/ucx.so"))
WITH_PLUGIN(otlp, plugin_otlp_is_refused_before_it_is_loaded_when_program_is_setuid,
            is_refused(PLUGINS "/otlp.so"))
WITH_PLUGIN(etcd, plugin_etcd_is_refused_before_it_is_loaded_when_program_is_setuid,
            is_refused(PLUGINS "/etcd.so"))
WITH_PLUGIN(kubernetes, plugin_kubernetes_is_refused_before_it_is_loaded_when_program_is_setuid,
            is_refused(PLUGINS "/kubernetes.so"))
WITH_PLUGIN(prometheus, plugin_prometheus_is_refused_before_it_is_loaded_when_program_is_setuid,
            is_refused(PLUGINS "/prometheus.so"))
/* Plugins of others begin as echo, and may link anything. */
WITH_PLUGIN(echo, plugin_echo_is_refused_before_it_is_loaded_when_program_is_setuid,
            is_refused(PLUGINS "/echo.so"))

TEST_WITH(plugin_of_other_authors_is_refused_when_program_is_setuid, set_up, tear_down)
{
    is_refused(FIXTURES "/outside.so");
}

TEST_WITH(driver_of_devices_is_not_loaded_when_program_is_setuid, set_up, tear_down)
{
    is_loaded("limit");
    if (driver_is_built)
        assert_text_has(text, "driver: the CUDA driver is not loaded in a setuid or setgid "
                              "program");
}

int main(int argc, char **argv)
{
    if (strstr(argv[0], SETUID_MARK)) {
        int rc = privileged_main(argc, argv);

        fflush(stdout);
        _exit(rc); /* a leak check may not look into such a process */
    }
    return testing_run(NULL, NULL);
}
