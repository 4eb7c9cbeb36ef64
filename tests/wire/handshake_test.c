/* handshake_test.c - hello, brochure, answer and the selection between them,
 * with bytes that real peers exchanged.
 */
#include "brochure.h"
#include "hello.h"
#include "identity.h"
#include "wire_test.h"

#define CPU0 "b902bd0363707500 "
#define UV "bd027576 bd0475763a2a "
#define BASIC "bd056261736963 "
#define ANY "bd03616e79 "

static const char plain_brochure[] = "b902 bb01 " UV "bb01 " BASIC "bb01 " CPU0 ANY;
static const char plain_answer[] =
    "b907 bd027576 bd0f3132372e302e302e313a3237303031 bb010100 bd0475763a2a bb01 " BASIC
    "bc080100000000000000 bb01 " BASIC "bb01 " CPU0 ANY "bb01 ba02 " CPU0 CPU0 BASIC;

/* What a client with shm and cma sent, and what its listener answered. */
static const char shm_brochure[] =
    "b902bb02bd027576bd0475763a2abd0373686dbd3373686d3a39306366313966302d366635322d343863342d6133"
    "62622d3966633738353231343231375f345f6566666666666639bb03bd056261736963bb01b902bd036370750"
    "0bd03616e79bd03636d61bb01b902bd0363707500bd4e636d613a39306366313966302d366635322d34386334"
    "2d613362622d3966633738353231343231375f345f65666666666666635f345f65666666666666645f305f305"
    "f3166666665666666666666bd03787468bb01b902bd0363707500bd3539306366313966302d366635322d3438"
    "63342d613362622d3966633738353231343231375f345f65666666666666635f3232373139";
static const char shm_answer[] =
    "b907bd0373686dbd053535306234bb0201010000bd3373686d3a39306366313966302d366635322d343863342d"
    "613362622d3966633738353231343231375f345f6566666666666639bb01bd03636d61bc10020000000000000"
    "00300000000000000bb01bd03636d61bb01b902bd0363707500bd4e636d613a39306366313966302d36663532"
    "2d343863342d613362622d3966633738353231343231375f345f65666666666666635f345f656666666666666"
    "45f305f305f3166666665666666666666bb01ba02b902bd0363707500b902bd0363707500bd03636d61";
static const char shm_domain[] = "shm:90cf19f0-6f52-48c4-a3bb-9fc785214217_4_effffff9";
static const char cma_descriptor[] =
    "cma:90cf19f0-6f52-48c4-a3bb-9fc785214217_4_effffffc_4_effffffd_0_0_1fffeffffff";

#define CPU_DEVICE                                                                                 \
    {                                                                                              \
        { (const unsigned char *)"cpu", 3 }, 0                                                     \
    }
#define GPU_DEVICE                                                                                 \
    {                                                                                              \
        { (const unsigned char *)"cuda", 4 }, 1                                                    \
    }

static const struct nop_device cpu = CPU_DEVICE;
static const struct nop_device gpu = GPU_DEVICE;

static const struct wire_channel_device basic_devices[] = { { CPU_DEVICE, "any" } };
static const struct wire_channel_device cma_devices[] = { { CPU_DEVICE, cma_descriptor } };
static const struct wire_channel_device cuda_devices[] = { { CPU_DEVICE, "g" },
                                                           { GPU_DEVICE, "g" } };

static const struct wire_transport uv_only[] = { { "uv", "uv:*", "127.0.0.1:27001" } };
static const struct wire_transport shm_first[] = { { "shm", shm_domain, "550b4" },
                                                   { "uv", "uv:*", "127.0.0.1:27001" } };
static const struct wire_channel basic_only[] = { { "basic", basic_devices, 1, 1 } };
static const struct wire_channel cma_first[] = { { "cma", cma_devices, 1, 2 },
                                                 { "basic", basic_devices, 1, 1 } };
static const struct wire_channel basic_then_cuda[] = { { "basic", basic_devices, 1, 1 },
                                                       { "cuda_basic", cuda_devices, 2, 3 } };

static const struct wire_offer plain = { uv_only, basic_only, 1, 1, NULL };
static const struct wire_offer local = { shm_first, cma_first, 2, 2, NULL };
static const struct wire_offer with_gpu = { uv_only, basic_then_cuda, 1, 2, NULL };

static void check_bytes(const unsigned char *buf, size_t len, const char *expected)
{
    struct hex h = hex(expected);

    assert_int_equal(len, h.len);
    assert_memory_equal(buf, h.data, h.len);
}

static void hello_writes_what_a_real_client_wrote(void **state)
{
    unsigned char buf[HELLO_MAX(6)];

    (void)state;
    check_bytes(buf, hello_write_spontaneous(buf, sizeof buf, nop_text("client")),
                "b800b901bd06636c69656e74");
    check_bytes(buf, hello_write_spontaneous(buf, sizeof buf, nop_text("")), "b800b901bd00");
    check_bytes(buf, hello_write_requested(buf, sizeof buf, 0), "b801b90100");
    check_bytes(buf, hello_write_requested(buf, sizeof buf, 300), "b801b901812c01");
}

static void hello_reads_every_kind(void **state)
{
    struct hex h = hex("b800b901bd06636c69656e74 ffff");
    struct hello hello;
    tenrec_error err;

    (void)state;
    assert_int_equal(hello_read(h.data, h.len, &hello, &err), TENREC_OK);
    assert_int_equal(hello.kind, HELLO_SPONTANEOUS);
    assert_bytes_are(hello.name, "client");
    h = hex("b801b901 82ff000000");
    assert_int_equal(hello_read(h.data, h.len, &hello, &err), TENREC_OK);
    assert_int_equal(hello.kind, HELLO_REQUESTED);
    assert_int_equal(hello.id, 255);
    h = hex("b8ffbe");
    assert_int_equal(hello_read(h.data, h.len, &hello, &err), TENREC_OK);
    assert_int_equal(hello.kind, HELLO_EMPTY);
}

static void hello_refuses_what_is_none(void **state)
{
    static const char *const bad[] = { "",           "b8",
                                       "b802b90100", "b800b902bd00bd00",
                                       "b800b901",   "474554202f20485454502f312e310d0a" };
    struct hello hello;
    tenrec_error err;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct hex h = hex(bad[i]);
        assert_int_equal(hello_read(h.data, h.len, &hello, &err), TENREC_EPROTOCOL);
        assert_text_has(err.text, "hello.");
    }
}

static void brochure_writes_what_a_real_client_wrote(void **state)
{
    unsigned char buf[256];

    (void)state;
    check_bytes(buf, brochure_write(buf, sizeof buf, &plain), plain_brochure);
}

static void read_brochure(const char *text, struct brochure *ret, struct hex *ret_frame)
{
    tenrec_error err;

    *ret_frame = hex(text);
    if (brochure_read(ret_frame->data, ret_frame->len, ret, &err))
        fail_msg("%s", err.text);
}

static void brochure_keeps_unknown_names_reachable(void **state)
{
    struct wire_device_map map;
    struct nop_bytes text;
    struct brochure b;
    struct hex frame;

    (void)state;
    read_brochure(shm_brochure, &b, &frame);
    assert_int_equal(b.n_transports, 2);
    assert_int_equal(b.n_channels, 3);
    assert_true(brochure_find_transport(&b, "shm", &text));
    assert_bytes_are(text, shm_domain);
    assert_true(brochure_find_channel(&b, "xth", &map));
    assert_true(wire_device_map_find(&map, &cpu, &text));
    assert_false(wire_device_map_find(&map, &gpu, &text));
    assert_false(brochure_find_transport(&b, "ibv", &text));
    assert_false(brochure_find_channel(&b, "mpt", &map));
}

static void brochure_keeps_the_first_of_duplicate_names(void **state)
{
    struct nop_bytes text;
    struct brochure b;
    struct hex frame;

    (void)state;
    read_brochure("b902 bb02 bd027576 bd0161 bd027576 bd0162 bb00", &b, &frame);
    assert_true(brochure_find_transport(&b, "uv", &text));
    assert_bytes_are(text, "a");
}

static void select_takes_uv_and_basic_when_nothing_else_is_offered(void **state)
{
    struct wire_selection s;
    struct brochure b;
    struct hex frame;
    tenrec_error err;

    (void)state;
    read_brochure(plain_brochure, &b, &frame);
    assert_int_equal(brochure_select(&b, &local, &s, &err), TENREC_OK);
    assert_string_equal(local.transports[s.transport].name, "uv");
    assert_int_equal(s.n_pairs, 1);
    assert_string_equal(local.channels[s.pairs[0].channel].name, "basic");
    assert_int_equal(wire_selection_connections(&s, &local), 1);
}

static void select_answers_like_the_real_listener(void **state)
{
    static const uint64_t ids[2] = { 2, 3 };
    const struct wire_ids wire_ids = { true, 0, 1, ids };
    unsigned char buf[512];
    struct wire_selection s;
    struct brochure b;
    struct hex frame, expected = hex(shm_answer);
    tenrec_error err;
    size_t len;

    (void)state;
    read_brochure(shm_brochure, &b, &frame);
    assert_int_equal(brochure_select(&b, &local, &s, &err), TENREC_OK);
    assert_int_equal(wire_selection_connections(&s, &local), 2);
    len = answer_write(buf, sizeof buf, &local, &s, &wire_ids, false);
    /* The order of a map is free: ours of the two ids is the other one. */
    assert_int_equal(len, expected.len);
    assert_memory_equal(buf, expected.data, 14);
    check_bytes(buf + 14, 6, "bb02 0000 0101");
    assert_memory_equal(buf + 20, expected.data + 20, len - 20);
}

static void select_skips_a_transport_without_address_or_with_another_domain(void **state)
{
    const struct wire_transport transports[] = { { "shm", shm_domain, NULL },
                                                 { "uv", "uv:other", "127.0.0.1:1" } };
    const struct wire_offer offer = { transports, basic_only, 2, 1, NULL };
    struct wire_selection s;
    struct brochure b;
    struct hex frame;
    tenrec_error err;

    (void)state;
    read_brochure(shm_brochure, &b, &frame);
    assert_int_equal(brochure_select(&b, &offer, &s, &err), TENREC_EPROTOCOL);
    assert_text_has(err.text, "no common transport");
}

static void select_gives_each_pair_of_devices_its_first_channel(void **state)
{
    unsigned char buf[512];
    const struct wire_pair *pair;
    struct wire_selection s;
    struct brochure b;
    tenrec_error err;
    size_t len = brochure_write(buf, sizeof buf, &with_gpu);

    (void)state;
    assert_int_equal(brochure_read(buf, len, &b, &err), TENREC_OK);
    assert_int_equal(brochure_select(&b, &with_gpu, &s, &err), TENREC_OK);
    assert_int_equal(s.n_pairs, 4);
    pair = wire_selection_find(&s, &cpu, &cpu);
    assert_non_null(pair);
    assert_string_equal(with_gpu.channels[pair->channel].name, "basic");
    pair = wire_selection_find(&s, &cpu, &gpu);
    assert_non_null(pair);
    assert_string_equal(with_gpu.channels[pair->channel].name, "cuda_basic");
    assert_non_null(wire_selection_find(&s, &gpu, &cpu));
    assert_int_equal(wire_selection_connections(&s, &with_gpu), 4);
}

static void select_works_without_any_channel(void **state)
{
    struct wire_selection s;
    struct brochure b;
    struct hex frame;
    tenrec_error err;

    (void)state;
    read_brochure("b902 bb01 " UV "bb00", &b, &frame);
    assert_int_equal(brochure_select(&b, &plain, &s, &err), TENREC_OK);
    assert_int_equal(s.n_pairs, 0);
    assert_int_equal(wire_selection_connections(&s, &plain), 0);
}

static void select_refuses_more_pairs_than_it_can_hold(void **state)
{
    static unsigned char buf[8192];
    struct wire_channel_device own[2] = { { CPU_DEVICE, "any" }, { GPU_DEVICE, "any" } };
    const struct wire_channel channel = { "basic", own, 2, 1 };
    const struct wire_offer offer = { uv_only, &channel, 1, 1, NULL };
    struct wire_selection s;
    struct nop_writer w;
    struct brochure b;
    tenrec_error err;

    (void)state;
    nop_writer_init(&w, buf, sizeof buf);
    nop_write_struct(&w, 2);
    nop_write_map(&w, 1);
    nop_write_string(&w, nop_text("uv"));
    nop_write_string(&w, nop_text("uv:*"));
    nop_write_map(&w, 1);
    nop_write_string(&w, nop_text("basic"));
    nop_write_map(&w, 200);
    for (int32_t i = 0; i < 200; i++) {
        const struct nop_device device = { nop_text("cuda"), i };
        nop_write_device(&w, &device);
        nop_write_string(&w, nop_text("any"));
    }
    assert_int_equal(brochure_read(buf, w.len, &b, &err), TENREC_OK);
    assert_int_equal(brochure_select(&b, &offer, &s, &err), TENREC_ETOOBIG);
}

static void brochure_refuses_what_is_none(void **state)
{
    static const char *const bad[] = {
        "",
        "b902",
        "b903 bb00 bb00 bb00",
        "b902 bb01 bd027576 bb00",
        "b902 ba00 bb00",
        "b902 bb00 bb01 bd0161 bb01 b902 bd0363707500",
        "b902 bb80ff bb00",
        "b902 bb00 bb01 bd0161 bb01 b902 bd03637075 8000 bd0161",
    };
    struct brochure b;
    tenrec_error err;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct hex h = hex(bad[i]);
        void *frame = hex_exact(h.data, h.len);
        assert_int_equal(brochure_read(frame, h.len, &b, &err), TENREC_EPROTOCOL);
        assert_text_has(err.text, "brochure.");
        free(frame);
    }
}

static void brochure_refuses_more_names_than_it_walks(void **state)
{
    static unsigned char buf[1024];
    struct nop_writer w;
    struct brochure b;
    tenrec_error err;

    (void)state;
    nop_writer_init(&w, buf, sizeof buf);
    nop_write_struct(&w, 2);
    nop_write_map(&w, WIRE_MAX_NAMES + 1);
    for (int i = 0; i <= WIRE_MAX_NAMES; i++) {
        nop_write_string(&w, nop_text("a"));
        nop_write_string(&w, nop_text("b"));
    }
    nop_write_map(&w, 0);
    assert_int_equal(brochure_read(buf, w.len, &b, &err), TENREC_ETOOBIG);
    assert_text_has(err.text, "65 pairs; the limit is 64");
}

static void answer_writes_what_a_real_listener_wrote(void **state)
{
    static const uint64_t ids[1] = { 1 };
    const struct wire_ids wire_ids = { false, 0, 0, ids };
    unsigned char buf[256];
    struct wire_selection s;
    struct brochure b;
    struct hex frame;
    tenrec_error err;

    (void)state;
    read_brochure(plain_brochure, &b, &frame);
    assert_int_equal(brochure_select(&b, &plain, &s, &err), TENREC_OK);
    check_bytes(buf, answer_write(buf, sizeof buf, &plain, &s, &wire_ids, false), plain_answer);
}

static void read_answer(const char *text, struct answer *ret, struct hex *ret_frame)
{
    tenrec_error err;

    *ret_frame = hex(text);
    if (answer_read(ret_frame->data, ret_frame->len, ret, &err))
        fail_msg("%s", err.text);
}

static void answer_check_accepts_what_real_listeners_wrote(void **state)
{
    struct wire_selection s;
    struct nop_bytes ids;
    struct answer a;
    struct hex frame;
    tenrec_error err;

    (void)state;
    read_answer(plain_answer, &a, &frame);
    assert_bytes_are(a.address, "127.0.0.1:27001");
    assert_int_equal(a.reply_id, 0);
    assert_int_equal(answer_check(&a, &plain, "uv", &s, &err), TENREC_OK);
    assert_non_null(wire_selection_find(&s, &cpu, &cpu));
    assert_true(answer_find_ids(&a, "basic", &ids));
    assert_int_equal(nop_uint64_at(ids, 0), 1);

    read_answer(shm_answer, &a, &frame);
    assert_int_equal(a.descriptor_id, 0);
    assert_int_equal(a.reply_id, 1);
    assert_int_equal(answer_check(&a, &local, "uv", &s, &err), TENREC_OK);
    assert_string_equal(local.transports[s.transport].name, "shm");
    assert_true(s.channel_used[0]);
    assert_false(s.channel_used[1]);
    assert_true(answer_find_ids(&a, "cma", &ids));
    assert_int_equal(nop_uint64_count(ids), 2);
    assert_int_equal(nop_uint64_at(ids, 1), 3);
}

/* The answer with its pairs turned round is what the client mirrors. */
static void answer_check_mirrors_the_pairs_of_devices(void **state)
{
    static const struct wire_channel_device gpu_only[] = { { GPU_DEVICE, "g" } };
    static const struct wire_channel_device cpu_only[] = { { CPU_DEVICE, "g" } };
    static const struct wire_channel listener_channel[] = { { "c", gpu_only, 1, 1 } };
    static const struct wire_channel client_channel[] = { { "c", cpu_only, 1, 1 } };
    static const struct wire_offer listener = { uv_only, listener_channel, 1, 1, NULL };
    static const struct wire_offer client = { uv_only, client_channel, 1, 1, NULL };
    static const uint64_t ids[1] = { 1 };
    const struct wire_ids wire_ids = { false, 0, 0, ids };
    unsigned char brochure[256], answer[256];
    struct wire_selection theirs, ours;
    struct brochure b;
    struct answer a;
    tenrec_error err;
    size_t len = brochure_write(brochure, sizeof brochure, &client);

    (void)state;
    assert_int_equal(brochure_read(brochure, len, &b, &err), TENREC_OK);
    assert_int_equal(brochure_select(&b, &listener, &theirs, &err), TENREC_OK);
    assert_non_null(wire_selection_find(&theirs, &gpu, &cpu));
    len = answer_write(answer, sizeof answer, &listener, &theirs, &wire_ids, false);
    assert_int_equal(answer_read(answer, len, &a, &err), TENREC_OK);
    assert_int_equal(answer_check(&a, &client, "uv", &ours, &err), TENREC_OK);
    assert_non_null(wire_selection_find(&ours, &cpu, &gpu));
    assert_null(wire_selection_find(&ours, &gpu, &cpu));
}

static void answer_check_refuses_an_inconsistent_answer(void **state)
{
    static const struct {
        const char *from, *to, *says;
    } changes[] = {
        /* another transport, domain */
        { "b907 bd027576", "b907 bd027878", "transport \"xx\" was not offered" },
        { "bd0475763a2a bb01", "bd0475763a2b bb01", "is not ours" },
        /* no reply id; a descriptor id although the transport stays */
        { "bb010100", "bb010200", "no registration id for descriptor replies" },
        { "bb010100", "bb0201000005", "with a registration id" },
        /* an id too many, none at all */
        { "bc080100000000000000", "bc1001000000000000000200000000000000", "registration ids" },
        { "bb01 bd056261736963 bc080100000000000000", "bb00", "registration ids" },
        /* another channel, another device descriptor, a device without one */
        { CPU0 CPU0 BASIC, CPU0 CPU0 "bd016d", "channel \"m\" was not offered" },
        { ANY, "bd03616e7a ", "cannot serve our cpu:0 and their cpu:0" },
        { "ba02 " CPU0, "ba02 b902bd0363707501 ", "cannot serve our cpu:0 and their cpu:1" },
        { CPU0 BASIC, "b902bd0363707501 " BASIC, "cannot serve our cpu:1 and their cpu:0" },
    };
    char text[1024];

    (void)state;
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        /* The last place is meant where there are several. */
        const char *at = NULL, *next = plain_answer;
        struct wire_selection s;
        struct answer a;
        struct hex frame;
        tenrec_error err;

        while ((next = strstr(next, changes[i].from))) {
            at = next++;
        }
        assert_non_null(at);
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - plain_answer), plain_answer,
                 changes[i].to, at + strlen(changes[i].from));
        read_answer(text, &a, &frame);
        assert_int_equal(answer_check(&a, &plain, "uv", &s, &err), TENREC_EPROTOCOL);
        assert_text_has(err.text, changes[i].says);
    }
}

static void answer_check_needs_a_descriptor_id_when_the_transport_changes(void **state)
{
    struct wire_selection s;
    struct answer a;
    struct hex frame;
    tenrec_error err;

    (void)state;
    read_answer(shm_answer, &a, &frame);
    a.has_descriptor_id = false;
    assert_int_equal(answer_check(&a, &local, "uv", &s, &err), TENREC_EPROTOCOL);
    assert_text_has(err.text, "without registration id");
}

static void answer_refuses_every_cut(void **state)
{
    struct hex h = hex(plain_answer);
    struct answer a;
    tenrec_error err;

    (void)state;
    for (size_t len = 0; len < h.len; len++) {
        void *frame = hex_exact(h.data, len);
        assert_int_equal(answer_read(frame, len, &a, &err), TENREC_EPROTOCOL);
        free(frame);
    }
}

static void identity_travels_both_ways_between_tenrec_peers(void **state)
{
    static const uint64_t ids[1] = { 1 };
    const struct wire_ids wire_ids = { false, 0, 0, ids };
    const struct identity client = { IDENTITY_VERSION, 3, 0xfedcba9876543210u, 3 };
    const struct identity listener = { IDENTITY_VERSION, TENREC_ANONYMOUS, 0, 0 };
    unsigned char brochure[256], answer[256];
    char client_text[IDENTITY_MAX], listener_text[IDENTITY_MAX];
    struct wire_offer client_offer = plain, listener_offer = plain;
    struct wire_selection s;
    struct identity read;
    struct brochure b;
    struct answer a;
    tenrec_error err;
    size_t len;

    (void)state;
    identity_write(client_text, &client);
    identity_write(listener_text, &listener);
    assert_string_equal(client_text, "tenrec:1:3:fedcba9876543210:3");
    client_offer.identity = client_text;
    listener_offer.identity = listener_text;

    len = brochure_write(brochure, sizeof brochure, &client_offer);
    assert_int_equal(brochure_read(brochure, len, &b, &err), TENREC_OK);
    assert_int_equal(identity_of_client(&b, &read, &err), TENREC_OK);
    assert_int_equal(read.rank, 3);
    assert_true(read.incarnation == client.incarnation);
    assert_int_equal(read.capabilities, 3);

    assert_int_equal(brochure_select(&b, &listener_offer, &s, &err), TENREC_OK);
    len = answer_write(answer, sizeof answer, &listener_offer, &s, &wire_ids, true);
    assert_int_equal(answer_read(answer, len, &a, &err), TENREC_OK);
    assert_int_equal(answer_check(&a, &client_offer, "uv", &s, &err), TENREC_OK);
    assert_int_equal(identity_of_listener(&a, &read, &err), TENREC_OK);
    assert_int_equal(read.version, IDENTITY_VERSION);
    assert_int_equal(read.rank, TENREC_ANONYMOUS);
}

static void identity_is_absent_in_plain_peers(void **state)
{
    struct identity read;
    struct brochure b;
    struct answer a;
    struct hex frame;
    tenrec_error err;

    (void)state;
    read_brochure(shm_brochure, &b, &frame);
    assert_int_equal(identity_of_client(&b, &read, &err), TENREC_OK);
    assert_int_equal(read.version, 0);
    assert_int_equal(read.rank, TENREC_ANONYMOUS);
    read_answer(shm_answer, &a, &frame);
    assert_int_equal(identity_of_listener(&a, &read, &err), TENREC_OK);
    assert_int_equal(read.version, 0);
}

static void identity_skips_fields_of_later_versions(void **state)
{
    struct identity read;
    tenrec_error err;

    (void)state;
    assert_int_equal(identity_read(nop_text("tenrec:2:0:1f:ff:more:and more"), &read, &err),
                     TENREC_OK);
    assert_int_equal(read.version, 2);
    assert_int_equal(read.incarnation, 0x1f);
    assert_int_equal(read.capabilities, 0xff);
}

static void identity_refuses_what_is_none(void **state)
{
    static const char *const bad[] = {
        "",
        "tenrec:",
        "tenrec",
        "tenrec:1",
        "tenrec:1:2",
        "tenrec:1:2:3",
        "tenrec:0:1:2:3",
        "tenrec:1:-2:3:4",
        "tenrec:1:32768:1:1",
        "tenrec:1:1:11112222333344445:1",
        "tenrec:1:1:G:1",
        "tenrec:1:1:1:",
        "tenrec:4294967296:1:1:1",
        "uv:*",
        "tenrec:1::1:1",
    };
    struct identity read;
    tenrec_error err;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(identity_read(nop_text(bad[i]), &read, &err), TENREC_EPROTOCOL);
        assert_text_has(err.text, bad[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hello_writes_what_a_real_client_wrote),
        cmocka_unit_test(hello_reads_every_kind),
        cmocka_unit_test(hello_refuses_what_is_none),
        cmocka_unit_test(brochure_writes_what_a_real_client_wrote),
        cmocka_unit_test(brochure_keeps_unknown_names_reachable),
        cmocka_unit_test(brochure_keeps_the_first_of_duplicate_names),
        cmocka_unit_test(brochure_refuses_what_is_none),
        cmocka_unit_test(brochure_refuses_more_names_than_it_walks),
        cmocka_unit_test(select_takes_uv_and_basic_when_nothing_else_is_offered),
        cmocka_unit_test(select_answers_like_the_real_listener),
        cmocka_unit_test(select_skips_a_transport_without_address_or_with_another_domain),
        cmocka_unit_test(select_gives_each_pair_of_devices_its_first_channel),
        cmocka_unit_test(select_works_without_any_channel),
        cmocka_unit_test(select_refuses_more_pairs_than_it_can_hold),
        cmocka_unit_test(answer_writes_what_a_real_listener_wrote),
        cmocka_unit_test(answer_check_accepts_what_real_listeners_wrote),
        cmocka_unit_test(answer_check_mirrors_the_pairs_of_devices),
        cmocka_unit_test(answer_check_refuses_an_inconsistent_answer),
        cmocka_unit_test(answer_check_needs_a_descriptor_id_when_the_transport_changes),
        cmocka_unit_test(answer_refuses_every_cut),
        cmocka_unit_test(identity_travels_both_ways_between_tenrec_peers),
        cmocka_unit_test(identity_is_absent_in_plain_peers),
        cmocka_unit_test(identity_skips_fields_of_later_versions),
        cmocka_unit_test(identity_refuses_what_is_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
