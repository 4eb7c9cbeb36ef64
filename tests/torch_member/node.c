/* SPDX-License-Identifier: Apache-2.0 */
/* node.c - a member of torch's group that executes the orders of stdin, and reports on stdout what
 * came of it: one line for each command.
 *
 *   join                     ok
 *   infos                    infos NAME-ID ...
 *   present NAME, gone NAME  waits until NAME is a member, or is none: ok
 *   call TO FUNCTION|ARG...  value VALUE. An argument is an integer, a float, True, None, t:X (a
 *                            tensor of two floats X), i:N,N (a list), r:N (a reference), or a text
 *   remote TO FUNCTION|ARG...
 *                            makes reference 0, then 1, and so on: ok
 *   new ARG                  likewise, to a value of this process: ok
 *   here N                   the value of reference N: value VALUE
 *   drop N                   ok
 *   freed N                  waits until N counters were freed: ok
 *   limit MS                 of later calls and of leaving: ok
 *   leave                    ok
 *
 * A failed command says "error STATUS TEXT". */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenrec/config.h>
#include <tenrec/torch.h>

enum { ARGS_MAX = 16, REFS_MAX = 16, WAIT_MS = 60000 };

static int64_t limit_ms = WAIT_MS;
static struct tenrec_torch_member *member;
static struct tenrec_rref *ref[REFS_MAX];
static size_t n_refs;

/* ---- values as text ---------------------------------------------------------------------- */

static void print_tensor(const struct tenrec_tensor *t)
{
    const struct tenrec_tensor_desc *d = tenrec_tensor_desc(t);
    const uint64_t n = d->bytes / sizeof(float);

    printf("tensor(%llu:", (unsigned long long)n);
    for (uint64_t i = 0; i < n && i < 4; i++)
        printf(" %g", (double)((const float *)d->data)[i]);
    printf(")");
}

static void print_value(const struct tenrec_value *v)
{
    switch (v->type) {
    case TENREC_VALUE_NIL:
        printf("None");
        return;
    case TENREC_VALUE_BOOL:
        printf(v->u.boolean ? "True" : "False");
        return;
    case TENREC_VALUE_INT:
        printf("%lld", (long long)v->u.integer);
        return;
    case TENREC_VALUE_DOUBLE:
        printf("%g", v->u.number);
        return;
    case TENREC_VALUE_TEXT:
    case TENREC_VALUE_BYTES:
        printf("'%.*s'", (int)v->n, v->u.text);
        return;
    case TENREC_VALUE_TENSOR:
        print_tensor(v->u.tensor);
        return;
    case TENREC_VALUE_RREF:
        printf("ref of '%s'", tenrec_rref_owner_name(v->u.rref));
        return;
    case TENREC_VALUE_ARRAY:
        printf("[");
        for (uint64_t i = 0; i < v->n; i++) {
            printf(i ? ", " : "");
            print_value(&v->u.array[i]);
        }
        printf("]");
        return;
    case TENREC_VALUE_MAP:
        printf("{");
        for (uint64_t i = 0; i < v->n; i++) {
            printf("%s'%s': ", i ? ", " : "", v->u.map[i].key);
            print_value(&v->u.map[i].value);
        }
        printf("}");
        return;
    default:
        printf("?");
    }
}

/* ---- functions for torch ------------------------------------------------------------------ */

static tenrec_status node_echo(struct tenrec_torch_request *r, void *arg, tenrec_error *err)
{
    struct tenrec_value all = tenrec_value_of(TENREC_VALUE_ARRAY, 0);
    size_t n;

    (void)arg;
    all.u.array = tenrec_torch_request_args(r, &n);
    all.n = n;
    return tenrec_torch_request_return(r, n == 1 ? &all.u.array[0] : &all, err);
}

static tenrec_status node_fail(struct tenrec_torch_request *r, void *arg, tenrec_error *err)
{
    (void)r, (void)arg;
    return tenrec_fail(err, TENREC_EINVAL, "this function always fails");
}

/* a + alpha * b, of float tensors of the same shape */
static tenrec_status node_add(struct tenrec_torch_request *r, void *arg, tenrec_error *err)
{
    struct tenrec_tensor *a, *b, *sum;
    double alpha = 1;
    size_t n;
    const struct tenrec_value *args = tenrec_torch_request_args(r, &n);
    tenrec_status st = tenrec_value_unpack(args, n, err, "tt|d", &a, &b, &alpha);
    const struct tenrec_tensor_desc *d;
    struct tenrec_value v;

    (void)arg;
    if (st != TENREC_OK)
        return st;
    d = tenrec_tensor_desc(a);
    st = tenrec_tensor_new(d->dtype, d->ndim, d->shape, &sum, err);
    if (st != TENREC_OK)
        return st;
    for (uint64_t i = 0; i < d->bytes / sizeof(float); i++)
        ((float *)tenrec_tensor_desc(sum)->data)[i] =
            ((const float *)d->data)[i] +
            (float)alpha * ((const float *)tenrec_tensor_desc(b)->data)[i];
    v = tenrec_value_tensor(sum);
    st = tenrec_torch_request_return(r, &v, err);
    tenrec_tensor_drop(sum);
    return st;
}

/* The value that the argument refers to. */
static tenrec_status node_fetch(struct tenrec_torch_request *r, void *arg, tenrec_error *err)
{
    size_t n;
    const struct tenrec_value *args = tenrec_torch_request_args(r, &n);
    struct tenrec_value *v;
    tenrec_status st;

    (void)arg;
    if (n != 1 || args->type != TENREC_VALUE_RREF)
        return tenrec_fail(err, TENREC_EINVAL, "expected a reference");
    st = tenrec_torch_rref_to_here(member, args->u.rref, WAIT_MS, &v, err);
    if (st != TENREC_OK)
        return st;
    st = tenrec_torch_request_return(r, v, err);
    tenrec_value_drop(v);
    return st;
}

/* A class: Counter(start) with the method add(n), which returns the sum. */
struct counter {
    pthread_mutex_t lock;
    int64_t sum;
};

static pthread_mutex_t freed_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t freed_changed = PTHREAD_COND_INITIALIZER;
static long n_freed;

static void counter_free(void *data, void *arg)
{
    (void)arg;
    free(data);
    pthread_mutex_lock(&freed_lock);
    n_freed++;
    pthread_cond_signal(&freed_changed);
    pthread_mutex_unlock(&freed_lock);
}

static const struct tenrec_object_type counter_type = { .size = sizeof counter_type,
                                                        .name = "counter",
                                                        .free_fn = counter_free };

static tenrec_status counter_new(struct tenrec_torch_request *r, void *arg, tenrec_error *err)
{
    size_t n;
    const struct tenrec_value *args = tenrec_torch_request_args(r, &n);
    struct counter *c = calloc(1, sizeof *c);
    struct tenrec_object *o;
    struct tenrec_value v;
    tenrec_status st;

    (void)arg;
    if (!c)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a counter");
    pthread_mutex_init(&c->lock, NULL);
    st = tenrec_value_unpack(args, n, err, "i", &c->sum);
    if (st == TENREC_OK)
        st = tenrec_object_new(&counter_type, c, &o, err);
    if (st != TENREC_OK) {
        free(c);
        return st;
    }
    v = tenrec_value_object(o);
    st = tenrec_torch_request_return(r, &v, err);
    tenrec_object_drop(o);
    return st;
}

static tenrec_status counter_add(struct tenrec_torch_request *r, void *arg, tenrec_error *err)
{
    size_t n;
    const struct tenrec_value *args = tenrec_torch_request_args(r, &n);
    struct tenrec_value *self, sum = tenrec_value_nil();
    void *data = NULL;
    tenrec_status st;

    (void)arg;
    if (n != 2 || args[1].type != TENREC_VALUE_INT)
        return tenrec_fail(err, TENREC_EINVAL, "expected an integer");
    st = tenrec_torch_rref_to_here(member, args[0].u.rref, WAIT_MS, &self, err);
    if (st != TENREC_OK)
        return st;
    st = tenrec_object_get(self, &counter_type, &data, err);
    if (st == TENREC_OK) {
        struct counter *c = data;
        pthread_mutex_lock(&c->lock);
        c->sum += args[1].u.integer;
        sum = tenrec_value_int(c->sum);
        pthread_mutex_unlock(&c->lock);
        st = tenrec_torch_request_return(r, &sum, err);
    }
    tenrec_value_drop(self);
    return st;
}

static void wait_freed(long n)
{
    pthread_mutex_lock(&freed_lock);
    while (n_freed < n)
        pthread_cond_wait(&freed_changed, &freed_lock);
    pthread_mutex_unlock(&freed_lock);
}

/* ---- commands ------------------------------------------------------------------------------ */

static void say_error(tenrec_status st, const tenrec_error *err)
{
    char line[sizeof err->text];

    tenrec_text_escape(line, sizeof line, err->text, "");
    printf("error %s %s\n", tenrec_status_name(st), line);
}

static struct tenrec_value argument(char *word, struct tenrec_value *items)
{
    const int64_t two = 2;
    struct tenrec_tensor *t;
    tenrec_error err;
    char *end;
    const long long number = strtoll(word, &end, 10);
    size_t n = 0;

    if (*word && !*end)
        return tenrec_value_int(number);
    if (strcmp(word, "True") == 0)
        return tenrec_value_bool(true);
    if (strcmp(word, "None") == 0)
        return tenrec_value_nil();
    if (strncmp(word, "t:", 2) == 0 &&
        tenrec_tensor_new(TENREC_FLOAT32, 1, &two, &t, &err) == TENREC_OK) {
        float *data = tenrec_tensor_desc(t)->data;
        data[0] = data[1] = strtof(word + 2, NULL);
        return tenrec_value_tensor(t);
    }
    if (strncmp(word, "i:", 2) == 0) {
        for (char *at = word + 1; *at && n < ARGS_MAX; n++)
            items[n] = tenrec_value_int(strtoll(at + 1, &at, 10));
        return tenrec_value_array(items, n);
    }
    if (strncmp(word, "r:", 2) == 0 && strtoul(word + 2, NULL, 10) < n_refs)
        return tenrec_value_rref(ref[strtoul(word + 2, NULL, 10)]);
    if (strspn(word, "0123456789.-") == strlen(word))
        return tenrec_value_double(strtod(word, NULL));
    return tenrec_value_text(word);
}

static void say_value(tenrec_status st, struct tenrec_value *v, const tenrec_error *err)
{
    if (st != TENREC_OK) {
        say_error(st, err);
        return;
    }
    printf("value ");
    print_value(v);
    printf("\n");
    tenrec_value_drop(v);
}

/* The schema of an operator has blanks: it ends with the line, after "|" come the arguments. */
static void node_call(struct tenrec_torch_member *m, char *line, bool remote)
{
    struct tenrec_value args[ARGS_MAX], items[ARGS_MAX], *ret = NULL;
    char *to = strsep(&line, " "), *function = strsep(&line, "|");
    size_t n = 0;
    tenrec_error err;
    tenrec_status st;

    for (char *word; line && *line && n < ARGS_MAX;)
        if (*(word = strsep(&line, " ")))
            args[n++] = argument(word, items);
    if (!function)
        function = (char[]){ "" };
    if (!remote) {
        st = tenrec_torch_call(m, to, function, args, n, limit_ms, &ret, &err);
        say_value(st, ret, &err);
    } else {
        st = n_refs == REFS_MAX
                 ? TENREC_ENOMEM
                 : tenrec_torch_remote(m, to, function, args, n, limit_ms, &ref[n_refs], &err);
        n_refs += st == TENREC_OK;
        if (st != TENREC_OK)
            say_error(st, &err);
        else
            printf("ok\n");
    }
    for (size_t i = 0; i < n; i++)
        if (args[i].type == TENREC_VALUE_TENSOR)
            tenrec_tensor_drop(args[i].u.tensor);
}

static void node_infos(struct tenrec_torch_member *m)
{
    struct tenrec_worker_info info[8];
    size_t n;
    tenrec_error err;
    const tenrec_status st = tenrec_torch_member_get_infos(m, info, 8, &n, &err);

    if (st != TENREC_OK) {
        say_error(st, &err);
        return;
    }
    printf("infos");
    for (size_t i = 0; i < n && i < 8; i++)
        printf(" %s-%d", info[i].name, (int)info[i].id);
    printf("\n");
}

/* Returns false for another command. */
static bool node_do_ref(struct tenrec_torch_member *m, const char *command, char *line)
{
    const size_t at = line ? strtoul(line, NULL, 10) : 0;
    struct tenrec_value items[ARGS_MAX], *v = NULL;
    tenrec_error err;
    tenrec_status st = TENREC_OK;

    if (strcmp(command, "here") == 0 && at < n_refs) {
        st = tenrec_torch_rref_to_here(m, ref[at], limit_ms, &v, &err);
        say_value(st, v, &err);
        return true;
    }
    if (strcmp(command, "new") == 0 && n_refs < REFS_MAX) {
        const struct tenrec_value value = argument(line, items);
        st = tenrec_torch_rref_new(m, &value, &ref[n_refs], &err);
        n_refs += st == TENREC_OK;
    } else if (strcmp(command, "drop") == 0 && at < n_refs) {
        tenrec_rref_drop(ref[at]);
        ref[at] = NULL;
    } else if (strcmp(command, "freed") == 0) {
        wait_freed((long)at);
    } else {
        return false;
    }
    if (st != TENREC_OK)
        say_error(st, &err);
    else
        printf("ok\n");
    return true;
}

static void node_do(struct tenrec_torch_member *m, char *line)
{
    const char *command = strsep(&line, " ");
    tenrec_error err;
    tenrec_status st = TENREC_OK;

    if (strcmp(command, "call") == 0 || strcmp(command, "remote") == 0) {
        node_call(m, line, *command == 'r');
        return;
    }
    if (node_do_ref(m, command, line))
        return;
    if (strcmp(command, "infos") == 0) {
        node_infos(m);
        return;
    }
    if (strcmp(command, "join") == 0)
        st = tenrec_torch_member_join(m, &err);
    else if (strcmp(command, "leave") == 0)
        st = tenrec_torch_member_leave(m, limit_ms, &err);
    else if (strcmp(command, "limit") == 0)
        limit_ms = strtoll(line, NULL, 10);
    else
        st = tenrec_torch_member_wait(m, line, strcmp(command, "present") == 0, WAIT_MS, &err);
    if (st != TENREC_OK)
        say_error(st, &err);
    else
        printf("ok\n");
}

int main(int argc, char **argv)
{
    struct tenrec_config *config;
    struct tenrec_torch_member *m = NULL;
    char line[4096];
    tenrec_error err;
    tenrec_status st = tenrec_config_load(argc > 1 ? argv[1] : NULL, &config, &err);

    setvbuf(stdout, NULL, _IOLBF, 0);
    if (st == TENREC_OK) {
        st = tenrec_torch_member_new(config, &m, &err);
        tenrec_config_drop(config);
    }
    if (st != TENREC_OK) {
        say_error(st, &err);
        return 1;
    }
    member = m;
    tenrec_torch_member_register_function(m, "__main__.fetch", node_fetch, NULL, &err);
    tenrec_torch_member_register_function(m, "__main__.Counter", counter_new, NULL, &err);
    tenrec_torch_member_register_function(m, "__main__.Counter.add", counter_add, NULL, &err);
    tenrec_torch_member_register_function(m, "operator.add", node_add, NULL, &err);
    tenrec_torch_member_register_function(m, "_operator.add", node_add, NULL, &err);
    tenrec_torch_member_register_function(m, "_operator.pos", node_echo, NULL, &err);
    tenrec_torch_member_register_function(m, "_operator.neg", node_fail, NULL, &err);
    tenrec_torch_member_register_function(m, "aten::add.Tensor", node_add, NULL, &err);
    tenrec_torch_member_register_function(m, "__torch__.scripted", node_echo, NULL, &err);
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = '\0';
        node_do(m, line);
    }
    for (size_t i = 0; i < n_refs; i++)
        tenrec_rref_drop(ref[i]);
    tenrec_torch_member_drop(m);
    return 0;
}
