/* SPDX-License-Identifier: Apache-2.0 */
/* export_test.c - handles of this process's allocations: made once for each. */
#include "../../testing.h"
#include "cuda/device.h"
#include "cuda/import.h"
#include "fake.h"

#define BYTES ((size_t)100000)

static struct export found(const void *data)
{
    struct export e;
    tenrec_error err;

    assert_status(device_enter(0, &err), &err);
    assert_status(export_find(0, (uintptr_t)data, &e, &err), &err);
    device_leave();
    return e;
}

static unsigned handles_made(void)
{
    return fake_is_stand_in() ? fake_calls("cuIpcGetMemHandle") : 0;
}

TEST(export_makes_the_handle_of_an_allocation_once)
{
    char *data = fake_new(0, BYTES);
    const struct export first = found(data);
    const unsigned made = handles_made();
    const struct export again = found(data + BYTES / 2);

    assert_int_equal(handles_made(), made);
    assert_true(first.base <= (uintptr_t)data && first.len >= BYTES);
    assert_int_equal(again.base, first.base);
    assert_int_equal(again.buffer, first.buffer);
    assert_memory_equal(again.handle.bytes, first.handle.bytes, sizeof first.handle.bytes);
    fake_drop(0, data);
}

TEST(export_makes_another_handle_when_an_address_has_another_life)
{
    void *data = fake_new(0, BYTES);
    const struct export first = found(data);
    unsigned made;
    struct export next;

    fake_drop(0, data);
    made = handles_made();
    data = fake_new(0, BYTES);
    next = found(data);
    assert_int_not_equal(next.buffer, first.buffer);
    if (fake_is_stand_in())
        assert_int_equal(handles_made(), made + 1);
    fake_drop(0, data);
}

TEST(export_refuses_memory_of_no_device)
{
    struct export e;
    tenrec_error err;
    int number = 0;

    assert_status(device_enter(0, &err), &err);
    assert_int_equal(export_find(0, (uintptr_t)&number, &e, &err), TENREC_EOS);
    assert_text_has(err.text, "cuda:0");
    device_leave();
}

int main(void)
{
    const char *why;

    if (!fake_open(&why)) {
        printf("1..0 # SKIP no GPU: %s\n", why);
        return 77;
    }
    return testing_run(NULL, NULL);
}
