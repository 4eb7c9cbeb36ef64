/* SPDX-License-Identifier: Apache-2.0 */
/* node.c - a member of torch's group that does what it is told on stdin, and says on stdout what
 * came of it: one line for each command.
 *
 *   join                     ok
 *   infos                    infos NAME-ID ...
 *   present NAME, gone NAME  waits until NAME is a member, or is none: ok
 *   call TO FUNCTION ARG...  value VALUE. An argument is an integer, a float, True, None, t:X (a
 *                            tensor of two floats X), i:N,N (a list), or a text
 *   limit MS                 of later calls and of leaving: ok
 *   leave                    ok
 *
 * A failed command says "error STATUS TEXT". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenrec/config.h>
#include <tenrec/torch.h>

enum { ARGS_MAX = 16, WAIT_MS = 60000 };

static int64_t limit_ms = WAIT_MS;

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
    if (strspn(word, "0123456789.-") == strlen(word))
        return tenrec_value_double(strtod(word, NULL));
    return tenrec_value_text(word);
}

/* The schema of an operator has blanks: it ends with the line, after "|" come the arguments. */
static void node_call(struct tenrec_torch_member *m, char *line)
{
    struct tenrec_value args[ARGS_MAX], items[ARGS_MAX], *ret;
    char *to = strsep(&line, " "), *function = strsep(&line, "|");
    size_t n = 0;
    tenrec_error err;
    tenrec_status st;

    for (char *word; line && *line && n < ARGS_MAX;)
        if (*(word = strsep(&line, " ")))
            args[n++] = argument(word, items);
    st = tenrec_torch_call(m, to, function ? function : "", args, n, limit_ms, &ret, &err);
    if (st != TENREC_OK) {
        say_error(st, &err);
    } else {
        printf("value ");
        print_value(ret);
        printf("\n");
        tenrec_value_drop(ret);
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

static void node_do(struct tenrec_torch_member *m, char *line)
{
    const char *command = strsep(&line, " ");
    tenrec_error err;
    tenrec_status st = TENREC_OK;

    if (strcmp(command, "call") == 0) {
        node_call(m, line);
        return;
    }
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
    struct tenrec_torch_member *m;
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
    tenrec_torch_member_drop(m);
    return 0;
}
