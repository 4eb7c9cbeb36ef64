/* SPDX-License-Identifier: Apache-2.0 */
/* setuid_test.c - variables of the caller have no effect on a program that has
 * the rights of another user. The program under test is a setuid copy of this one. */
#include "../support/setuid.h"
#include "../testing.h"

#include "core/base/log.h"
#include "core/config/config.h"

#include <stdio.h>
#include <sys/auxv.h>
#include <tenrec/config.h>
#include <unistd.h>

#define MARK "caller-was-here"

static struct setuid_copy copy; /* of the case that runs */
static bool copied;
static char config_path[96], log_path[96];

static void note(void *arg, const char *key, const char *value, const char *source)
{
    (void)arg;
    printf("%s = %s # %s\n", key, value, source);
}

/* In the setuid program: prints what the configuration came to. */
static int privileged(void)
{
    struct tenrec_config *config;
    tenrec_error err = { 0 };

    if (!getauxval(AT_SECURE))
        return SETUID_NOT_SECURE;
    if (tenrec_config_load(NULL, &config, &err) != TENREC_OK) {
        printf("%s\n", err.text);
        return 1;
    }
    config_show(config, note, NULL, &err);
    tenrec_config_drop(config);
    log_line(TENREC_LOG_INFO, "test", "%s", MARK);
    log_line(TENREC_LOG_ERROR, "test", "the program has ended");
    return 0;
}

static void set_up(void)
{
    FILE *f;

    copied = setuid_copy_make(&copy);
    if (!copied)
        return;
    snprintf(config_path, sizeof config_path, "%s/config.yaml", copy.folder);
    snprintf(log_path, sizeof log_path, "%s/log", copy.folder);
    f = fopen(config_path, "w");
    assert_non_null(f);
    fprintf(f, "init_method: file:///%s\n", MARK);
    fclose(f);
}

static void tear_down(void)
{
    if (!copied)
        return;
    unlink(config_path);
    unlink(log_path);
    setuid_copy_remove(&copy);
}

TEST_WITH(variables_have_no_effect_when_program_is_setuid, set_up, tear_down)
{
    char text[16384], config[128], log[128];
    char *args[] = { NULL };
    char *env[] = { config,
                    log,
                    "TENREC_LOG=trace",
                    "TENREC_INIT_METHOD=file:///" MARK,
                    "TENREC_WORKER__GROUP=" MARK,
                    "TENREC_BACKENDS__TENSORPIPE__IFNAME=" MARK,
                    "TENREC_" MARK "=1",
                    NULL };
    int status;

    if (!copied)
        skip(); /* only root can give the copy to another user */
    snprintf(config, sizeof config, "TENREC_CONFIG=%s", config_path);
    snprintf(log, sizeof log, "TENREC_LOG_FILE=%s", log_path);
    status = setuid_copy_run(&copy, args, env, text, sizeof text);
    assert_text_has(text, "the program has ended");
    if (strstr(text, MARK))
        fail_msg("a variable had an effect: %s", text);
    assert_int_equal(access(log_path, F_OK), -1);
    assert_int_equal(status, 0);
}

int main(int argc, char **argv)
{
    (void)argc;
    if (strstr(argv[0], SETUID_MARK)) {
        int rc = privileged();

        fflush(stdout);
        _exit(rc); /* a leak check may not look into such a process */
    }
    return testing_run(NULL, NULL);
}
