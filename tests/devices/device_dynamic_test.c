/* SPDX-License-Identifier: Apache-2.0 */
/* device_dynamic_test.c BACKEND - device maps in dynamic groups: those of a
 * joiner, and those for it. */
#include "../support/functions.h"
#include "../support/party.h"
#include "../testing.h"

#define CPU ((struct tenrec_device){ TENREC_CPU, 0 })
#define GPU(i) ((struct tenrec_device){ TENREC_CUDA, (i) })

static const char two_devices[] = "backends.inproc.options.devices=2";
static tenrec_error err;

static void begin(void)
{
    party_begin();
}

/* [where the tensor is here: -1 for the host, the tensor] */
static tenrec_status where(struct tenrec_call *c, void *arg, tenrec_error *why)
{
    size_t n;
    const struct tenrec_value *args = tenrec_call_args(c, &n);
    const struct tenrec_device d = tenrec_tensor_desc(args[0].u.tensor)->device;
    struct tenrec_value item[] = { tenrec_value_int(d.kind == TENREC_CPU ? -1 : d.index), args[0] };
    const struct tenrec_value both = tenrec_value_array(item, 2);

    (void)arg;
    return tenrec_call_return(c, &both, why);
}

static void setup(struct tenrec_worker *w, size_t rank)
{
    (void)rank;
    functions_offer(w, "where", where, TENREC_POOL);
}

/* `maps`: "worker.device_maps=..." or NULL. */
static struct tenrec_worker *worker(int rank, const char *maps)
{
    const char *const extra[] = { two_devices, maps, NULL };

    return party_worker(rank, NULL, extra, setup);
}

static struct tenrec_worker *join(int rank, const char *maps)
{
    struct tenrec_worker *w = worker(rank, maps);

    assert_status(tenrec_init_rpc(w, &err), &err);
    return w;
}

static struct tenrec_tensor *ones(struct tenrec_device device)
{
    const int64_t n = 16;
    struct tenrec_tensor *host, *t;

    assert_status(tenrec_tensor_new(TENREC_FLOAT32, 1, &n, &host, &err), &err);
    for (int i = 0; i < n; i++)
        ((float *)tenrec_tensor_data(host))[i] = 1;
    if (device.kind == TENREC_CPU)
        return host;
    assert_status(tenrec_tensor_to(host, device, &t, &err), &err);
    tenrec_tensor_drop(host);
    return t;
}

static void assert_ones(struct tenrec_tensor *t, struct tenrec_device device)
{
    struct tenrec_tensor *host;

    assert_int_equal(tenrec_tensor_desc(t)->device.kind, device.kind);
    assert_int_equal(tenrec_tensor_desc(t)->device.index, device.index);
    assert_status(tenrec_tensor_to(t, CPU, &host, &err), &err);
    for (int i = 0; i < 16; i++)
        assert_true(((float *)tenrec_tensor_data(host))[i] == 1);
    tenrec_tensor_drop(host);
}

static tenrec_status ask(struct tenrec_worker *w, const char *to, struct tenrec_device from,
                         struct tenrec_value **ret)
{
    struct tenrec_tensor *t = ones(from);
    const struct tenrec_value arg = tenrec_value_tensor(t);
    tenrec_status st = tenrec_rpc_sync(w, to, "where", &arg, 1, NULL, ret, &err);

    tenrec_tensor_drop(t);
    return st;
}

/* A tensor on `from` arrives on `there` (-1: in the host) and comes back. */
static void goes(struct tenrec_worker *w, const char *to, struct tenrec_device from, int there)
{
    struct tenrec_value *got = NULL;

    assert_status(ask(w, to, from, &got), &err);
    assert_int_equal(got->u.array[0].u.integer, there);
    assert_ones(got->u.array[1].u.tensor, from);
    tenrec_value_drop(got);
}

static void is_unmapped(struct tenrec_worker *w, const char *to, struct tenrec_device from)
{
    assert_int_equal(ask(w, to, from, NULL), TENREC_EDEVICE);
    assert_text_has(err.text, "no device map to '");
}

TEST_WITH(device_joiner_gets_tensors_by_the_others_map, begin, NULL)
{
    struct tenrec_worker *a = join(0, "worker.device_maps={worker1: {cuda:0: cuda:1}}"), *b;

    b = join(1, NULL);
    goes(a, "worker1", GPU(0), 1);
    is_unmapped(a, "worker1", GPU(1));
    goes(b, "worker0", CPU, -1);
    party_leave(b);
    party_leave(a);
}

/* Again and again: the other may hear of the newcomer from its first message. */
TEST_WITH(device_joiner_sends_by_its_map_at_once, begin, NULL)
{
    struct tenrec_worker *a = join(0, NULL), *b;
    struct tenrec_device used[4];
    size_t n;

    goes(a, "worker0", CPU, -1);
    for (int i = 0; i < 5; i++) {
        b = join(1, "worker.device_maps={worker0: {cpu: cuda:1, cuda:0: cuda:0}}");
        goes(b, "worker0", CPU, 1);
        goes(b, "worker0", GPU(0), 0);
        assert_status(tenrec_worker_get_devices(a, used, 4, &n, &err), &err);
        assert_int_equal(n, 2);
        party_leave(b);
    }
    party_leave(a);
}

/* Only the callee has devices: the caller sends from the host. */
TEST_WITH(device_joiner_without_devices_sends_to_devices, begin, NULL)
{
    struct tenrec_worker *a = join(0, NULL), *b;

    for (int i = 0; i < 5; i++) {
        b = join(1, "worker.device_maps={worker0: {cpu: cuda:1}}");
        goes(b, "worker0", CPU, 1);
        party_leave(b);
    }
    party_leave(a);
}

TEST_WITH(device_newcomer_brings_a_map_of_its_own, begin, NULL)
{
    struct tenrec_worker *a = join(0, NULL), *b;

    b = join(1, "worker.device_maps={worker0: {cuda:0: cuda:1}}");
    goes(b, "worker0", GPU(0), 1);
    party_leave(b);
    b = join(1, "worker.device_maps={worker0: {cuda:0: cuda:0}}");
    goes(b, "worker0", GPU(0), 0);
    party_leave(b);
    b = join(1, NULL);
    is_unmapped(b, "worker0", GPU(0));
    goes(b, "worker0", CPU, -1);
    party_leave(b);
    party_leave(a);
}

/* The joiner gets the reason, the members go on, and the id is free for another joiner. */
static void is_refused(struct tenrec_worker *a, struct tenrec_worker *b, const char *maps,
                       const char *text)
{
    struct tenrec_worker *wrong = worker(2, maps);

    assert_int_equal(tenrec_init_rpc(wrong, &err), TENREC_EGROUP);
    assert_text_has(err.text, "of 'worker2'");
    assert_text_has(err.text, text);
    assert_false(tenrec_worker_running(wrong));
    tenrec_worker_drop(wrong);
    party_await(a, 2);
    goes(a, "worker1", GPU(0), 1);
    goes(b, "worker0", CPU, -1);
}

TEST_WITH(device_joiner_with_a_wrong_map_is_refused, begin, NULL)
{
    struct tenrec_worker *a = join(0, "worker.device_maps={worker1: {cuda:0: cuda:1}}");
    struct tenrec_worker *b = join(1, NULL), *c;

    is_refused(a, b, "worker.device_maps={worker0: {cuda:0: cuda:1, cuda:1: cuda:1}}",
               "both go to cuda:1");
    is_refused(a, b, "worker.device_maps={worker0: {cuda:5: cuda:1}}", "cuda:5");
    is_refused(a, b, "worker.device_maps={worker0: {cuda:0: cuda:6}}", "cuda:6");
    is_refused(a, b, "worker.devices=[cuda:0, cuda:0]", "cuda:0");
    c = join(2, "worker.device_maps={worker0: {cuda:0: cuda:1}, worker9: {cuda:0: cuda:0}}");
    goes(c, "worker0", GPU(0), 1);
    goes(a, "worker1", GPU(0), 1);
    party_leave(c);
    party_leave(b);
    party_leave(a);
}

/* The other one has said nothing of its devices: its answers say what is wrong. */
TEST_WITH(device_map_to_a_device_that_the_member_lacks_fails_messages, begin, NULL)
{
    struct tenrec_worker *a = join(0, NULL), *b;

    b = join(1, "worker.device_maps={worker0: {cuda:0: cuda:6}}");
    /* From our backend, or from the other worker. */
    assert_int_not_equal(ask(b, "worker0", GPU(0), NULL), TENREC_OK);
    assert_text_has(err.text, "cuda:6 is not a device that 'worker0' uses");
    goes(b, "worker0", CPU, -1);
    goes(a, "worker1", CPU, -1);
    party_leave(b);
    party_leave(a);
}

/* A joiner that the members' maps name wrongly gets an error. */
TEST_WITH(device_map_to_a_device_that_a_joiner_lacks_refuses_the_joiner, begin, NULL)
{
    struct tenrec_worker *a = join(0, "worker.device_maps={worker1: {cuda:0: cuda:6}}"), *b;

    b = worker(1, NULL);
    assert_int_equal(tenrec_init_rpc(b, &err), TENREC_EGROUP);
    assert_text_has(err.text, "of 'worker0'");
    assert_text_has(err.text, "cuda:6");
    tenrec_worker_drop(b);
    party_await(a, 1);
    b = join(2, NULL);
    goes(a, "worker2", CPU, -1);
    party_leave(b);
    party_leave(a);
}

TEST_MAIN(cluster_use(argv[1]), NULL, NULL)
