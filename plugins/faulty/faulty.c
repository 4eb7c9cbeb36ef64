/* faulty - wraps any agent, and fails or delays chosen sends.
 *
 * The semantics are those of torch's FaultyTensorPipeAgent: of each distinct
 * message of a type in messages_to_fail the first num_fail_sends sends fail at
 * once and nothing goes on the wire; messages of a type in messages_to_delay
 * go later. Unlike there a delay blocks nobody: a timer of the core sends on.
 *
 * What is not here (start, deliver, address ...) goes through by itself.
 */
#include "counts.h"
#include "rules.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

struct faulty_options {
    struct tenrec_option_list messages_to_fail; /* of names */
    int64_t num_fail_sends;
    struct tenrec_option_map messages_to_delay; /* from names to durations */
};

struct faulty {
    const struct faulty_options *opt;
    rules_mask fail_mask, delay_mask; /* all types that some rule means */
    size_t n_fail, n_delay;
    struct rule *fail, *delay;

    pthread_mutex_t lock; /* guards the two below */
    struct counts counts;
    uint64_t held;         /* messages whose time has not come */
    pthread_cond_t nobody; /* held became 0 */
};

/* A message that waits for its time. */
struct late {
    struct tenrec_agent *self;
    tenrec_peer to;
    struct tenrec_msg *msg;
    struct tenrec_done done;
};

static struct rule *rule_for(struct rule *rule, size_t n, rules_mask bit)
{
    for (size_t i = 0; i < n; i++)
        if (rule[i].mask & bit)
            return &rule[i];
    return NULL;
}

/* Counts a hit; true for the first one. */
static bool rule_hit(struct rule *rule)
{
    return atomic_fetch_add(&rule->hits, 1) == 0;
}

/* True when it was failed: then `msg` is gone and `done` was told. */
static bool fail_send(struct tenrec_agent *self, rules_mask bit, struct tenrec_msg *msg,
                      struct tenrec_done done)
{
    struct faulty *f = self->impl;
    struct rule *rule = rule_for(f->fail, f->n_fail, bit);
    const uint64_t key = counts_key(msg);
    int64_t n;

    pthread_mutex_lock(&f->lock);
    n = counts_next(&f->counts, key, f->opt->num_fail_sends);
    pthread_mutex_unlock(&f->lock);
    if (n == 0)
        return false;
    msg->release(msg);
    if (n < 0) {
        tenrec_done_fail(done, TENREC_ENOMEM, "faulty: no memory to count this %s", rule->name);
        return true;
    }
    if (rule_hit(rule))
        self->host->log(self, TENREC_LOG_INFO, "fails its first %s", rule->name);
    tenrec_done_fail(done, TENREC_EINJECTED, "faulty: told to fail this %s (%lld of %lld)",
                     rule->name, (long long)n, (long long)f->opt->num_fail_sends);
    return true;
}

static void send_late(void *arg)
{
    struct late *l = arg;
    struct faulty *f = l->self->impl;

    l->self->host->send_inner(l->self, l->to, l->msg, l->done);
    pthread_mutex_lock(&f->lock);
    if (--f->held == 0)
        pthread_cond_broadcast(&f->nobody);
    pthread_mutex_unlock(&f->lock);
    free(l);
}

static void delay_send(struct tenrec_agent *self, struct rule *rule, tenrec_peer to,
                       struct tenrec_msg *msg, struct tenrec_done done)
{
    struct faulty *f = self->impl;
    struct late *l = malloc(sizeof *l);
    tenrec_status st = TENREC_ENOMEM;

    if (l) {
        /* The core's thread will send it: that one must not wait for room. */
        msg->flags &= ~(uint32_t)TENREC_MSG_MAY_WAIT;
        *l = (struct late){ self, to, msg, done };
        pthread_mutex_lock(&f->lock);
        f->held++;
        pthread_mutex_unlock(&f->lock);
        if (rule_hit(rule))
            self->host->log(self, TENREC_LOG_INFO, "delays its first %s by %u ms", rule->name,
                            rule->delay_ms);
        st = self->host->after(self, rule->delay_ms, send_late, l);
        if (st == TENREC_OK)
            return;
        pthread_mutex_lock(&f->lock);
        if (--f->held == 0)
            pthread_cond_broadcast(&f->nobody);
        pthread_mutex_unlock(&f->lock);
        free(l);
    }
    msg->release(msg);
    if (st == TENREC_ENOMEM)
        tenrec_done_fail(done, st, "faulty: no memory to delay this %s", rule->name);
    else
        tenrec_done_fail(done, TENREC_ECANCELED, "faulty: shut down before this %s was sent",
                         rule->name);
}

static void faulty_send(struct tenrec_agent *self, tenrec_peer to, struct tenrec_msg *msg,
                        struct tenrec_done done)
{
    struct faulty *f = self->impl;
    const rules_mask bit = rules_bit(msg->type);

    if ((f->fail_mask & bit) && fail_send(self, bit, msg, done))
        return;
    if (f->delay_mask & bit)
        delay_send(self, rule_for(f->delay, f->n_delay, bit), to, msg, done);
    else
        self->host->send_inner(self, to, msg, done);
}

static tenrec_status faulty_drain(struct tenrec_agent *self, uint32_t ms, tenrec_error *err)
{
    struct faulty *f = self->impl;
    struct timespec until;
    uint64_t held;
    int r = 0;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += ms / 1000;
    until.tv_nsec += (long)(ms % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    pthread_mutex_lock(&f->lock);
    while (f->held && r == 0)
        r = pthread_cond_timedwait(&f->nobody, &f->lock, &until);
    held = f->held;
    pthread_mutex_unlock(&f->lock);
    if (!held)
        return TENREC_OK;
    return tenrec_fail(err, TENREC_ETIMEDOUT, "%llu delayed messages are left after %u ms",
                       (unsigned long long)held, ms);
}

static void push(tenrec_sink_fn *sink, void *arg, const char *key, unsigned long long n)
{
    char value[24];

    snprintf(value, sizeof value, "%llu", n);
    sink(arg, key, value);
}

/* "<what>.<rule>" for each rule, and their sum as "<what>". */
static void push_rules(tenrec_sink_fn *sink, void *arg, const char *what, struct rule *rule,
                       size_t n)
{
    unsigned long long all = 0;
    char key[64];

    for (size_t i = 0; i < n; i++) {
        unsigned long long hits = atomic_load(&rule[i].hits);
        all += hits;
        snprintf(key, sizeof key, "%s.%s", what, rule[i].name);
        push(sink, arg, key, hits);
    }
    push(sink, arg, what, all);
}

static void faulty_debug_info(struct tenrec_agent *self, tenrec_sink_fn *sink, void *arg)
{
    struct faulty *f = self->impl;
    uint64_t held;
    unsigned keys;

    pthread_mutex_lock(&f->lock);
    held = f->held;
    keys = counts_size(&f->counts);
    pthread_mutex_unlock(&f->lock);
    push_rules(sink, arg, "injected_failures", f->fail, f->n_fail);
    push_rules(sink, arg, "injected_delays", f->delay, f->n_delay);
    push(sink, arg, "delayed_now", held);
    push(sink, arg, "distinct_messages", keys);
}

static void faulty_destroy(struct tenrec_agent *self)
{
    struct faulty *f = self->impl;

    counts_finish(&f->counts);
    pthread_cond_destroy(&f->nobody);
    pthread_mutex_destroy(&f->lock);
    free(f->fail);
    free(f->delay);
    free(f);
}

static const struct tenrec_agent_ops faulty_ops = {
    .size = sizeof faulty_ops,
    .send = faulty_send,
    .drain = faulty_drain,
    .destroy = faulty_destroy,
    .debug_info = faulty_debug_info,
};

/* The core has checked the names; what it cannot see is checked here. */
tenrec_status tenrec_construct_options(void *opts, tenrec_error *err)
{
    const struct faulty_options *o = opts;

    for (size_t i = 0; i < o->messages_to_delay.n; i++) {
        const struct tenrec_option_pair *a = &o->messages_to_delay.v[i];
        if (a->value.ms > UINT32_MAX)
            return tenrec_fail(err, TENREC_ECONFIG,
                               "messages_to_delay: '%s' is delayed for ever, expected at most %us",
                               a->key, UINT32_MAX / 1000);
        for (size_t k = 0; k < i; k++) {
            const struct tenrec_option_pair *b = &o->messages_to_delay.v[k];
            if (rules_of(a->key) & rules_of(b->key))
                return tenrec_fail(err, TENREC_ECONFIG,
                                   "messages_to_delay: '%s' and '%s' mean the same messages",
                                   b->key, a->key);
        }
    }
    return TENREC_OK;
}

static void warn_of_idle_rules(struct tenrec_agent *self, const struct faulty *f)
{
    const struct {
        const char *option;
        const struct rule *rule;
        size_t n;
    } all[] = { { "messages_to_fail", f->fail, f->n_fail },
                { "messages_to_delay", f->delay, f->n_delay } };

    for (size_t k = 0; k < 2; k++)
        for (size_t i = 0; i < all[k].n; i++) {
            const char *why = rules_never(all[k].rule[i].name);
            if (why)
                self->host->log(self, TENREC_LOG_WARN, "%s: '%s' hits nothing: %s", all[k].option,
                                all[k].rule[i].name, why);
        }
    if (f->n_fail && f->opt->num_fail_sends == 0)
        self->host->log(self, TENREC_LOG_WARN,
                        "messages_to_fail hits nothing: num_fail_sends is 0");
}

tenrec_status tenrec_init_agent(const struct tenrec_init *in, struct tenrec_agent *self,
                                tenrec_error *err)
{
    const struct faulty_options *o = in->options;
    struct faulty *f = calloc(1, sizeof *f);
    pthread_condattr_t attr;

    if (!f)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for the faulty agent");
    f->opt = o;
    f->n_fail = o->messages_to_fail.n;
    f->n_delay = o->messages_to_delay.n;
    f->fail = calloc(f->n_fail + 1, sizeof *f->fail);
    f->delay = calloc(f->n_delay + 1, sizeof *f->delay);
    if (!f->fail || !f->delay) {
        free(f->fail);
        free(f->delay);
        free(f);
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for the faulty agent");
    }
    for (size_t i = 0; i < f->n_fail; i++) {
        f->fail[i].name = o->messages_to_fail.v[i].s;
        f->fail[i].mask = rules_of(f->fail[i].name);
        f->fail_mask |= f->fail[i].mask;
    }
    for (size_t i = 0; i < f->n_delay; i++) {
        f->delay[i].name = o->messages_to_delay.v[i].key;
        f->delay[i].mask = rules_of(f->delay[i].name);
        f->delay[i].delay_ms = (uint32_t)o->messages_to_delay.v[i].value.ms;
        f->delay_mask |= f->delay[i].mask;
    }
    if (o->num_fail_sends == 0)
        f->fail_mask = 0;
    pthread_mutex_init(&f->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&f->nobody, &attr);
    pthread_condattr_destroy(&attr);
    self->ops = &faulty_ops;
    self->impl = f;
    warn_of_idle_rules(self, f);
    return TENREC_OK;
}

#define AT(field) offsetof(struct faulty_options, field)
static const struct tenrec_option options[] = {
    { .key = "messages_to_fail",
      .type = TENREC_OPT_LIST,
      .item = TENREC_OPT_STRING,
      .offset = AT(messages_to_fail),
      .def = "[]",
      .choices = RULES_CHOICES,
      .help = "Message types whose first sends fail; torch's names, or CALL, REMOTE_CALL and "
              "RREF_FETCH_CALL for both kinds of each." },
    { .key = "num_fail_sends",
      .type = TENREC_OPT_INT,
      .offset = AT(num_fail_sends),
      .def = "0",
      .max = INT64_MAX,
      .help = "How many sends of each distinct message fail before it goes through." },
    { .key = "messages_to_delay",
      .type = TENREC_OPT_MAP,
      .item = TENREC_OPT_DURATION,
      .offset = AT(messages_to_delay),
      .flags = TENREC_OPT_PLAIN_SECONDS,
      .def = "{}",
      .choices = RULES_CHOICES,
      .help = "Message types that are sent later, and by how much." },
};

const struct tenrec_plugin tenrec_plugin = {
    TENREC_PLUGIN_HEADER,
    TENREC_PLUGIN_OPTIONS(options, struct faulty_options),
    .flags = TENREC_PLUGIN_WRAPS | TENREC_PLUGIN_UNLOADABLE,
    .name = "faulty",
    .version = "1.0",
    .summary = "Wraps any agent, and fails or delays chosen sends.",
};
