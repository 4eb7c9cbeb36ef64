/* SPDX-License-Identifier: Apache-2.0 */
/* cost_test.c - how many calls of the driver a tensor costs, when it is not the first. */
#include "../../../testing.h"
#include "rig.h"

enum { WARM = 40, CALLS = 16 }; /* the first 32 make streams */

/* Of this process, which sends a tensor and receives one: as many as one tensor costs both
 * processes on one way: half of it enters and leaves devices. The memory is new each time, as the
 * rig makes it. `most` are those beside questions whether a copy is done. */
static void assert_cost(const struct rig_setup *setup, int device, unsigned most)
{
    const struct rig_tensor t = { 4096, device, device, device };
    const char *const query = "cuEventQuery";
    unsigned all, asked;
    struct rig r;

    rig_open(&r, setup);
    r.ready = true;
    for (uint32_t i = 0; i < WARM; i++)
        rig_call(&r, &t, 1, i);
    all = fake_all_calls();
    asked = fake_calls(query);
    for (uint32_t i = 0; i < CALLS; i++)
        rig_call(&r, &t, 1, i);
    all = fake_all_calls() - all;
    asked = fake_calls(query) - asked;
    all -= 3 * asked; /* each enters the device, and leaves it */
    printf("# %u calls of the driver and %u questions for %u tensors there and back\n", all, asked,
           (unsigned)CALLS);
    if (fake_is_stand_in())
        assert_in_range(all, 1, most * CALLS);
    rig_close(&r);
}

TEST(cuda_tensor_that_is_mapped_costs_few_calls_of_the_driver)
{
    assert_cost(&(struct rig_setup){ .two_processes = true }, 0, 18);
}

TEST(cuda_tensor_that_is_staged_costs_few_calls_of_the_driver)
{
    assert_cost(&(struct rig_setup){ .channels = "cuda_basic", .two_processes = true }, 0, 18);
}

int main(int argc, char **argv)
{
    rig_child(argc, argv);
    return testing_run(NULL, NULL);
}
