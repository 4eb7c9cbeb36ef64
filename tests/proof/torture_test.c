/* SPDX-License-Identifier: Apache-2.0 */
/* torture_test.c - each allocation of the way from the configuration to a proof fails once. */
#include "../support/torture.h"
#include "core/base/clock.h"
#include "pair.h"
#include "security/proof/security.h"
#include "security/secret/secret_handover.h"

#include <stdio.h>
#include <tenrec/config.h>
#include <unistd.h>

static tenrec_status exchange(struct secret *secret, tenrec_error *err)
{
    const struct proof_terms dialler = pair_dialler(secret), listener = pair_listener(secret);
    struct pair x = { 0 };
    tenrec_status st = proof_open(&dialler, &x.side[DIALLER], err);

    if (st == TENREC_OK)
        st = proof_open(&listener, &x.side[LISTENER], err);
    if (st == TENREC_OK) {
        pair_run(&x, SIZE_MAX);
        assert_true(proof_is_complete(x.side[DIALLER]) && proof_is_complete(x.side[LISTENER]));
    }
    pair_close(&x);
    return st;
}

static tenrec_status whole_way(void *text, tenrec_error *err)
{
    struct tenrec_config *config = NULL;
    struct security *security = NULL;
    struct secret_giver *giver = NULL;
    tenrec_status st;

    torture_on();
    st = tenrec_config_parse(text, "t.yaml", &config, err);
    if (st == TENREC_OK)
        st = security_open(config, CLOCK_NEVER, &security, err);
    if (st == TENREC_OK)
        st = exchange(security->secret, err);
    if (st == TENREC_OK)
        st = secret_giver_open(security->secret, NULL, &giver, err);
    torture_off();
    secret_giver_close(giver);
    security_drop(security);
    tenrec_config_drop(config);
    return st;
}

TEST(security_survives_when_any_allocation_fails)
{
    char path[] = "/tmp/security.XXXXXX", text[192];
    struct secret *s;
    tenrec_error err;

    close(mkstemp(path));
    unlink(path);
    assert_status(secret_draw(&s, &err), &err);
    assert_status(secret_write_file(s, path, &err), &err);
    secret_drop(s);
    snprintf(text, sizeof text,
             "security: {mode: secret, secret_file: %s, "
             "allow: [{function: f, from: [w, any_member]}]}",
             path);
    assert_true(torture(TORTURE_ALLOCATIONS, 1, whole_way, text) > 10);
    unlink(path);
}
