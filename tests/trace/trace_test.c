/* SPDX-License-Identifier: Apache-2.0 */
/* trace_test.c - the lines of the plugin trace, its filters, and its sinks: files, pipes that
 * have no reader, stderr. */
#include "../support/flaky.h"
#include "core/backend/chain_layer.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static char folder[64], path[128], options[512];

static void set_up(void)
{
    snprintf(folder, sizeof folder, "/tmp/trace-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/lines", folder);
    flaky_plugin = "trace";
    flaky_set_up();
}

static void tear_down(void)
{
    flaky_tear_down();
    unlink(path);
    rmdir(folder);
}

/* Opens the chain with the file and further options, such as ", types: [CALL]". */
static void open_trace(const char *more)
{
    snprintf(options, sizeof options, "{ file: %s%s }", path, more);
    flaky_open(options);
}

static void expect_refused(const char *text, tenrec_status code, const char *part)
{
    tenrec_error err;

    assert_int_equal(flaky_start(text, &err), code);
    assert_text_has(err.text, part);
    flaky_close();
}

/* The lines of the file, without those of members. */
static size_t read_lines(char lines[][256], size_t room)
{
    FILE *f = fopen(path, "r");
    size_t n = 0;

    assert_non_null(f);
    while (n < room && fgets(lines[n], sizeof lines[n], f))
        if (!strstr(lines[n], " member "))
            n++;
    fclose(f);
    return n;
}

static void send_call(tenrec_peer to, int64_t id, int32_t type, uint32_t n_tensors)
{
    struct tenrec_msg *msg = message_new(3, n_tensors);

    assert_non_null(msg);
    msg->type = type;
    msg->id = id;
    memcpy(msg->payload, "abc", 3);
    for (uint32_t i = 0; i < n_tensors; i++)
        tenrec_msg_tensor(msg, i)->bytes = 1000;
    flaky_send_msg(to, msg);
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- lines --------------------------------------------------------------------- */

TEST_WITH(trace_writes_a_line_for_each_message, set_up, tear_down)
{
    char lines[4][256], *end;
    const double before = now();

    open_trace("");
    send_call(1, 7, TENREC_MSG_CALL, 2);
    assert_int_equal(read_lines(lines, 4), 2);
    assert_in_range((uint64_t)(strtod(lines[0], &end) * 1e6), (uint64_t)(before * 1e6),
                    (uint64_t)(now() * 1e6) + 1);
    assert_string_equal(end, " worker0/flaky out CALL peer 1 id 7 payload 3 tensors 2 of 2000 "
                             "route 0.0\n");
    strtod(lines[1], &end);
    assert_string_equal(end, " worker0/flaky in CALL peer 1 id 7 payload 3 tensors 0 of 0 route "
                             "0.0\n");
    assert_int_equal(atomic_load(&flaky_ok), 1);
    assert_int_equal(atomic_load(&flaky_delivered), 1);
    assert_int_equal(flaky_number("lines"), 5); /* and three members */
}

TEST_WITH(trace_writes_numbers_of_types_without_a_name, set_up, tear_down)
{
    char lines[2][256];

    open_trace("");
    send_call(1, 7, 0x7ab, 0);
    assert_int_equal(read_lines(lines, 2), 2);
    assert_text_has(lines[0], " out 0x7ab peer 1 ");
}

TEST_WITH(trace_names_every_type, set_up, tear_down)
{
#define X(name, number) { #name, number },
    static const struct {
        const char *name;
        int32_t type;
    } types[] = { TENREC_MSG_TYPE_MAP(X) };
#undef X
    char lines[2][256], part[64];

    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        snprintf(part, sizeof part, ", types: [%s]", types[i].name);
        open_trace(part);
        send_call(2, 1, types[i].type, 0);
        send_call(2, 1, types[i].type ^ 0x4000, 0);
        assert_int_equal(read_lines(lines, 2), 2);
        snprintf(part, sizeof part, " out %s peer 2 ", types[i].name);
        assert_text_has(lines[0], part);
        flaky_close();
        unlink(path);
    }
}

TEST_WITH(trace_escapes_names_of_members, set_up, tear_down)
{
    const struct tenrec_member evil = { sizeof evil, 9, 0, "a\n1.0 b\x1b[2J\xff", "" };
    char lines[8][256];
    FILE *f;

    open_trace("");
    chain_member_joined(flaky_chain, &evil);
    f = fopen(path, "r");
    for (int i = 0; i < 4; i++)
        assert_non_null(fgets(lines[i], sizeof lines[i], f));
    assert_null(fgets(lines[4], sizeof lines[4], f));
    fclose(f);
    assert_text_has(lines[1], " worker0/flaky member 1 name worker1\n");
    assert_text_has(lines[3], " worker0/flaky member 9 name a\\n1.0 b\\x1b[2J\\xff\n");
}

/* ---- filters ------------------------------------------------------------------- */

TEST_WITH(trace_filters_by_type_and_peer, set_up, tear_down)
{
    char lines[8][256];

    open_trace(", types: [RESPONSE, GATHER], peers: [1, -1], direction: out");
    send_call(1, 1, TENREC_MSG_CALL, 0);
    send_call(2, 2, TENREC_MSG_RET, 0);
    send_call(1, 3, TENREC_MSG_EXCEPTION, 0);
    send_call(1, 4, TENREC_MSG_GATHER, 0);
    send_call(-1, 5, TENREC_MSG_RET, 0);
    assert_int_equal(read_lines(lines, 8), 3);
    assert_text_has(lines[0], " out EXCEPTION peer 1 id 3 ");
    assert_text_has(lines[1], " out GATHER peer 1 id 4 ");
    assert_text_has(lines[2], " out RET peer -1 id 5 ");
}

/* Not even a call: the direction that is not traced is the next agent's. */
TEST_WITH(trace_is_passed_by_in_the_other_direction, set_up, tear_down)
{
    static const char *const more[] = { "", ", direction: out", ", direction: in" };

    for (int i = 0; i < 3; i++) {
        open_trace(more[i]);
        assert_ptr_equal(flaky_chain->port.sender, &flaky_chain->link[i == 2].agent);
        assert_int_equal(flaky_chain->link[1].outer_deliver != NULL, i != 1);
        flaky_close();
    }
}

TEST_WITH(trace_refuses_wrong_options, set_up, tear_down)
{
    expect_refused("{ types: [CAL] }", TENREC_ECONFIG, "'CALL'");
    expect_refused("{ peers: [-2] }", TENREC_ECONFIG, "-2");
    expect_refused("{ peers: [40000] }", TENREC_ECONFIG, "40000");
    expect_refused("{ direction: up }", TENREC_ECONFIG, "'up'");
}

/* ---- files --------------------------------------------------------------------- */

TEST_WITH(trace_appends_to_a_file_of_its_user_only, set_up, tear_down)
{
    char lines[8][256];
    struct stat st;

    for (int64_t i = 0; i < 2; i++) {
        open_trace(", direction: out");
        send_call(1, i, TENREC_MSG_CALL, 0);
        flaky_close();
    }
    assert_int_equal(read_lines(lines, 8), 2);
    assert_text_has(lines[1], " id 1 ");
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
}

TEST_WITH(trace_refuses_links_and_folders, set_up, tear_down)
{
    char other[160];

    snprintf(other, sizeof other, "%s/other", folder);
    snprintf(options, sizeof options, "{ file: %s }", path);
    assert_int_equal(symlink(other, path), 0);
    expect_refused(options, TENREC_EOS, "lines', a link: ");
    assert_int_equal(access(other, F_OK), -1);
    unlink(path);
    assert_int_equal(close(open(other, O_CREAT | O_WRONLY, 0600)), 0);
    assert_int_equal(link(other, path), 0);
    expect_refused(options, TENREC_EPERM, "lines' belongs to another user or has two names");
    unlink(other);
    unlink(path);
    snprintf(options, sizeof options, "{ file: %s }", folder);
    expect_refused(options, TENREC_EOS, "Is a directory");
}

/* ---- pipes that are not read ------------------------------------------------------ */

/* Sends until the pipe is full, and one more. */
static void fill(void)
{
    for (int i = 0; i < 20000 && flaky_number("lost_lines") < 3; i++)
        send_call(1, i, TENREC_MSG_CALL, 0);
    assert_int_equal(flaky_number("lost_lines"), 3);
}

static void read_all(int fd, char *last, size_t room)
{
    char buf[4096];
    ssize_t n;

    last[0] = '\0';
    while ((n = read(fd, buf, sizeof buf - 1)) > 0) {
        buf[n] = '\0';
        snprintf(last, room, "%s", buf);
    }
}

TEST_WITH(trace_does_not_wait_for_the_reader_of_a_pipe, set_up, tear_down)
{
    char last[4096], expected[64];
    int fd;

    assert_int_equal(mkfifo(path, 0600), 0);
    fd = open(path, O_RDONLY | O_NONBLOCK);
    open_trace(", direction: out");
    fill();
    read_all(fd, last, sizeof last);
    assert_int_equal(last[strlen(last) - 1], '\n'); /* a line is written whole, or not at all */
    send_call(1, -1, TENREC_MSG_CALL, 0);
    read_all(fd, last, sizeof last);
    snprintf(expected, sizeof expected, "# 3 lines were left out\n");
    assert_int_equal(strncmp(last, expected, strlen(expected)), 0);
    assert_text_has(last, " id -1 ");
    send_call(1, -2, TENREC_MSG_CALL, 0);
    read_all(fd, last, sizeof last);
    assert_null(strchr(last, '#'));
    assert_int_equal(atomic_load(&flaky_failed), 0);
    close(fd);
}

TEST_WITH(trace_survives_the_end_of_the_reader, set_up, tear_down)
{
    int fd;

    assert_int_equal(mkfifo(path, 0600), 0);
    snprintf(options, sizeof options, "{ file: %s }", path);
    expect_refused(options, TENREC_EOS, "No such device"); /* no reader yet */
    fd = open(path, O_RDONLY | O_NONBLOCK);
    open_trace("");
    close(fd);
    send_call(1, 1, TENREC_MSG_CALL, 0); /* a SIGPIPE would end this program */
    assert_int_equal(flaky_number("lost_lines"), 2);
    assert_int_equal(atomic_load(&flaky_ok), 1);
}

/* The descriptor that other processes share keeps its flags. */
TEST_WITH(trace_writes_to_stderr_without_waiting, set_up, tear_down)
{
    const int saved = dup(STDERR_FILENO);
    char text[4096];
    int fd[2], flags;
    long lost;

    assert_int_equal(pipe2(fd, O_CLOEXEC), 0);
    assert_int_equal(fcntl(fd[0], F_SETFL, O_NONBLOCK), 0);
    assert_int_equal(dup2(fd[1], STDERR_FILENO), STDERR_FILENO);
    flaky_open("{}");
    for (int i = 0; i < 2000; i++)
        send_call(1, i, TENREC_MSG_CALL, 0);
    lost = flaky_number("lost_lines");
    flags = fcntl(STDERR_FILENO, F_GETFL);
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(fd[1]);
    assert_int_equal(flags & O_NONBLOCK, 0);
    assert_true(lost > 0);
    assert_true(read(fd[0], text, sizeof text - 1) > 0);
    text[sizeof text - 1] = '\0';
    assert_text_has(text, " worker0/flaky out CALL peer 1 id 0 ");
    close(fd[0]);
}
