/* SPDX-License-Identifier: Apache-2.0 */
/* setuid_test.c - variables of the caller have no effect on a program that has
 * the rights of another user. The program under test is a setuid copy of this one. */
#include "../testing.h"

#include "config/config.h"
#include "runtime/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <tenrec/config.h>
#include <unistd.h>

#define OTHER_UID 65534
#define MARK "caller-was-here"
#define NOT_SECURE 77  /* the file system ignores the setuid bit */
#define NOT_STARTED 78 /* as under valgrind, which starts no such program */

struct setting {
    char folder[64], program[96], config[96], log[96];
};

static struct setting *setting; /* of the case that runs */

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
        return NOT_SECURE;
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

static void copy_program(const char *to)
{
    char chunk[65536];
    int in = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
    ssize_t n;

    assert_true(in >= 0 && out >= 0);
    while ((n = read(in, chunk, sizeof chunk)) > 0)
        assert_int_equal(write(out, chunk, (size_t)n), n);
    assert_int_equal(n, 0);
    /* The owner first: a change of it clears the bit. */
    assert_int_equal(fchown(out, OTHER_UID, (gid_t)-1), 0);
    assert_int_equal(fchmod(out, 04755), 0);
    close(in);
    close(out);
}

static void set_up(void)
{
    static struct setting p;
    FILE *f;

    if (geteuid() != 0)
        return;
    snprintf(p.folder, sizeof p.folder, "/tmp/tenrec-setuid-XXXXXX");
    assert_non_null(mkdtemp(p.folder));
    assert_int_equal(chmod(p.folder, 0777), 0);
    snprintf(p.program, sizeof p.program, "%s/program", p.folder);
    snprintf(p.config, sizeof p.config, "%s/config.yaml", p.folder);
    snprintf(p.log, sizeof p.log, "%s/log", p.folder);
    copy_program(p.program);
    f = fopen(p.config, "w");
    assert_non_null(f);
    fprintf(f, "init_method: file:///%s\n", MARK);
    fclose(f);
    setting = &p;
}

static void tear_down(void)
{
    if (!setting)
        return;
    unlink(setting->program);
    unlink(setting->config);
    unlink(setting->log);
    rmdir(setting->folder);
}

static void start(const struct setting *p, int out)
{
    char config[128], log[128];
    char *args[] = { (char *)p->program, NULL };
    char *env[] = { config,
                    log,
                    "TENREC_LOG=trace",
                    "TENREC_INIT_METHOD=file:///" MARK,
                    "TENREC_WORKER__GROUP=" MARK,
                    "TENREC_BACKENDS__TENSORPIPE__IFNAME=" MARK,
                    "TENREC_" MARK "=1",
                    NULL };

    snprintf(config, sizeof config, "TENREC_CONFIG=%s", p->config);
    snprintf(log, sizeof log, "TENREC_LOG_FILE=%s", p->log);
    dup2(out, 1);
    dup2(out, 2);
    execve(p->program, args, env);
    _exit(errno == EACCES ? NOT_STARTED : 126);
}

TEST_WITH(variables_have_no_effect_when_program_is_setuid, set_up, tear_down)
{
    char text[16384];
    size_t len = 0;
    ssize_t n;
    int pair[2], status;
    pid_t pid;

    if (!setting)
        skip(); /* only root can give the copy to another user */
    assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        start(setting, pair[1]);
    close(pair[1]);
    while (len < sizeof text - 1 && (n = read(pair[0], text + len, sizeof text - 1 - len)) > 0)
        len += (size_t)n;
    text[len] = '\0';
    close(pair[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == NOT_SECURE || WEXITSTATUS(status) == NOT_STARTED)
        skip();
    assert_text_has(text, "the program has ended");
    if (strstr(text, MARK))
        fail_msg("a variable had an effect: %s", text);
    assert_int_equal(access(setting->log, F_OK), -1);
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(int argc, char **argv)
{
    (void)argc;
    if (strstr(argv[0], "tenrec-setuid-")) {
        int rc = privileged();

        fflush(stdout);
        _exit(rc); /* a leak check may not look into such a process */
    }
    return testing_run(NULL, NULL);
}
