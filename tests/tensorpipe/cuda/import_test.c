/* SPDX-License-Identifier: Apache-2.0 */
/* import_test.c - memory of another process, whose handle and bounds come from there. */
#include "../../testing.h"
#include "cuda/import.h"
#include "fake.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define LENDER "lender"
#define BYTES ((size_t)100000)
#define SEED 7

/* The lender's description of its allocation. */
struct lent_memory {
    struct import_key key;
    uint64_t whole; /* bytes of it, which may be more than were asked for */
};

struct lender {
    pid_t pid;
    int talk;
    struct lent_memory memory;
};

static struct lender *lender; /* of the case that runs */

/* ---- the other process ---- */

static void lend(int talk)
{
    struct lent_memory m = { .key.buffer = 1 };
    void *data = fake_open(NULL) ? fake_new(0, BYTES) : NULL;
    driver_address base;
    tenrec_error err;
    size_t whole;
    char end;

    if (!data || device_enter(0, &err))
        _exit(1);
    fake_fill(0, 0, data, BYTES, SEED);
    fake_wait(0, 0);
    if (driver()->memory_range(&base, &whole, (uintptr_t)data) != DRIVER_SUCCESS ||
        driver()->ipc_memory(&m.key.handle, base) != DRIVER_SUCCESS)
        _exit(1);
    m.key.base = base;
    m.whole = whole;
    if (write(talk, &m, sizeof m) != (ssize_t)sizeof m)
        _exit(1);
    /* Until the test is over. */
    _exit(read(talk, &end, 1) == 0 ? 0 : 1);
}

static void start_lender(void)
{
    static struct lender l;
    char exe[4096], fd[16];
    int pair[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    snprintf(fd, sizeof fd, "%d", pair[1]);
    l.pid = fork();
    assert_true(l.pid >= 0);
    if (l.pid == 0) {
        close(pair[0]);
        /* By its name: under valgrind the link itself would be valgrind. */
        execl(realpath("/proc/self/exe", exe), "import_test", LENDER, fd, (char *)NULL);
        _exit(127);
    }
    close(pair[1]);
    l.talk = pair[0];
    assert_int_equal(recv(l.talk, &l.memory, sizeof l.memory, MSG_WAITALL),
                     (ssize_t)sizeof l.memory);
    devices_hold();
    lender = &l;
}

static void end_lender(void)
{
    int status;

    imports_close(NULL);
    devices_let_go();
    close(lender->talk);
    assert_int_equal(waitpid(lender->pid, &status, 0), lender->pid);
    assert_int_equal(status, 0);
    fake_close();
    assert_int_equal(fake_live(FAKE_IMPORTED), 0);
    assert_int_equal(fake_reports(), 0);
}

/* ---- the cases ---- */

TEST_WITH(import_opens_an_allocation_once, start_lender, end_lender)
{
    const struct lent_memory *m = &lender->memory;
    struct import *first, *again;
    driver_address at, then;
    tenrec_error err;

    assert_status(import_open(&m->key, 0, 0, BYTES, &first, &at, &err), &err);
    fake_check(0, 0, (void *)(uintptr_t)at, BYTES, SEED);
    assert_status(import_open(&m->key, 0, 1000, BYTES - 1000, &again, &then, &err), &err);
    assert_ptr_equal(again, first);
    assert_int_equal(then, at + 1000);
    import_drop(again);
    import_drop(first);
}

TEST_WITH(import_refuses_memory_beyond_the_allocation, start_lender, end_lender)
{
    const struct lent_memory *m = &lender->memory;
    const struct {
        uint64_t offset, len;
    } all[] = {
        { 0, m->whole + 1 },     { m->whole, 1 },     { m->whole - 1, 2 },
        { 1, m->whole },         { m->whole + 1, 0 }, { UINT64_MAX, 1 },
        { UINT64_MAX - 1, 100 }, { 0, UINT64_MAX },   { m->whole, UINT64_MAX },
    };
    struct import *import;
    driver_address at;
    tenrec_error err;

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (import_open(&m->key, 0, all[i].offset, all[i].len, &import, &at, &err) !=
            TENREC_EPROTOCOL)
            fail_msg("%llu bytes at %llu of %llu: taken", (unsigned long long)all[i].len,
                     (unsigned long long)all[i].offset, (unsigned long long)m->whole);
        assert_text_has(err.text, "of an allocation of");
    }
    assert_status(import_open(&m->key, 0, m->whole - 1, 1, &import, &at, &err), &err);
    import_drop(import);
}

TEST_WITH(import_refuses_a_handle_of_nothing, start_lender, end_lender)
{
    struct import_key key = lender->memory.key;
    struct import *import;
    driver_address at;
    tenrec_error err;

    if (!fake_is_stand_in())
        skip();
    memset(&key.handle, 0x5a, sizeof key.handle);
    assert_int_equal(import_open(&key, 0, 0, BYTES, &import, &at, &err), TENREC_EOS);
    assert_text_has(err.text, "cuIpcOpenMemHandle");
    assert_int_equal(fake_live(FAKE_IMPORTED), 0);
}

TEST_WITH(import_closes_the_former_life_of_an_address, start_lender, end_lender)
{
    struct import_key key = lender->memory.key;
    struct import *import;
    driver_address at;
    tenrec_error err;

    if (!fake_is_stand_in())
        skip();
    assert_status(import_open(&key, 0, 0, BYTES, &import, &at, &err), &err);
    import_drop(import);
    assert_int_equal(fake_live(FAKE_IMPORTED), 1);
    /* The same handle for another life, or it would have to be closed while it is in use. */
    key.buffer++;
    assert_status(import_open(&key, 0, 0, BYTES, &import, &at, &err), &err);
    assert_int_equal(fake_live(FAKE_IMPORTED), 1);
    import_drop(import);
}

int main(int argc, char **argv)
{
    const char *why;

    if (argc == 3 && strcmp(argv[1], LENDER) == 0)
        lend((int)strtol(argv[2], NULL, 10));
    if (!fake_open(&why)) {
        printf("1..0 # SKIP no GPU: %s\n", why);
        return 77;
    }
    return testing_run(NULL, NULL);
}
