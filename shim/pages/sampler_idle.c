/* SPDX-License-Identifier: BSD-2-Clause
 * Reads by the kernel's idle page tracking (sys/pages/idle.h): pages are marked at the start of a
 * round and looked at when it ends. A page that was only written counts as read, too: what is in
 * use in every round and written in few of them is read domain, which is what it should be. */
#include <errno.h>

#include "pages/sampler.h"
#include "sys/pages/idle.h"
#include "sys/pages/track.h"

static struct os_idle idle = {.fd = {-1, -1, -1}};
static const char *idle_root = "";

void sampler_idle_use(const char *folder)
{
    idle_root = folder ? folder : "";
}

/* The watched pages of a block that have a bit; how many. */
static int find(void *base, uint32_t pages, const struct page_set *set, struct os_idle_page *ret)
{
    int n = 0;
    for (uint32_t i = 0; i < pages && n >= 0;) {
        uint32_t first = i;
        while (i < pages && page_set_has(set, i))
            i++;
        if (i > first)
            n = os_idle_pages(&idle, base, first, i - first, ret, (unsigned)n);
        else
            i++;
    }
    return n > 0 ? os_idle_resolve(&idle, ret, (unsigned)n) : n;
}

static int watch(void *base, uint32_t pages, const struct page_set *set)
{
    struct os_idle_page page[HISTORY_BLOCK];
    int n = find(base, pages, set, page);
    return n > 0 ? os_idle_mark(&idle, page, (unsigned)n) : n;
}

static int look(void *base, uint32_t pages, const struct page_set *set, unsigned round,
                struct page_seen *seen)
{
    struct os_idle_page page[HISTORY_BLOCK];
    int n = find(base, pages, set, page);
    int r = n > 0 ? os_idle_look(&idle, page, (unsigned)n) : n;
    for (int i = 0; i < n && r == 0; i++)
        if (!page[i].idle)
            seen[page[i].page].reads |= (uint8_t)(1u << round);
    /* After the last round nobody looks. */
    return r == 0 && n > 0 && round + 1 < HISTORY_ROUNDS ? os_idle_mark(&idle, page, (unsigned)n)
                                                         : r;
}

/* More than a CPU keeps back from the kernel's lists (31), so that some have a bit. */
#define TRIAL_PAGES 64u

/* In a user namespace root may open all files, and is told no frames. */
static int try_out(void)
{
    struct os_idle_page page[TRIAL_PAGES];
    void *m;
    int marked = 0, r = os_map_anon(TRIAL_PAGES * HY_PAGE, &m);
    if (r != 0)
        return r;
    (void)os_no_huge_pages(m, TRIAL_PAGES * HY_PAGE);
    for (unsigned i = 0; i < TRIAL_PAGES; i++)
        ((volatile char *)m)[i * HY_PAGE] = 1;
    int n = os_idle_pages(&idle, m, 0, TRIAL_PAGES, page, 0);
    r = n == 0 ? -EPERM : HY_MIN(n, 0);
    if (r == 0)
        r = n = os_idle_resolve(&idle, page, (unsigned)n);
    if (r > 0)
        r = os_idle_mark(&idle, page, (unsigned)n);
    if (r == 0)
        r = os_idle_look(&idle, page, (unsigned)n);
    for (int i = 0; i < n && r == 0; i++)
        marked += page[i].idle;
    os_unmap(m, TRIAL_PAGES * HY_PAGE);
    return r == 0 && marked == 0 ? -EOPNOTSUPP : r;
}

static int open_idle(void)
{
    int r = os_idle_open(idle_root, &idle);
    if (r == 0 && (r = try_out()) != 0)
        os_idle_close(&idle);
    return r;
}

static void close_idle(void)
{
    os_idle_close(&idle);
}

static bool alive(void)
{
    return os_idle_alive(&idle);
}

const struct sampler_source sampler_idle = {
    .name = "page-idle",
    .reads = true,
    .open = open_idle,
    .close = close_idle,
    .watch = watch,
    .look = look,
    .alive = alive,
};
