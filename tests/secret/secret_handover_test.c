/* SPDX-License-Identifier: Apache-2.0 */
/* secret_handover_test.c - the ways of a secret from a launcher to a worker. */
#include "security/secret/secret.h"
#include "security/secret/secret_handover.h"

#include "../testing.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define ANSWER_MS 20000 /* longer than any answer takes */
#define STRANGER 4711   /* a user */

static void set_up(void)
{
    unsetenv(SECRET_FD_VARIABLE);
    unsetenv(SECRET_SOCKET_VARIABLE);
    unsetenv(SECRET_FILE_VARIABLE);
}

static void announce_fd(int fd)
{
    char text[16];

    snprintf(text, sizeof text, "%d", fd);
    setenv(SECRET_FD_VARIABLE, text, 1);
}

static struct secret *drawn(void)
{
    struct secret *s;
    tenrec_error err;

    assert_status(secret_draw(&s, &err), &err);
    return s;
}

static void assert_same(const struct secret *a, const struct secret *b)
{
    size_t len, other;
    const void *bytes = secret_bytes(a, &len);

    assert_memory_equal(bytes, secret_bytes(b, &other), SECRET_BYTES);
    assert_int_equal(len, other);
}

/* A launcher that answers until it is ended. */
struct launcher {
    struct secret *secret;
    struct secret_giver *giver;
    pthread_t thread;
    atomic_bool ending;
};

static void *launcher_run(void *arg)
{
    struct launcher *l = arg;
    struct pollfd p = { .fd = secret_giver_fd(l->giver), .events = POLLIN };

    while (!atomic_load(&l->ending))
        if (poll(&p, 1, 1) > 0)
            secret_giver_serve(l->giver);
    return NULL;
}

static void launcher_start(struct launcher *l)
{
    tenrec_error err;

    l->secret = drawn();
    atomic_init(&l->ending, false);
    assert_status(secret_giver_open(l->secret, NULL, &l->giver, &err), &err);
    assert_int_equal(pthread_create(&l->thread, NULL, launcher_run, l), 0);
}

static void launcher_end(struct launcher *l)
{
    atomic_store(&l->ending, true);
    pthread_join(l->thread, NULL);
    secret_giver_close(l->giver);
    secret_drop(l->secret);
}

static void assert_inherits(const struct secret *wanted, const char *source)
{
    struct secret *s;
    const char *from;
    tenrec_error err;

    assert_status(secret_inherit(ANSWER_MS, &s, &from, &err), &err);
    assert_non_null(s);
    assert_same(s, wanted);
    assert_string_equal(from, source);
    secret_drop(s);
}

static void assert_cannot(tenrec_status wanted, uint32_t ms, const char *part)
{
    struct secret *s = NULL;
    const char *from;
    tenrec_error err;

    assert_int_equal(secret_inherit(ms, &s, &from, &err), wanted);
    assert_null(s);
    assert_int_equal(err.code, wanted);
    assert_text_has(err.text, part);
}

TEST_WITH(handover_is_none_when_nothing_is_announced, set_up, set_up)
{
    struct secret *s = NULL;
    const char *from;
    tenrec_error err;

    setenv(SECRET_FD_VARIABLE, "", 1);
    assert_status(secret_inherit(0, &s, &from, &err), &err);
    assert_null(s);
}

TEST_WITH(handover_by_descriptor_is_read_more_than_once, set_up, set_up)
{
    struct secret *s = drawn();
    tenrec_error err;
    int fd;

    assert_status(secret_memfd_new(s, &fd, &err), &err);
    announce_fd(fd);
    assert_inherits(s, "the launcher");
    assert_inherits(s, "the launcher");
    secret_drop(s);
    close(fd);
}

TEST_WITH(handover_descriptor_is_inherited_and_cannot_be_changed, set_up, set_up)
{
    struct secret *s = drawn();
    tenrec_error err;
    int fd;

    assert_status(secret_memfd_new(s, &fd, &err), &err);
    assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
    assert_int_equal(pwrite(fd, "x", 1, 0), -1);
    assert_int_equal(errno, EPERM);
    assert_int_equal(ftruncate(fd, 0), -1);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW), -1);
    secret_drop(s);
    close(fd);
}

TEST_WITH(handover_refuses_a_descriptor_that_is_no_sealed_memory, set_up, set_up)
{
    static const char text[] = "TNRSEC1\n0123456789abcdef0123456789abcdef";
    int memory = memfd_create("test", MFD_ALLOW_SEALING), file = open("/dev/null", O_RDONLY);

    assert_true(memory >= 0 && file >= 0);
    assert_int_equal(write(memory, text, sizeof text - 1), sizeof text - 1);
    announce_fd(memory);
    assert_cannot(TENREC_ECONFIG, 0, "environment TENREC_SECRET_FD: ");
    assert_cannot(TENREC_ECONFIG, 0, "is no sealed memory file");
    assert_int_equal(fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE), 0);
    assert_cannot(TENREC_ECONFIG, 0, "is no sealed memory file");
    announce_fd(file);
    assert_cannot(TENREC_ECONFIG, 0, "is no sealed memory file");
    close(memory);
    announce_fd(memory);
    assert_cannot(TENREC_ECONFIG, 0, "is closed");
    setenv(SECRET_FD_VARIABLE, "3x", 1);
    assert_cannot(TENREC_ECONFIG, 0, "'3x' is no descriptor");
    close(file);
}

TEST_WITH(handover_refuses_sealed_memory_of_another_program, set_up, set_up)
{
    static const char *const texts[] = { "", "TNRSEC1\n0123456789abcde",
                                         "another0123456789abcdef0123456789abcdef" };

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const size_t len = strlen(texts[i]);
        int fd = memfd_create("test", MFD_ALLOW_SEALING);
        assert_int_equal(write(fd, texts[i], len), len);
        assert_int_equal(
            fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL), 0);
        announce_fd(fd);
        assert_cannot(TENREC_ECONFIG, 0, "no secret of a launcher");
        close(fd);
    }
}

TEST_WITH(handover_asks_the_launcher_when_the_descriptor_is_closed, set_up, set_up)
{
    struct launcher l;
    int fd = open("/dev/null", O_RDONLY);

    close(fd);
    announce_fd(fd);
    launcher_start(&l);
    setenv(SECRET_SOCKET_VARIABLE, secret_giver_name(l.giver), 1);
    for (int i = 0; i < 200; i++) /* more than wait at once */
        assert_inherits(l.secret, "the launcher");
    launcher_end(&l);
    assert_cannot(TENREC_ECONFIG, ANSWER_MS,
                  "environment TENREC_SECRET_SOCKET: no launcher listens there");
}

TEST_WITH(handover_times_out_when_the_launcher_does_not_answer, set_up, set_up)
{
    struct secret *s = drawn();
    struct secret_giver *g;
    tenrec_error err;

    assert_status(secret_giver_open(s, NULL, &g, &err), &err);
    setenv(SECRET_SOCKET_VARIABLE, secret_giver_name(g), 1);
    assert_cannot(TENREC_ETIMEDOUT, 1, "the launcher does not answer");
    secret_giver_close(g);
    secret_drop(s);
}

TEST_WITH(handover_refuses_an_impossible_name, set_up, set_up)
{
    char name[200];

    memset(name, 'a', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    setenv(SECRET_SOCKET_VARIABLE, name, 1);
    assert_cannot(TENREC_ECONFIG, 0, "is no name of a socket");
}

static bool is_root(void)
{
    return geteuid() == 0;
}

/* Returns the exit status of a child of another user that runs `f`. */
static int as_stranger(int (*f)(const char *), const char *name)
{
    const pid_t pid = fork();
    int status;

    if (pid == 0)
        _exit(setgid(STRANGER) || setuid(STRANGER) ? 99 : f(name));
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int stranger_asks(const char *name)
{
    struct secret *s = NULL;
    tenrec_error err;

    return secret_ask(name, ANSWER_MS, &s, &err) == TENREC_ECONFIG && !s ? 0 : 1;
}

TEST_WHEN(handover_gives_nothing_to_another_user, is_root, set_up, set_up)
{
    struct launcher l;

    launcher_start(&l);
    assert_int_equal(as_stranger(stranger_asks, secret_giver_name(l.giver)), 0);
    setenv(SECRET_SOCKET_VARIABLE, secret_giver_name(l.giver), 1);
    assert_inherits(l.secret, "the launcher");
    launcher_end(&l);
}

/* The child is a giver of another user, which would answer no process. */
TEST_WHEN(handover_takes_nothing_from_another_user, is_root, set_up, set_up)
{
    struct secret *s = drawn(), *found = NULL;
    char name[SECRET_NAME_MAX] = "";
    int way[2], end[2], status;
    tenrec_error err;
    pid_t pid;

    assert_int_equal(pipe(way), 0);
    assert_int_equal(pipe(end), 0);
    pid = fork();
    if (pid == 0) {
        struct secret_giver *g;
        char none;
        if (setgid(STRANGER) || setuid(STRANGER) ||
            secret_giver_open(s, NULL, &g, NULL) != TENREC_OK ||
            write(way[1], secret_giver_name(g), sizeof name) != sizeof name)
            _exit(99);
        close(end[1]);
        _exit(read(end[0], &none, 1) == 0 ? 0 : 99);
    }
    close(end[0]);
    assert_int_equal(read(way[0], name, sizeof name), sizeof name);
    assert_int_equal(secret_ask(name, ANSWER_MS, &found, &err), TENREC_ECONFIG);
    assert_null(found);
    assert_text_has(err.text, "a process of another user listens there");
    close(end[1]);
    close(way[0]);
    close(way[1]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    secret_drop(s);
}

TEST_WITH(handover_reads_the_file_that_the_environment_names, set_up, set_up)
{
    char path[] = "/tmp/handover.XXXXXX";
    int fd = mkstemp(path);
    struct secret *s = drawn();
    tenrec_error err;

    close(fd);
    unlink(path);
    assert_status(secret_write_file(s, path, &err), &err);
    setenv(SECRET_FILE_VARIABLE, path, 1);
    assert_inherits(s, "TENREC_SECRET_FILE");
    unlink(path);
    assert_cannot(TENREC_ECONFIG, 0, "environment TENREC_SECRET_FILE: secret file '");
    secret_drop(s);
}

TEST(giver_name_is_taken_by_one_launcher)
{
    struct secret *s = drawn();
    struct secret_giver *g, *second;
    char name[SECRET_NAME_MAX], other[SECRET_NAME_MAX];
    tenrec_error err;

    secret_giver_derive("localhost", 1, name);
    secret_giver_derive("127.0.0.1", 1, other);
    assert_string_equal(name, other);
    secret_giver_derive("127.0.0.1", 2, other);
    assert_string_not_equal(name, other);
    snprintf(name, sizeof name, "tenrec-test-%ld", (long)getpid());
    assert_status(secret_giver_open(s, name, &g, &err), &err);
    assert_string_equal(secret_giver_name(g), name);
    assert_int_equal(secret_giver_open(s, name, &second, &err), TENREC_EEXIST);
    secret_giver_close(g);
    secret_giver_close(NULL);
    secret_drop(s);
}
