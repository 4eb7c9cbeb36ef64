/* SPDX-License-Identifier: Apache-2.0 */
/* embedding.c - a table of embeddings in shards, and trainers of a graph network:
 *
 *     tenrec run -n 5 -- embedding
 *
 * Workers 0 to 2 hold a third of the rows each. A trainer gathers the rows of a batch from all of
 * them at once, and scatters the gradients alike. At the end they compare with one process. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <tenrec/profiler.h>
#include <tenrec/tenrec.h>

enum { NODES = 1200, CLASSES = 4, FANOUT = 5, DIM = 16, BATCH = 64, STEPS = 60 };
enum { SERVERS = 3, WORKERS_MAX = 16, WAIT_MS = 20000, RUN_MS = 60000 };

static const float rate = 0.5f, rounding = 1e-5f; /* gradients are added in any order */

/* ---- the graph: links lead from a node to others of its class ------------------------------- */

/* A number for each input, the same on each machine. */
static uint32_t scramble(int64_t i)
{
    return (uint32_t)(((uint64_t)i * 0x9e3779b97f4a7c15u ^ 0x1ce4e5b9) * 0xbf58476d1ce4e5b9u >> 33);
}

static void row_start(int64_t id, float row[DIM])
{
    for (int d = 0; d < DIM; d++)
        row[d] = (float)scramble(id * DIM + d) / (1u << 31) - 0.5f;
}

/* Neighbour k of a node; -1: the node itself. */
static int neighbour(int node, int k)
{
    const uint32_t other = scramble(node * FANOUT + k) % (NODES / CLASSES);

    return k < 0 ? node : (int)other * CLASSES + node % CLASSES;
}

/* The rows that some nodes need, each once, and those of one owner side by side: id[first[s]] to
 * id[first[s + 1]] are of server s. */
struct batch {
    int target[BATCH]; /* the nodes */
    int64_t id[NODES], first[SERVERS + 1];
    int index[NODES]; /* of a node in id */
    float rows[NODES * DIM], gradient[NODES * DIM];
};

/* Each trainer has its own nodes for each step, the same in every run. */
static void batch_pick(struct batch *b, int trainer, int step)
{
    bool needed[NODES] = { false };
    int n = 0;

    for (int i = 0; i < BATCH; i++) {
        b->target[i] = (int)(scramble((trainer * STEPS + step) * BATCH + i) % NODES);
        for (int k = -1; k < FANOUT; k++)
            needed[neighbour(b->target[i], k)] = true;
    }
    for (int s = 0; s < SERVERS; s++) {
        b->first[s] = n;
        for (int id = s; id < NODES; id += SERVERS)
            if (needed[id])
                b->id[b->index[id] = n++] = id;
    }
    b->first[SERVERS] = n;
}

/* GraphSAGE's mean: half the row of a node, half the mean row of its neighbours. The loss is half
 * the squared distance to the pattern of the class. */
static float batch_gradient(struct batch *b)
{
    float loss = 0;

    memset(b->gradient, 0, sizeof b->gradient);
    for (int i = 0; i < BATCH * DIM; i++) {
        const int node = b->target[i / DIM], d = i % DIM;
        float wrong = (d >> node % CLASSES) & 1 ? -1 : 1;

        for (int k = -1; k < FANOUT; k++)
            wrong += b->rows[b->index[neighbour(node, k)] * DIM + d] / 2 / (k < 0 ? 1 : FANOUT);
        for (int k = -1; k < FANOUT; k++)
            b->gradient[b->index[neighbour(node, k)] * DIM + d] += wrong / 2 / (k < 0 ? 1 : FANOUT);
        loss += wrong * wrong / 2 / BATCH;
    }
    return loss;
}

/* ---- a server ------------------------------------------------------------------------------- */

struct shard {
    pthread_mutex_t lock; /* guards the elements of row */
    int rank;
    float row[NODES / SERVERS][DIM]; /* of the ids with id % SERVERS == rank, at id / SERVERS */
};

/* Copies the ids of a caller, and checks them before they become addresses: the tensor may be in
 * memory that the caller shares, and can still change. */
static tenrec_status shard_ids(const struct shard *s, const struct tenrec_tensor *ids,
                               int64_t id[NODES], int64_t *ret_n, tenrec_error *err)
{
    *ret_n = (int64_t)tenrec_tensor_count(ids);
    if (*ret_n > NODES)
        return tenrec_fail(err, TENREC_EINVAL, "expected up to %d ids", NODES);
    memcpy(id, tenrec_tensor_data(ids), (size_t)*ret_n * sizeof *id);
    for (int64_t i = 0; i < *ret_n; i++)
        if (id[i] < 0 || id[i] >= NODES || id[i] % SERVERS != s->rank)
            return tenrec_fail(err, TENREC_EINVAL, "server %d has no row %lld", s->rank,
                               (long long)id[i]);
    return TENREC_OK;
}

/* gather(ids): returns their rows. */
static tenrec_status gather(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    struct tenrec_tensor *ids, *rows;
    struct shard *s = arg;
    struct tenrec_value v;
    int64_t id[NODES], n;
    tenrec_status status;

    if (tenrec_call_get_args(call, err, "Tl[*]", &ids) || shard_ids(s, ids, id, &n, err) ||
        tenrec_tensor_new(TENREC_FLOAT32, 2, (int64_t[]){ n, DIM }, &rows, err))
        return err->code;
    pthread_mutex_lock(&s->lock);
    for (int64_t i = 0; i < n; i++)
        memcpy((float *)tenrec_tensor_data(rows) + i * DIM, s->row[id[i] / SERVERS],
               sizeof s->row[0]);
    pthread_mutex_unlock(&s->lock);
    v = tenrec_value_tensor(rows);
    status = tenrec_call_return(call, &v, err);
    tenrec_tensor_drop(rows);
    return status;
}

/* scatter(ids, gradient): takes a step of gradient descent in these rows. */
static tenrec_status scatter(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    struct tenrec_tensor *ids, *gradient;
    struct shard *s = arg;
    int64_t id[NODES], n;

    if (tenrec_call_get_args(call, err, "Tl[*]Tf", &ids, &gradient) ||
        shard_ids(s, ids, id, &n, err))
        return err->code;
    if (tenrec_tensor_count(gradient) != (uint64_t)n * DIM)
        return tenrec_fail(err, TENREC_EINVAL, "expected %d gradients for each id", DIM);
    pthread_mutex_lock(&s->lock);
    for (int64_t i = 0; i < n * DIM; i++)
        s->row[id[i / DIM] / SERVERS][i % DIM] -= rate * ((float *)tenrec_tensor_data(gradient))[i];
    pthread_mutex_unlock(&s->lock);
    return TENREC_OK;
}

/* ---- a trainer ------------------------------------------------------------------------------ */

/* Takes the steps of all trainers alone, and compares the rows of the shard. */
static tenrec_status compare(const struct shard *s, int trainers, tenrec_error *err)
{
    static struct batch b[WORKERS_MAX];
    static float table[NODES][DIM];
    float off = 0;

    for (int i = 0; i < NODES; i++)
        row_start(i, table[i]);
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < trainers; i++) {
            batch_pick(&b[i], i, step);
            for (int64_t k = 0; k < b[i].first[SERVERS]; k++)
                memcpy(b[i].rows + k * DIM, table[b[i].id[k]], sizeof table[0]);
            batch_gradient(&b[i]);
        }
        for (int i = 0; i < trainers; i++)
            for (int k = 0; k < b[i].first[SERVERS] * DIM; k++)
                table[b[i].id[k / DIM]][k % DIM] -= rate * b[i].gradient[k];
    }
    for (int i = s->rank; i < NODES; i += SERVERS)
        for (int d = 0; d < DIM; d++)
            off = fmaxf(off, fabsf(s->row[i / SERVERS][d] - table[i][d]));
    printf("server %d: rows are %.1g from those of one process\n", s->rank, (double)off);
    return off <= rounding ? TENREC_OK : tenrec_fail(err, TENREC_EREMOTE, "the rows differ");
}

/* Calls gather or scatter of all owners at once: a batch takes as long as its slowest owner, not
 * as all of them. Tensors are views of the arrays, and gathered rows arrive there (`into`). */
static tenrec_status call_owners(struct tenrec_worker *w, const char *const *name, struct batch *b,
                                 bool scatters, tenrec_error *err)
{
    struct tenrec_call_options options = { .size = sizeof options, .timeout_ms = WAIT_MS };
    struct tenrec_future *answer[SERVERS];
    tenrec_status status = TENREC_OK;
    size_t n = 0;

    for (; n < SERVERS && !status; n += !status) {
        const int64_t at = b->first[n], rows = b->first[n + 1] - at;
        struct tenrec_tensor_desc d = { .flags = TENREC_TENSOR_ROW_MAJOR, .shape = { rows, DIM } };
        struct tenrec_value v[2] = { tenrec_value_tensor(NULL), tenrec_value_tensor(NULL) };

        d.data = b->id + at;
        d.bytes = (uint64_t)rows * sizeof(int64_t);
        d.dtype = TENREC_INT64;
        d.ndim = 1;
        status = tenrec_tensor_from_desc(&d, NULL, NULL, &v[0].u.tensor, err);
        d.data = (scatters ? b->gradient : b->rows) + at * DIM;
        d.bytes = (uint64_t)rows * DIM * sizeof(float);
        d.dtype = TENREC_FLOAT32;
        d.ndim = 2;
        if (!status)
            status = tenrec_tensor_from_desc(&d, NULL, NULL, &v[1].u.tensor, err);
        options.into = scatters ? NULL : v[1].u.tensor;
        if (!status)
            status = tenrec_rpc_async(w, name[n], scatters ? "scatter" : "gather", v,
                                      scatters ? 2 : 1, &options, &answer[n], err);
        tenrec_tensor_drop(v[0].u.tensor); /* the call has shares of its own */
        tenrec_tensor_drop(v[1].u.tensor);
    }
    if (!status)
        status = tenrec_future_wait_all(answer, n, WAIT_MS, err);
    while (n > 0)
        tenrec_future_drop(answer[--n]);
    return status;
}

/* All trainers gather, then all scatter. Without the barriers, and with one-way scatters, training
 * is asynchronous: faster, but equal to no single process. */
static tenrec_status train(struct tenrec_worker *w, const char *const *name, size_t n, int rank,
                           tenrec_error *err)
{
    static struct batch b; /* messages borrow its memory for as long as the worker lives */
    float loss;

    for (int step = 0; step < STEPS; step++) {
        batch_pick(&b, rank - SERVERS, step);
        if (call_owners(w, name, &b, false, err))
            return err->code;
        struct tenrec_profiler_mark *const m = tenrec_profiler_mark_begin(w, "gradient");
        loss = batch_gradient(&b);
        tenrec_profiler_mark_end(m); /* seen in a trace */
        if (tenrec_worker_barrier(w, name + SERVERS, n - SERVERS, WAIT_MS, err) ||
            call_owners(w, name, &b, true, err) ||
            tenrec_worker_barrier(w, name + SERVERS, n - SERVERS, WAIT_MS, err))
            return err->code;
        if (step % 10 == 9)
            printf("trainer %d: step %d, loss %.4f\n", rank, step + 1, (double)loss);
    }
    return TENREC_OK;
}

static tenrec_status work(struct tenrec_worker *w, struct shard *s, tenrec_error *err)
{
    struct tenrec_worker_info all[WORKERS_MAX];
    const char *name[WORKERS_MAX];
    size_t n;

    if (tenrec_worker_register_function(w, "gather", gather, s, TENREC_POOL, err) ||
        tenrec_worker_register_function(w, "scatter", scatter, s, TENREC_POOL, err) ||
        tenrec_init_rpc(w, err) || tenrec_worker_get_infos(w, all, WORKERS_MAX, &n, err))
        return err->code;
    if (n <= SERVERS || n > WORKERS_MAX)
        return tenrec_fail(err, TENREC_EINVAL, "%zu workers, expected 4 to %d", n, WORKERS_MAX);
    s->rank = tenrec_worker_rank(w);
    for (size_t i = 0; i < n; i++)
        name[i] = all[i].name;
    for (int i = 0; i < NODES / SERVERS; i++)
        row_start(i * SERVERS + s->rank, s->row[i]);
    /* No trainer calls before the rows are there. A server then has nothing to do but to wait until
     * the trainers have no more calls: a graceful shutdown. */
    if (tenrec_worker_barrier(w, NULL, 0, WAIT_MS, err) ||
        (s->rank >= SERVERS && train(w, name, n, s->rank, err)) ||
        tenrec_shutdown(w, TENREC_GRACEFUL, RUN_MS, err))
        return err->code;
    return s->rank < SERVERS ? compare(s, (int)n - SERVERS, err) : TENREC_OK;
}

int main(void)
{
    static struct shard s = { .lock = PTHREAD_MUTEX_INITIALIZER };
    struct tenrec_worker *w = NULL;
    tenrec_error err;
    const bool failed = tenrec_worker_new(NULL, &w, &err) || work(w, &s, &err);

    if (failed)
        tenrec_error_print(&err, "embedding");
    tenrec_worker_drop(w);
    return failed;
}
