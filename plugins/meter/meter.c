/* SPDX-License-Identifier: Apache-2.0 */
/* meter.c - a backend that wraps any other and counts its messages, their bytes and the times until
 * requests are answered, by type and peer, for debug info.
 *
 * Memory is bounded: types without a name share one row, and a table of fixed size holds the
 * requests that wait for an answer, of which the oldest give way. */
#include <pthread.h>
#include <stdlib.h>
#include <tenrec/plugin.h>

#define N_TIMES 6   /* shorter than 100 us, 1 ms, 10 ms, 100 ms, 1 s, and the rest */
#define N_SETS 1024 /* of awaited answers */
#define SET_SIZE 4

enum direction { OUT, IN, N_DIRECTIONS };

#define X(name, number) ROW_##name,
enum { TENREC_MSG_TYPE_MAP(X) ROW_OTHER, N_ROWS };
#undef X

/* The messages of one type to or from one peer; of requests also their answers. */
struct meter_cell {
    uint64_t messages, bytes;
    uint64_t answers, total_ns, max_ns;
    uint64_t times[N_TIMES];
};

struct meter_peer {
    struct meter_cell cell[N_DIRECTIONS][N_ROWS];
};

/* A request that waits for its answer. Ids are the requester's, so those of callers without a name
 * differ by their routes only. */
struct meter_request {
    uint64_t since_ns; /* 0: free */
    int64_t id;
    struct tenrec_route route;
    tenrec_peer peer;
    enum direction way;
    struct meter_cell *cell;
};

/* Of all types and peers. */
struct meter_sum {
    uint64_t messages[N_DIRECTIONS], bytes[N_DIRECTIONS];
    uint64_t awaited, untimed; /* requests in the table now; requests that gave way */
};

struct meter {
    pthread_mutex_t lock; /* guards all of it */
    struct meter_sum sum;
    struct meter_peer **peer; /* by id + 1; owns; NULL: no message yet */
    size_t n_peers;
    struct meter_request request[N_SETS][SET_SIZE];
};

const struct tenrec_plugin tenrec_plugin = {
    TENREC_PLUGIN_HEADER,
    .flags = TENREC_PLUGIN_WRAPS | TENREC_PLUGIN_UNLOADABLE | TENREC_PLUGIN_SETUID,
    .name = "meter",
    .version = "1.0",
    .summary = "Wraps any agent and counts its messages, bytes and times.",
};

tenrec_status tenrec_construct_options(void *opts, tenrec_error *err)
{
    (void)opts, (void)err; /* none */
    return TENREC_OK;
}

/* ---- counting ------------------------------------------------------------------ */

static unsigned meter_row(int32_t type)
{
    switch (type) {
#define X(name, number)                                                                            \
    case number:                                                                                   \
        return ROW_##name;
        TENREC_MSG_TYPE_MAP(X)
#undef X
    }
    return ROW_OTHER;
}

/* NULL: no id of a member, or no memory. With the lock. */
static struct meter_peer *meter_find_peer(struct meter *m, tenrec_peer id)
{
    const size_t i = (size_t)id + 1;

    if (id < TENREC_ANONYMOUS || id > INT16_MAX)
        return NULL;
    if (i >= m->n_peers) {
        struct meter_peer **bigger = realloc(m->peer, (i + 8) * sizeof *bigger);
        if (!bigger)
            return NULL;
        memset(bigger + m->n_peers, 0, (i + 8 - m->n_peers) * sizeof *bigger);
        m->peer = bigger;
        m->n_peers = i + 8;
    }
    if (!m->peer[i])
        m->peer[i] = calloc(1, sizeof *m->peer[i]);
    return m->peer[i];
}

static struct meter_request *meter_set(struct meter *m, const struct meter_request *r)
{
    uint64_t h = (uint64_t)r->id * 0x9e3779b97f4a7c15u ^ (uint32_t)r->peer ^ r->route.pipe << 20;

    h = (h ^ r->route.generation << 40 ^ (uint64_t)r->way) * 0xd6e8feb86659fd93u;
    return m->request[h >> 32 & (N_SETS - 1)];
}

/* In the place of the oldest request of the set when none is free. With the lock. */
static void meter_await(struct meter *m, const struct meter_request *r)
{
    struct meter_request *set = meter_set(m, r), *at = set;

    for (int i = 1; i < SET_SIZE; i++)
        if (set[i].since_ns < at->since_ns)
            at = &set[i];
    *(at->since_ns ? &m->sum.untimed : &m->sum.awaited) += 1;
    *at = *r;
}

/* The request `r` was answered at since_ns. With the lock. */
static void meter_answer(struct meter *m, const struct meter_request *r)
{
    struct meter_request *set = meter_set(m, r);
    int i = 0, k = 0;

    while (i < SET_SIZE && (!set[i].since_ns || set[i].id != r->id || set[i].peer != r->peer ||
                            set[i].way != r->way || set[i].route.pipe != r->route.pipe ||
                            set[i].route.generation != r->route.generation))
        i++;
    if (i == SET_SIZE)
        return;
    const uint64_t ns = r->since_ns - set[i].since_ns;
    struct meter_cell *c = set[i].cell;
    for (uint64_t limit_ns = 100000; k < N_TIMES - 1 && ns >= limit_ns; limit_ns *= 10)
        k++;
    c->times[k]++;
    c->answers++;
    c->total_ns += ns;
    if (ns > c->max_ns)
        c->max_ns = ns;
    set[i].since_ns = 0;
    m->sum.awaited--;
}

static void meter_message(struct meter *m, enum direction way, tenrec_peer peer,
                          const struct tenrec_msg *msg)
{
    const bool answers = msg->type & TENREC_MSG_RESPONSE_BIT;
    /* Of the request that `msg` is or answers, which went the other way. */
    struct meter_request r = { 0,   msg->id, msg->route, peer, answers == (way == OUT) ? IN : OUT,
                               NULL };
    const uint64_t bytes = tenrec_msg_bytes(msg);
    struct meter_peer *p;

    pthread_mutex_lock(&m->lock);
    m->sum.messages[way]++;
    m->sum.bytes[way] += bytes;
    p = meter_find_peer(m, peer);
    if (p) {
        r.cell = &p->cell[way][meter_row(msg->type)];
        r.cell->messages++;
        r.cell->bytes += bytes;
    }
    r.since_ns = tenrec_now_ns(); /* in the order of the table's changes */
    if (r.way == OUT)
        r.route = (struct tenrec_route){ 0, 0 };
    if (answers)
        meter_answer(m, &r);
    else if (p && (msg->type & TENREC_MSG_REQUEST_BIT) && msg->type != TENREC_MSG_ONE_WAY_CALL &&
             msg->type != TENREC_MSG_CANCEL)
        meter_await(m, &r);
    pthread_mutex_unlock(&m->lock);
}

static void meter_send(struct tenrec_agent *self, tenrec_peer to, struct tenrec_msg *msg,
                       struct tenrec_done done)
{
    meter_message(self->impl, OUT, to, msg);
    self->host->send_inner(self, to, msg, done);
}

static void meter_deliver(struct tenrec_agent *self, tenrec_peer from, struct tenrec_msg *msg)
{
    meter_message(self->impl, IN, from, msg);
    self->host->deliver_outer(self, from, msg);
}

/* ---- debug info ---------------------------------------------------------------- */

TENREC_PRINTF(4, 5)
static void meter_push(tenrec_sink_fn *sink, void *arg, uint64_t n, const char *fmt, ...)
{
    char key[128];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(key, sizeof key, fmt, ap);
    va_end(ap);
    tenrec_sink_number(sink, arg, key, n);
}

static void meter_push_peer(tenrec_sink_fn *sink, void *arg, tenrec_peer id,
                            const struct meter_peer *p)
{
#define X(name, number) #name,
    static const char *const rows[] = { TENREC_MSG_TYPE_MAP(X) "OTHER" };
#undef X
    char at[96], key[128], times[N_TIMES * 24];

    for (int row = 0; row < N_DIRECTIONS * N_ROWS; row++) {
        const struct meter_cell *c = &p->cell[row / N_ROWS][row % N_ROWS];
        if (!c->messages)
            continue;
        snprintf(at, sizeof at, "peer.%d.%s.%s", (int)id, row / N_ROWS == OUT ? "out" : "in",
                 rows[row % N_ROWS]);
        meter_push(sink, arg, c->messages, "%s.messages", at);
        meter_push(sink, arg, c->bytes, "%s.bytes", at);
        if (!c->answers)
            continue;
        meter_push(sink, arg, c->answers, "%s.answers", at);
        meter_push(sink, arg, c->total_ns / 1000, "%s.total_us", at);
        meter_push(sink, arg, c->max_ns / 1000, "%s.max_us", at);
        for (int i = 0, n = 0; i < N_TIMES; i++)
            n += snprintf(times + n, sizeof times - (size_t)n, "%s%llu", i ? " " : "",
                          (unsigned long long)c->times[i]);
        snprintf(key, sizeof key, "%s.times", at);
        sink(arg, key, times);
    }
}

/* A copy of one peer at a time: the sink is called without the lock. */
static void meter_debug_info(struct tenrec_agent *self, tenrec_sink_fn *sink, void *arg)
{
    struct meter *m = self->impl;
    static const struct meter_peer none;
    struct meter_peer copy;
    struct meter_sum sum;
    size_t n;

    pthread_mutex_lock(&m->lock);
    sum = m->sum;
    n = m->n_peers;
    pthread_mutex_unlock(&m->lock);
    for (int way = OUT; way < N_DIRECTIONS; way++) {
        meter_push(sink, arg, sum.messages[way], "%s.messages", way == OUT ? "out" : "in");
        meter_push(sink, arg, sum.bytes[way], "%s.bytes", way == OUT ? "out" : "in");
    }
    meter_push(sink, arg, sum.awaited, "awaited");
    meter_push(sink, arg, sum.untimed, "untimed");
    for (size_t i = 0; i < n; i++) {
        pthread_mutex_lock(&m->lock);
        copy = m->peer[i] ? *m->peer[i] : none;
        pthread_mutex_unlock(&m->lock);
        meter_push_peer(sink, arg, (tenrec_peer)i - 1, &copy);
    }
}

/* ---- life ---------------------------------------------------------------------- */

static void meter_destroy(struct tenrec_agent *self)
{
    struct meter *m = self->impl;

    for (size_t i = 0; i < m->n_peers; i++)
        free(m->peer[i]);
    free(m->peer);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

static const struct tenrec_agent_ops meter_ops = {
    .size = sizeof meter_ops,
    .send = meter_send,
    .deliver = meter_deliver,
    .destroy = meter_destroy,
    .debug_info = meter_debug_info,
};

tenrec_status tenrec_init_agent(const struct tenrec_init *in, struct tenrec_agent *self,
                                tenrec_error *err)
{
    struct meter *m = calloc(1, sizeof *m);

    (void)in;
    if (!m)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for the meter agent");
    pthread_mutex_init(&m->lock, NULL);
    self->impl = m;
    self->ops = &meter_ops;
    return TENREC_OK;
}
