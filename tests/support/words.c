/* SPDX-License-Identifier: Apache-2.0 */
/* words.c - mappings between guard pages, and words that change before a load. */
#define WORDS_PLAIN
#include "words.h"
#include "../testing.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#define RANGES 64

/* Values that a peer may write to a word: relative to the old value, or absolute. */
enum base { BASE_WAS, BASE_ZERO };
struct change {
    const char *name;
    enum base base;
    int64_t add;
    int sizes; /* times the size of the ring */
};

static const struct change changes[] = {
    { "0", BASE_ZERO, 0, 0 },
    { "all bits", BASE_ZERO, -1, 0 },
    { "+ 1", BASE_WAS, 1, 0 },
    { "- 1", BASE_WAS, -1, 0 },
    { "+ size", BASE_WAS, 0, 1 },
    { "+ size + 1", BASE_WAS, 1, 1 },
    { "- size", BASE_WAS, 0, -1 },
    { "- size - 1", BASE_WAS, -1, -1 },
    { "+ 4 sizes", BASE_WAS, 0, 4 },
    { "+ 2^40", BASE_WAS, INT64_C(1) << 40, 0 },
    { "+ 2^63", BASE_WAS, INT64_MIN, 0 },
};
#define CHANGES (sizeof changes / sizeof changes[0])

static struct range {
    char *at;
    size_t len;
} ranges[RANGES];

static struct {
    size_t load, change_at; /* loads are counted from 1 */
    const struct change *change;
    uint64_t size;
    bool stays; /* else the word has its old value again at the next load */
    volatile void *changed;
    size_t changed_size;
    uint64_t was;
} now;

static sigjmp_buf outside;

/* ---- mappings ---- */

static size_t page_up(size_t len)
{
    const size_t mask = (size_t)sysconf(_SC_PAGESIZE) - 1;

    return (len + mask) & ~mask;
}

void *words_map(void *at, size_t len, int protection, int flags, int fd, long offset)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), room = page_up(len);
    struct range *r = ranges;
    char *base;

    if (fd < 0)
        return mmap(at, len, protection, flags, fd, offset);
    base =
        mmap(NULL, room + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        return base;
    at = mmap(base + page, len, protection, flags | MAP_FIXED, fd, offset);
    if (at == MAP_FAILED) {
        munmap(base, room + 2 * page);
        return at;
    }
    while (r->at)
        assert_true(++r < ranges + RANGES);
    *r = (struct range){ at, room };
    return at;
}

int words_unmap(void *at, size_t len)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);

    for (struct range *r = ranges; r < ranges + RANGES; r++) {
        if (r->at != (char *)at)
            continue;
        if (now.changed && (char *)now.changed >= r->at && (char *)now.changed < r->at + r->len)
            now.changed = NULL;
        r->at = NULL;
        return munmap((char *)at - page, r->len + 2 * page);
    }
    return munmap(at, len);
}

static bool is_shared(const char *word)
{
    for (const struct range *r = ranges; r < ranges + RANGES; r++)
        if (r->at && word >= r->at && word < r->at + r->len)
            return true;
    return false;
}

/* ---- words ---- */

static uint64_t word_get(volatile const void *word, size_t size)
{
    uint64_t value = 0;

    memcpy(&value, (const void *)(uintptr_t)word, size);
    return value;
}

static void word_set(volatile const void *word, size_t size, uint64_t value)
{
    memcpy((void *)(uintptr_t)word, &value, size);
}

void words_before_load(volatile const void *word, size_t size)
{
    const struct change *c = now.change;

    if (!is_shared((const char *)(uintptr_t)word))
        return;
    if (now.changed && !now.stays) {
        word_set(now.changed, now.changed_size, now.was);
        now.changed = NULL;
    }
    if (++now.load != now.change_at)
        return;
    now.was = word_get(word, size);
    now.changed = (volatile void *)(uintptr_t)word;
    now.changed_size = size;
    word_set(word, size,
             (c->base == BASE_WAS ? now.was : 0) + (uint64_t)c->add +
                 (uint64_t)c->sizes * now.size);
}

/* ---- runs ---- */

static void left_the_mapping(int sig)
{
    (void)sig;
    siglongjmp(outside, 1);
}

static void run(void (*scenario)(void), size_t change_at, const struct change *c, bool stays)
{
    now.load = 0;
    now.change_at = change_at;
    now.change = c;
    now.stays = stays;
    now.changed = NULL;
    if (sigsetjmp(outside, 1))
        fail_msg("access outside of a mapping when a word is changed before load %zu: %s%s",
                 change_at, c ? c->name : "not at all", stays ? "" : ", for this load only");
    scenario();
}

size_t words_try(void (*scenario)(void), uint64_t size)
{
    const struct sigaction act = { .sa_handler = left_the_mapping };
    struct sigaction segv, bus;
    size_t loads;

    now.size = size;
    sigaction(SIGSEGV, &act, &segv);
    sigaction(SIGBUS, &act, &bus);
    run(scenario, 0, NULL, true);
    loads = now.load;
    print_message("# %zu loads of shared words\n", loads);
    for (size_t k = 1; k <= loads; k++)
        for (size_t c = 0; c < CHANGES; c++)
            for (int stays = 0; stays < 2; stays++)
                run(scenario, k, &changes[c], stays);
    sigaction(SIGSEGV, &segv, NULL);
    sigaction(SIGBUS, &bus, NULL);
    return loads;
}
