/* SPDX-License-Identifier: Apache-2.0 */
/* parity.h - the tests of torch.distributed.rpc as tests of ours: four workers
 * run one body, as there. docs/internals/parity.md says which is which. */
#ifndef TESTS_PARITY_H
#define TESTS_PARITY_H

#include "../testing.h"

#include <stdlib.h>
#include <tenrec/tenrec.h>
#include <tenrec/testkit.h>

enum { LONG_MS = 30000 /* only a broken test waits so long */ };

/* One test. What the options leave open is filled in: four workers as threads,
 * the functions of parity_functions.h, the backend named in argv. */
struct parity_case {
    const char *name;
    tenrec_test_body_fn *body;
    struct tenrec_test_options o;
};

/* A row of a table: the case "parity_BODY". Fields of its options may follow. */
#define PARITY(...) PARITY_OF(__VA_ARGS__, .size = 0)
#define PARITY_OF(body, ...)                                                                       \
    {                                                                                              \
        "parity_" #body, body,                                                                     \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }

/* Runs them all as cmocka cases. argv[1] names the backend: tensorpipe, inproc, ucx, or
 * faulty_ one of these, which has no rules of its own. argv[2] "processes": the
 * workers are that, and no threads. */
int parity_run(int argc, char **argv, const struct parity_case *cases, size_t n);

/* The name of the worker `k` after the caller's; one of a few static buffers
 * per thread. */
const char *next_worker(const struct tenrec_test *t, int k);

/* ---- calls that are expected to go well --------------------------------------- */

struct tenrec_value *ask(const struct tenrec_test *t, const char *to, const char *function,
                         const struct tenrec_value *args, size_t n);
struct tenrec_future *ask_async(const struct tenrec_test *t, const char *to, const char *function,
                                const struct tenrec_value *args, size_t n);

/* The same, with limits; the call must fail with `code`. */
void ask_fails(const struct tenrec_test *t, const char *to, const char *function, int64_t ms,
               tenrec_status code, tenrec_error *ret);
struct tenrec_future *ask_async_within(const struct tenrec_test *t, const char *to,
                                       const char *function, int64_t ms);

void wait_ok(struct tenrec_future *f);
void wait_fails(struct tenrec_future *f, tenrec_status code, tenrec_error *ret);

/* The integer of a future or a value that is given away. */
int64_t take_int(struct tenrec_value *v);
int64_t future_int(struct tenrec_future *f);

/* ---- tensors ---------------------------------------------------------------------- */

/* n x n of float32, all `x`. */
struct tenrec_tensor *filled(int64_t n, float x);

/* Returns true if v is a tensor of n x n, all `x`. */
bool is_filled(const struct tenrec_value *v, int64_t n, float x);
void assert_filled(struct tenrec_value *take, int64_t n, float x);

#endif
