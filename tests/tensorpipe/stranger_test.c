/* stranger_test.c - a process that reaches the port of an agent, and has read neither the
 * store nor the wire: what it may claim, guess and break. */
#include "raw.h"

#include "node.h"
#include <unistd.h>

static struct node n[2];

static int setup(void **state)
{
    (void)state;
    group_open(n, 2, "sleep");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    group_close(n, 2);
    return 0;
}

static void assert_answers(struct raw_pipe *p)
{
    unsigned char buf[512], back[64];
    int64_t id;
    long len;

    raw_send(p->fd[0], buf, raw_message(buf, TENREC_MSG_CALL, 7, "hi", 2));
    assert_int_equal(raw_recv_message(p, &id, back, sizeof back, &len), TENREC_MSG_RET);
    assert_int_equal(id, 7);
}

static void assert_refused(uint64_t id)
{
    int fd = raw_connect(n[1].address);

    raw_hello_requested(fd, id);
    assert_true(raw_closed(fd));
    close(fd);
}

/* A process of the same host sees what ids its own pipes get, before and after the victim's. */
static void stranger_gets_no_connection_when_it_guesses_an_id(void **state)
{
    struct raw_pipe before, victim, after;

    (void)state;
    raw_pipe_ask(&before, n[1].address, NULL);
    raw_pipe_ask(&victim, n[1].address, NULL);
    raw_pipe_ask(&after, n[1].address, NULL);
    for (uint64_t id = 0; id < 16; id++)
        assert_refused(id);
    for (uint64_t step = 1; step < 8; step++) {
        assert_refused(before.id[2] + step);
        assert_refused(after.id[1] - step);
    }
    raw_pipe_join(&victim, n[1].address, 1);
    raw_pipe_join(&victim, n[1].address, 2);
    assert_answers(&victim);
    raw_pipe_close(&victim);
    close(before.fd[0]);
    close(after.fd[0]);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(stranger_gets_no_connection_when_it_guesses_an_id),
    };

    return cmocka_run_group_tests_name("stranger", tests, NULL, NULL);
}
