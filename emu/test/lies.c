/* SPDX-License-Identifier: BSD-2-Clause
 * Where pages lie, asked by the functions of pmemu.h: instrumented, and the same under QEMU.
 * DRAM is to be limited to LIMIT_PAGES, placement to be first-touch. Prints 'name value' lines. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "pmemu.h"

#pragma weak pmemu_set_tier
#pragma weak pmemu_range_tiers
#pragma weak pmemu_dram_free
#pragma weak pmemu_event

#define LIMIT_PAGES 4096
#define PAGES       3000 /* more than one piece of what the guest's library is told */

static uint8_t tier[PAGES + 2];

static char *map(size_t pages)
{
    char *p =
        mmap(NULL, pages * PMEMU_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    return p;
}

static void use(char *p, size_t pages)
{
    for (size_t i = 0; i < pages; i++)
        p[i * PMEMU_PAGE] = 1;
}

/* How many of the first `n` answers say `what`, and the one beyond them is not written. */
static void say(const char *name, size_t n, uint8_t what)
{
    size_t found = 0;
    for (size_t i = 0; i < n; i++)
        found += tier[i] == what;
    printf("%s %zu\nbeyond_%s %d\n", name, found, name, tier[n]);
}

static void ask(const char *name, const char *p, size_t bytes, size_t pages, uint8_t what)
{
    memset(tier, 7, sizeof(tier));
    if (pmemu_range_tiers(p, bytes, tier) != 0)
        printf("failed 1\n");
    say(name, pages, what);
}

static void numbers(void)
{
    char *p = map(PAGES), *q = map(LIMIT_PAGES);
    int64_t before, asked, took;

    /* What libc needs for the calls below is in use from here on. */
    ask("unused", p, PAGES * PMEMU_PAGE, PAGES, PMEMU_UNUSED);
    printf("books %lld\n",
           (long long)(pmemu_dram_free() / PMEMU_PAGE + pmemu_event(PMEMU_DRAM_PAGES)));
    before = pmemu_dram_free();
    (void)pmemu_range_tiers(p, PAGES * PMEMU_PAGE, tier);
    asked = pmemu_dram_free();
    use(p, 1500);
    took = pmemu_dram_free();
    printf("used_by_asking %lld\n", (long long)(before - asked) / PMEMU_PAGE);
    printf("took %lld\n", (long long)(asked - took) / PMEMU_PAGE);
    ask("dram", p, PAGES * PMEMU_PAGE, PAGES, 0);
    ask("unused_yet", p, PAGES * PMEMU_PAGE, PAGES, PMEMU_UNUSED);
    ask("touched", p + PMEMU_PAGE - 1, 2 * PMEMU_PAGE + 2, 4, 0);
    printf("named %d\n", pmemu_set_tier(p + 1000 * PMEMU_PAGE, 2000 * PMEMU_PAGE, 1));
    ask("moved_with_name", p, PAGES * PMEMU_PAGE, PAGES, 1);
    use(p, 2000);
    ask("pm", p, PAGES * PMEMU_PAGE, PAGES, 1);
    printf("unnamed %d\n", pmemu_set_tier(p + 1000 * PMEMU_PAGE, 2000 * PMEMU_PAGE, PMEMU_NO_TIER));
    ask("stay", p, PAGES * PMEMU_PAGE, PAGES, 1);
    madvise(p + 1500 * PMEMU_PAGE, 500 * PMEMU_PAGE, MADV_DONTNEED);
    use(p, PAGES);
    ask("by_machine", p, PAGES * PMEMU_PAGE, PAGES, 0);
    use(q, LIMIT_PAGES);
    printf("full %lld\n", (long long)pmemu_dram_free());
    munmap(q, LIMIT_PAGES * PMEMU_PAGE);
    printf("given %d\n", pmemu_dram_free() > 0);
    printf("bad %d\n", pmemu_range_tiers((void *)(UINTPTR_MAX - 5), 1, tier) == -EINVAL);
}

int main(int argc, char **argv)
{
    if (!pmemu_range_tiers || !pmemu_dram_free || !pmemu_set_tier || !pmemu_event) {
        puts("no emulated machine");
        return 1;
    }
    if (argc > 1 && strcmp(argv[1], "limit") == 0)
        printf("unlimited %d\n", pmemu_dram_free() == INT64_MAX);
    else
        numbers();
    return 0;
}
