/* SPDX-License-Identifier: Apache-2.0 */
/* parameter_server.c TRAINERS - a parameter server in C for trainers that are unmodified programs
 * of torch.distributed.rpc: they call ps.pull, ps.push and ps.done, names that ps.py gives them.
 * Ends when each trainer has called ps.done. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenrec/torch.h>

enum { WEIGHTS = 4, LEAVE_MS = 60000 };
static const float rate = 0.05f;

struct server {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    float weight[WEIGHTS];
    long pushes, done, trainers;
};

/* pull() -> the weights */
static tenrec_status pull(struct tenrec_torch_request *r, void *arg, tenrec_error *err)
{
    const int64_t shape = WEIGHTS;
    struct server *s = arg;
    struct tenrec_tensor *t;
    struct tenrec_value v;
    tenrec_status status;

    if (tenrec_tensor_new(TENREC_FLOAT32, 1, &shape, &t, err))
        return err->code;
    pthread_mutex_lock(&s->lock);
    memcpy(tenrec_tensor_data(t), s->weight, sizeof s->weight);
    pthread_mutex_unlock(&s->lock);
    v = tenrec_value_tensor(t);
    status = tenrec_torch_request_return(r, &v, err);
    tenrec_tensor_drop(t);
    return status;
}

/* push(gradient) */
static tenrec_status push(struct tenrec_torch_request *r, void *arg, tenrec_error *err)
{
    struct server *s = arg;
    struct tenrec_tensor *t;
    size_t n;
    const struct tenrec_value *args = tenrec_torch_request_args(r, &n);
    const float *gradient;

    if (tenrec_value_unpack(args, n, err, "Tf[4]", &t))
        return err->code;
    gradient = tenrec_tensor_data(t);
    pthread_mutex_lock(&s->lock);
    for (int i = 0; i < WEIGHTS; i++)
        s->weight[i] -= rate * gradient[i];
    s->pushes++;
    pthread_mutex_unlock(&s->lock);
    return TENREC_OK;
}

static void wait_for_trainers(struct server *s)
{
    pthread_mutex_lock(&s->lock);
    while (s->done < s->trainers)
        pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

/* done() returns when each trainer has called it, so no trainer leaves while another joins: torch's
 * workers would then wait for each other. The trainers' limit, rpc_timeout, bounds the wait. */
static tenrec_status done(struct tenrec_torch_request *r, void *arg, tenrec_error *err)
{
    struct server *s = arg;

    (void)r, (void)err;
    pthread_mutex_lock(&s->lock);
    s->done++;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    wait_for_trainers(s);
    return TENREC_OK;
}

static tenrec_status serve(struct tenrec_torch_member *m, struct server *s, tenrec_error *err)
{
    if (tenrec_torch_member_register_function(m, "ps.pull", pull, s, err) ||
        tenrec_torch_member_register_function(m, "ps.push", push, s, err) ||
        tenrec_torch_member_register_function(m, "ps.done", done, s, err) ||
        tenrec_torch_member_join(m, err))
        return err->code;
    wait_for_trainers(s);
    /* This process serves the store, so it leaves last. */
    return tenrec_torch_member_leave(m, LEAVE_MS, err);
}

int main(int argc, char **argv)
{
    struct server s = { .lock = PTHREAD_MUTEX_INITIALIZER,
                        .changed = PTHREAD_COND_INITIALIZER,
                        .trainers = argc > 1 ? strtol(argv[1], NULL, 10) : 2 };
    struct tenrec_torch_member *m = NULL;
    tenrec_error err;
    const bool failed = tenrec_torch_member_new(NULL, &m, &err) || /* of member.yaml */
                        serve(m, &s, &err);

    tenrec_torch_member_drop(m);
    if (failed)
        return tenrec_error_print(&err, "parameter_server");
    printf("%ld gradients, weights %.2f %.2f %.2f %.2f\n", s.pushes, (double)s.weight[0],
           (double)s.weight[1], (double)s.weight[2], (double)s.weight[3]);
    return 0;
}
