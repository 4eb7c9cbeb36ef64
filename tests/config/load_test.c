/* SPDX-License-Identifier: Apache-2.0 */
/* load_test.c - configurations from files, pipes and the text that is built in. */
#include "sample.h"

#include "../testing.h"
#include "core/config/state.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

TEST(config_load_reads_the_built_in_text_when_no_file_is_named)
{
    struct tenrec_config *config = NULL;
    struct config_layer *layer;
    size_t n;

    assert_int_equal(tenrec_config_load(NULL, &config, NULL), TENREC_OK);
    assert_int_equal(config_layers(config, &layer, &n, NULL), TENREC_OK);
    assert_int_equal(n, 1);
    assert_string_equal(layer[0].name, "tensorpipe");
    free(layer);
    tenrec_config_drop(config);
}

/* The whole text of a file of the source tree; the caller frees it. */
static char *text_of(const char *path)
{
    FILE *f = fopen(path, "rb");
    char *text = calloc(1, 1 << 16);

    if (!f || !text)
        fail_msg("cannot read %s", path);
    assert_true(fread(text, 1, (1 << 16) - 1, f) > 0);
    fclose(f);
    return text;
}

TEST(config_built_in_is_the_shipped_default)
{
    char *text = text_of(CONFIG_FOLDER "/default.yaml");

    assert_string_equal(text, builtin_yaml);
    assert_int_equal(strlen(text), builtin_yaml_len);
    free(text);
}

TEST(config_takes_every_shipped_file)
{
    static const char *const names[] = { "default", "faulty_torch" };

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[512];
        struct tenrec_config *config = NULL;
        tenrec_error err = { 0 };
        snprintf(path, sizeof path, CONFIG_FOLDER "/%s.yaml", names[i]);
        if (tenrec_config_load(path, &config, &err) != TENREC_OK)
            fail_msg("%s", err.text);
        tenrec_config_drop(config);
    }
}

TEST(config_faulty_torch_is_torchs_fixture)
{
    struct tenrec_config *config = NULL;
    struct config_settings *s;
    struct config_layer *layer;
    size_t n;
    const struct node *fail, *delay;

    assert_int_equal(tenrec_config_load(CONFIG_FOLDER "/faulty_torch.yaml", &config, NULL),
                     TENREC_OK);
    assert_int_equal(config_settings_make(config, &s, NULL), TENREC_OK);
    assert_int_equal(s->num_worker_threads, 8);
    assert_int_equal(s->rpc_timeout_ms, 60000);
    config_settings_drop(s);
    assert_int_equal(config_layers(config, &layer, &n, NULL), TENREC_OK);
    assert_int_equal(n, 2);
    assert_string_equal(layer[0].plugin, "faulty");
    fail = node_get(layer[0].options, "messages_to_fail");
    assert_int_equal(fail->n, 4);
    assert_string_equal(fail->item[0]->text, "RREF_FORK_REQUEST");
    assert_string_equal(fail->item[3]->text, "CLEANUP_AUTOGRAD_CONTEXT_REQ");
    assert_string_equal(node_get(layer[0].options, "num_fail_sends")->text, "3");
    delay = node_get(layer[0].options, "messages_to_delay");
    assert_string_equal(node_get(delay, "PYTHON_CALL")->text, "1.5");
    assert_string_equal(node_get(delay, "SCRIPT_CALL")->text, "1.5");
    free(layer);
    tenrec_config_drop(config);
}

/* Also a pipe that a shell makes of a command's output, <(...). No plugin lies beside it. */
TEST(config_load_reads_a_pipe)
{
    static const char text[] = "backend: a\nbackends: {a: {plugin: ./x.so}}\n";
    struct tenrec_config *config;
    struct config_layer *layer;
    tenrec_error err;
    char path[32];
    size_t n;
    int fd[2];

    assert_int_equal(pipe(fd), 0);
    assert_int_equal(write(fd[1], text, sizeof text - 1), sizeof text - 1);
    close(fd[1]);
    snprintf(path, sizeof path, "/dev/fd/%d", fd[0]);
    assert_int_equal(tenrec_config_load(path, &config, &err), TENREC_OK);
    assert_status(config_layers(config, &layer, &n, &err), &err);
    assert_string_equal(layer[0].plugin, "./x.so");
    free(layer);
    tenrec_config_drop(config);
    close(fd[0]);
}

TEST(config_load_ends_when_a_pipe_has_no_writer)
{
    char folder[] = "/tmp/tenrec-config-XXXXXX", path[64];
    struct tenrec_config *config;
    tenrec_error err;

    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/fifo", folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(tenrec_config_load(path, &config, &err), TENREC_EOS);
    assert_int_equal(err.os_errno, ETIMEDOUT);
    assert_non_null(strstr(err.text, path));
    unlink(path);
    rmdir(folder);
}

static atomic_int n_signals;

static void count_signal(int number)
{
    (void)number;
    atomic_fetch_add(&n_signals, 1);
}

/* Writes into the pipe once a signal has interrupted its reader; gives up in time. */
static void *write_after_a_signal(void *arg)
{
    const struct itimerval never = { { 0, 0 }, { 0, 0 } };
    int fd = -1;

    for (unsigned long left = testing_looks(); fd < 0 && left > 0; left--) {
        if (atomic_load(&n_signals) > 0)
            fd = open(arg, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0)
            poll(NULL, 0, 1);
    }
    setitimer(ITIMER_REAL, &never, NULL); /* a slow run makes no progress between signals */
    if (fd >= 0) {
        (void)!write(fd, "init_method: tcp://h:1\n", 23);
        close(fd);
    }
    return NULL;
}

/* A read of a pipe without a writer is its end: the configuration would be an empty one. */
TEST(config_load_waits_on_when_a_signal_comes)
{
    const struct itimerval often = { { 0, 1000 }, { 0, 1000 } };
    const struct sigaction count = { .sa_handler = count_signal }; /* stays: one may be pending */
    char folder[] = "/tmp/tenrec-config-XXXXXX", path[64];
    struct tenrec_config *config = NULL;
    struct config_settings *settings = NULL;
    sigset_t alarms, mask;
    tenrec_error err;
    pthread_t thread;
    tenrec_status st;

    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/fifo", folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarms, &mask); /* the reader alone gets them */
    assert_int_equal(pthread_create(&thread, NULL, write_after_a_signal, path), 0);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    sigaction(SIGALRM, &count, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    st = tenrec_config_load(path, &config, &err);
    pthread_join(thread, NULL);
    assert_status(st, &err);
    assert_status(config_settings_make(config, &settings, &err), &err);
    assert_string_equal(settings->init_method, "tcp://h:1");
    config_settings_drop(settings);
    tenrec_config_drop(config);
    unlink(path);
    rmdir(folder);
}

TEST(config_load_says_why_a_file_cannot_be_read)
{
    struct tenrec_config *config = NULL;
    tenrec_error err = { 0 };

    assert_int_equal(tenrec_config_load("/nowhere/x.yaml", &config, &err), TENREC_EOS);
    assert_string_equal(err.text, "cannot read the configuration '/nowhere/x.yaml': No such file "
                                  "or directory");
    assert_int_equal(err.os_errno, ENOENT);
    assert_int_equal(tenrec_config_load("/", &config, &err), TENREC_EOS);
    assert_int_equal(err.os_errno, EISDIR);
    assert_int_equal(tenrec_config_load("/dev/zero", &config, &err), TENREC_ECONFIG);
    assert_string_equal(err.text, "/dev/zero:1:1: larger than 1048576 bytes");
    assert_null(config);
}

int main(void)
{
    return testing_run(clean_environment, NULL);
}
