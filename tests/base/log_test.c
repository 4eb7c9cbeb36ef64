/* SPDX-License-Identifier: Apache-2.0 */
/* log_test.c - what peers put into lines, how many lines they cause, and a log
 * that has no reader. */
#include "../testing.h"

#include "core/base/log.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECOND 1000000000ull

struct lines {
    int n;
    char last[1200];
};

static void keep(void *arg, enum tenrec_log_level level, const char *part, const char *text)
{
    struct lines *l = arg;

    (void)level;
    (void)part;
    l->n++;
    snprintf(l->last, sizeof l->last, "%s", text);
}

TEST(log_line_stays_one_line_when_text_steers_the_terminal)
{
    struct lines l = { 0 };

    tenrec_log_set_callback(keep, &l);
    log_line(TENREC_LOG_WARN, "test", "%s",
             "a\ntenrec: error: b\x1b[2J\x7f\xc2\x9b\xff caf\xc3\xa9");
    tenrec_log_set_callback(NULL, NULL);
    assert_string_equal(l.last, "a\\ntenrec: error: b\\x1b[2J\\x7f\\xc2\\x9b\\xff caf\xc3\xa9");
}

TEST(error_stays_one_line_when_text_steers_the_terminal)
{
    tenrec_error err;

    tenrec_fail(&err, TENREC_EPROTOCOL, "type '%s'", "cpu\r\n\x1b]0;x\a");
    tenrec_error_prefix(&err, "from '%s'", "\t\x80");
    assert_string_equal(err.text, "from '\\t\\x80': type 'cpu\\r\\n\\x1b]0;x\\x07'");
    tenrec_fail(&err, TENREC_EREMOTE, "ValueError: no\n\tat x\x1b[2J");
    assert_string_equal(err.text, "ValueError: no\n\tat x\\x1b[2J");
}

/* stderr is a file while `err` is printed. */
static void printed(const tenrec_error *err, char *text, size_t room)
{
    FILE *f = tmpfile();
    const int before = dup(STDERR_FILENO);
    size_t n;

    assert_true(f && before >= 0 && dup2(fileno(f), STDERR_FILENO) >= 0);
    assert_int_equal(tenrec_error_print(err, "program"), 1);
    dup2(before, STDERR_FILENO);
    close(before);
    rewind(f);
    n = fread(text, 1, room - 1, f);
    text[n] = '\0';
    fclose(f);
}

TEST(error_print_names_the_worker_once)
{
    tenrec_error err;
    char text[256];

    tenrec_fail(&err, TENREC_EINVAL, "argument 1 is text");
    printed(&err, text, sizeof text);
    assert_string_equal(text, "program: argument 1 is text\n");
    snprintf(err.worker_name, sizeof err.worker_name,
             "worker\x1b"
             "0");
    printed(&err, text, sizeof text);
    assert_string_equal(text, "program: worker\\x1b0: argument 1 is text\n");
    snprintf(err.worker_name, sizeof err.worker_name, "worker0");
    tenrec_fail(&err, TENREC_ENOFUNCTION, "'worker0' has no function 'f'");
    snprintf(err.worker_name, sizeof err.worker_name, "worker0");
    printed(&err, text, sizeof text);
    assert_string_equal(text, "program: 'worker0' has no function 'f'\n");
}

/* Whatever the place takes, so that each cut of the text is met. */
TEST(error_ends_with_a_whole_character_when_cut_by_a_place)
{
    char many[sizeof((tenrec_error *)0)->text] = "", place[8];

    for (size_t i = 0; i + 4 < sizeof many; i += 3)
        memcpy(many + i, "\xe2\x82\xac", 4);
    for (int n = 0; n < 4; n++) {
        tenrec_error err;
        snprintf(place, sizeof place, "%.*s", n, "here");
        tenrec_fail(&err, TENREC_EREMOTE, "%s", many);
        tenrec_error_prefix(&err, "%s", place);
        for (const char *p = err.text; *p;) {
            const size_t len = tenrec_text_character((const unsigned char *)p);
            if (len == 0)
                fail_msg("a place of %d bytes leaves a part of a character", n);
            p += len;
        }
        assert_true(strlen(err.text) + 3 >= sizeof err.text - 1);
    }
}

/* Returns true if every byte is printable or a part of well-formed UTF-8. */
TEST(text_is_printable_when_bytes_are_any)
{
    char from[5] = "", to[32], again[32];

    for (unsigned int i = 1; i < 0x10000; i++) {
        from[0] = (char)(i & 0xff);
        from[1] = (char)(i >> 8);
        from[2] = (char)(i % 251);
        tenrec_text_escape(to, sizeof to, from, "");
        for (const char *p = to; *p;) {
            const size_t n = tenrec_text_character((const unsigned char *)p);
            if (n == 0)
                fail_msg("%#x is not escaped", i);
            p += n;
        }
        tenrec_text_escape(again, sizeof again, to, "");
        assert_string_equal(again, to);
    }
}

TEST(text_is_cut_before_an_escape_when_room_ends)
{
    char to[6];

    tenrec_text_escape(to, sizeof to, "ab\x01\x02", "");
    assert_string_equal(to, "ab");
    tenrec_text_escape(to, sizeof to, "a\x01\x02", "");
    assert_string_equal(to, "a\\x01");
}

/* How many of `n` lines, all at `now`, may be printed; the last one's count in *left_out. */
static int admitted(struct log_limit *l, const char *part, int n, uint64_t now, uint64_t *left_out)
{
    static const char place[] = "one place";
    struct log_record r = { .level = TENREC_LOG_WARN };
    int ret = 0;

    snprintf(r.part, sizeof r.part, "%s", part);
    for (int i = 0; i < n; i++) {
        if (log_limit_admit(l, place, &r, now)) {
            ret++;
            *left_out = r.left_out;
        }
    }
    return ret;
}

TEST(limit_prints_a_burst_then_one_line_a_second_when_lines_flood)
{
    static struct log_limit l;
    struct log_record r;
    uint64_t left_out = 0;

    assert_int_equal(admitted(&l, "a", 1000, 5 * SECOND, &left_out), LOG_LIMIT_BURST);
    assert_int_equal(admitted(&l, "b", 1, 5 * SECOND, &left_out), 1); /* another reason */
    assert_int_equal(admitted(&l, "a", 1000, 6 * SECOND, &left_out), 1);
    assert_int_equal(left_out, 1000 - LOG_LIMIT_BURST);
    assert_false(log_limit_take(&l, false, 6 * SECOND + 1, &r));
    assert_true(log_limit_take(&l, false, 7 * SECOND, &r));
    assert_int_equal(r.left_out, 998); /* and the line itself */
    assert_false(log_limit_take(&l, true, 8 * SECOND, &r));
    assert_int_equal(admitted(&l, "a", 1000, 100 * SECOND, &left_out), LOG_LIMIT_BURST);
    assert_int_equal(left_out, 0);
    assert_true(log_limit_take(&l, true, 100 * SECOND, &r));
    assert_int_equal(r.left_out, 1000 - LOG_LIMIT_BURST - 1);
}

TEST(log_counts_dropped_lines_when_flushed)
{
    struct lines l = { 0 };

    tenrec_log_set_callback(keep, &l);
    for (int i = 0; i < 5000; i++)
        log_line(TENREC_LOG_WARN, "flood", "message %d is malformed", i);
    /* A second may end in the midst of it. */
    assert_true(l.n < 1000);
    log_flush();
    tenrec_log_set_callback(NULL, NULL);
    assert_text_has(l.last, "message 4999 is malformed (and ");
    assert_text_has(l.last, " more lines like it)");
}

/* ---- sinks ------------------------------------------------------------------ */

static size_t drain(int fd, char *text, size_t room)
{
    size_t len = 0;
    ssize_t n;

    fcntl(fd, F_SETFL, O_NONBLOCK);
    while (len + 1 < room && (n = read(fd, text + len, room - 1 - len)) > 0)
        len += (size_t)n;
    text[len] = '\0';
    return len;
}

/* A sink that waits for its reader hangs here: the program's limit ends it. */
static void check_sink(int reader, int writer)
{
    static char text[4 * 1024 * 1024];
    char line[1025];
    int flags = fcntl(writer, F_GETFL);

    memset(line, 'x', sizeof line);
    line[1023] = '\n';
    for (int i = 0; i < 3000; i++)
        log_sink_write(writer, line, 1024);
    assert_int_equal(fcntl(writer, F_GETFL), flags);
    assert_true(drain(reader, text, sizeof text) < 3000 * 1024);
    log_sink_write(writer, "here again\n", 11);
    drain(reader, text, sizeof text);
    assert_text_has(text, "lines were lost");
    assert_text_has(text, "here again\n");
    close(reader);
    log_sink_write(writer, line, 1024); /* no SIGPIPE */
    close(writer);
}

TEST(sink_goes_on_when_a_pipe_has_no_reader)
{
    int fd[2];

    assert_int_equal(pipe2(fd, O_CLOEXEC), 0);
    check_sink(fd[0], fd[1]);
}

TEST(sink_goes_on_when_a_socket_has_no_reader)
{
    int fd[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
    check_sink(fd[0], fd[1]);
}

TEST(sink_lets_a_pipe_end_when_closed_by_the_program)
{
    char text[1024];
    int fd[2];

    assert_int_equal(pipe2(fd, O_CLOEXEC), 0);
    log_sink_write(fd[1], "a\n", 2);
    close(fd[1]);
    assert_true(drain(fd[0], text, sizeof text) > 0);
    assert_int_equal(read(fd[0], text, 1), 0);
    close(fd[0]);
}

static const char *program; /* valgrind has its own /proc/self/exe */

/* In a child: its first line opens the file. */
TEST(log_goes_to_stderr_when_its_file_is_a_fifo_without_reader)
{
    char folder[] = "/tmp/tenrec-log-XXXXXX", path[64], text[1024];
    int fd[2], status;
    pid_t pid;

    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/fifo", folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(pipe2(fd, O_CLOEXEC), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        setenv("TENREC_LOG_FILE", path, 1);
        dup2(fd[1], STDERR_FILENO);
        execl(program, program, "child", (char *)NULL);
        _exit(126);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    drain(fd[0], text, sizeof text);
    assert_text_has(text, "TENREC_LOG_FILE: cannot open");
    assert_text_has(text, "tenrec: error: test: a line\n");
    close(fd[0]);
    close(fd[1]);
    unlink(path);
    rmdir(folder);
}

int main(int argc, char **argv)
{
    program = argv[0];
    if (argc > 1) {
        log_line(TENREC_LOG_ERROR, "test", "a line");
        return 0;
    }
    return testing_run(NULL, NULL);
}
