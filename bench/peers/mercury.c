/* SPDX-License-Identifier: Apache-2.0 */
/* mercury.c - Mercury's remote procedures with 64 bytes; a large message is
 * pulled by the callee out of memory that the caller has registered before.
 *
 *     mercury_peer latency|rate|bandwidth busy|sleep na+sm|ofi+tcp */
#include "../driver.h"

#include <mercury.h>
#include <mercury_bulk.h>
#include <mercury_proc.h>
#include <mercury_proc_bulk.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ADDRESS_MAX 512
#define WAIT_MS 1000

struct mercury {
    struct trial *trial;
    hg_class_t *class;
    hg_context_t *context;
    hg_id_t echo, pull, end;
    hg_handle_t handle[PAIR_INFLIGHT];
    unsigned char *data;
    hg_bulk_t memory; /* data, registered */
    size_t got;       /* answers, or at the callee pulls */
    size_t to_send;
    bool ended;
};

static unsigned char small[PAIR_SMALL];

static void must(hg_return_t r, const char *what)
{
    if (r == HG_SUCCESS)
        return;
    fprintf(stderr, "bench: mercury: %s: %s\n", what, HG_Error_to_string(r));
    _exit(1);
}

static hg_return_t proc_small(hg_proc_t proc, void *data)
{
    return hg_proc_raw(proc, data, PAIR_SMALL);
}

static hg_return_t proc_bulk(hg_proc_t proc, void *data)
{
    return hg_proc_hg_bulk_t(proc, data);
}

static void progress(struct mercury *m)
{
    unsigned n, any = 0;

    do {
        n = 0;
        HG_Trigger(m->context, 0, PAIR_INFLIGHT, &n);
        any += n;
    } while (n);
    if (!any)
        HG_Progress(m->context, m->trial->busy ? 0 : WAIT_MS);
}

static struct mercury *state_of(hg_handle_t h)
{
    return HG_Class_get_data(HG_Get_info(h)->hg_class);
}

/* ---- the callee -------------------------------------------------------------------------- */

static hg_return_t on_echo(hg_handle_t h)
{
    unsigned char in[PAIR_SMALL];

    must(HG_Get_input(h, in), "HG_Get_input");
    must(HG_Respond(h, NULL, NULL, small), "HG_Respond");
    HG_Free_input(h, in);
    return HG_Destroy(h);
}

static hg_return_t on_end(hg_handle_t h)
{
    state_of(h)->ended = true;
    return on_echo(h);
}

struct pull {
    hg_handle_t handle;
    hg_bulk_t from;
};

static hg_return_t pulled(const struct hg_cb_info *info)
{
    struct pull *p = info->arg;
    struct mercury *m = state_of(p->handle);

    must(info->ret, "pull");
    if (m->got++ == 0)
        pair_expect(m->trial->peer, m->data, m->trial->size);
    must(HG_Respond(p->handle, NULL, NULL, small), "HG_Respond");
    HG_Free_input(p->handle, &p->from);
    HG_Destroy(p->handle);
    free(p);
    return HG_SUCCESS;
}

static hg_return_t on_pull(hg_handle_t h)
{
    struct mercury *m = state_of(h);
    struct pull *p = malloc(sizeof *p);

    if (!p)
        pair_die("malloc");
    p->handle = h;
    must(HG_Get_input(h, &p->from), "HG_Get_input");
    must(HG_Bulk_transfer(m->context, pulled, p, HG_BULK_PULL, HG_Get_info(h)->addr, p->from, 0,
                          m->memory, 0, m->trial->size, HG_OP_ID_IGNORE),
         "HG_Bulk_transfer");
    return HG_SUCCESS;
}

/* ---- both sides -------------------------------------------------------------------------- */

static struct mercury *make(struct trial *t, bool listens, hg_uint8_t access)
{
    struct hg_init_info info = HG_INIT_INFO_INITIALIZER;
    struct mercury *m = calloc(1, sizeof *m);
    hg_size_t size = t->size;
    void *data;

    if (!m)
        pair_die("calloc");
    m->trial = t;
    info.na_init_info.progress_mode = t->busy ? NA_NO_BLOCK : 0;
    info.na_init_info.thread_mode = NA_THREAD_MODE_SINGLE;
    m->class =
        HG_Init_opt(strcmp(t->via, "na+sm") ? "ofi+tcp://127.0.0.1" : "na+sm", listens, &info);
    m->context = m->class ? HG_Context_create(m->class) : NULL;
    must(m->context ? HG_SUCCESS : HG_PROTOCOL_ERROR, "HG_Init");
    HG_Class_set_data(m->class, m, NULL);
    m->echo = HG_Register_name(m->class, "echo", proc_small, proc_small, on_echo);
    m->pull = HG_Register_name(m->class, "pull", proc_bulk, proc_small, on_pull);
    m->end = HG_Register_name(m->class, "end", proc_small, proc_small, on_end);
    data = m->data = pair_memory(t->size, false);
    must(HG_Bulk_create(m->class, 1, &data, &size, access, &m->memory), "HG_Bulk_create");
    return m;
}

static int serve(struct trial *t)
{
    struct mercury *m = make(t, true, HG_BULK_WRITE_ONLY);
    char text[ADDRESS_MAX] = "";
    hg_size_t n = sizeof text;
    hg_addr_t address;

    must(HG_Addr_self(m->class, &address), "HG_Addr_self");
    must(HG_Addr_to_string(m->class, text, &n, address), "HG_Addr_to_string");
    driver_say(t, text, n);
    while (!m->ended)
        progress(m);
    for (int i = 0; i < 100; i++) /* sends the last answer */
        HG_Progress(m->context, 0);
    return 0;
}

/* ---- the caller -------------------------------------------------------------------------- */

static void start(struct trial *t)
{
    struct mercury *m = make(t, false, HG_BULK_READ_ONLY);
    bool large = !strcmp(t->mode, "bandwidth");
    char text[ADDRESS_MAX];
    hg_addr_t address;

    pair_fill(m->data, t->size);
    driver_hear(t, text, sizeof text);
    must(HG_Addr_lookup2(m->class, text, &address), "HG_Addr_lookup2");
    for (size_t i = 0; i < PAIR_INFLIGHT; i++)
        must(HG_Create(m->context, address, large ? m->pull : m->echo, &m->handle[i]), "HG_Create");
    t->state = m;
}

static void send_one(struct mercury *m, hg_handle_t h);

static hg_return_t on_answer(const struct hg_cb_info *info)
{
    hg_handle_t h = info->info.forward.handle;
    struct mercury *m = info->arg;
    unsigned char out[PAIR_SMALL];

    must(info->ret, "call");
    must(HG_Get_output(h, out), "HG_Get_output");
    HG_Free_output(h, out);
    m->got++;
    if (m->to_send) {
        m->to_send--;
        send_one(m, h);
    }
    return HG_SUCCESS;
}

static void send_one(struct mercury *m, hg_handle_t h)
{
    bool large = !strcmp(m->trial->mode, "bandwidth");

    must(HG_Forward(h, on_answer, m, large ? (void *)&m->memory : small), "HG_Forward");
}

static void call(struct trial *t)
{
    struct mercury *m = t->state;
    size_t before = m->got;

    send_one(m, m->handle[0]);
    while (m->got == before)
        progress(m);
}

static void flood(struct trial *t, size_t calls)
{
    struct mercury *m = t->state;
    size_t end = m->got + calls;

    m->to_send = calls - PAIR_INFLIGHT;
    for (size_t i = 0; i < PAIR_INFLIGHT; i++)
        send_one(m, m->handle[i]);
    while (m->got < end)
        progress(m);
}

static void end(struct trial *t)
{
    struct mercury *m = t->state;
    size_t before = m->got;

    must(HG_Reset(m->handle[0], HG_Get_info(m->handle[0])->addr, m->end), "HG_Reset");
    must(HG_Forward(m->handle[0], on_answer, m, small), "HG_Forward");
    while (m->got == before)
        progress(m);
}

#define MERCURY_WAY(name)                                                                          \
    {                                                                                              \
        .peer = "mercury", .via = name, .modes = "latency rate bandwidth",                         \
        .progress = "busy sleep", .serve = serve, .open = start, .call = call, .flood = flood,     \
        .close = end                                                                               \
    }

int main(int argc, char **argv)
{
    const struct way ways[] = { MERCURY_WAY("na+sm"), MERCURY_WAY("ofi+tcp") };

    return driver_main(argc, argv, ways, sizeof ways / sizeof ways[0]);
}
