/* SPDX-License-Identifier: BSD-2-Clause */
#include "pages/mover.h"

#include <errno.h>
#include <string.h>

#include "sys/emulator.h"
#include "sys/os.h"
#include "sys/pages/move.h"

/* A page that a system call uses just now is free again in microseconds, one that a device
 * uses may not be for hours. */
#define TRIES    4
#define PAUSE_NS 50000u

/* The kernel did not come to this page. */
#define UNTOUCHED (-EAGAIN)

struct batch {
    void *page[MIGRATE_PAGES];
    uint16_t index[MIGRATE_PAGES]; /* of the page in the range */
    int where[MIGRATE_PAGES];
    unsigned n;
    uint64_t nodes; /* wanted */
};

static bool on(uint64_t nodes, int where)
{
    return where >= 0 && where < 64 && (nodes >> where & 1);
}

static void settle(struct migrate_result *ret, unsigned index, enum migrate_outcome o)
{
    ret->page[index] = (uint8_t)o;
    ret->count[o]++;
}

/* Pages that are where they should be, or not at all, leave the batch. */
static void sort_out(struct batch *b, enum migrate_outcome there, struct migrate_result *ret)
{
    unsigned left = 0;
    for (unsigned i = 0; i < b->n; i++) {
        if (on(b->nodes, b->where[i])) {
            settle(ret, b->index[i], there);
        } else if (b->where[i] == -ENOENT || b->where[i] == -EFAULT) {
            settle(ret, b->index[i], MIGRATE_ABSENT);
        } else {
            b->page[left] = b->page[i];
            b->where[left] = b->where[i];
            b->index[left++] = b->index[i];
        }
    }
    b->n = left;
}

/* One try on one node. The statuses are only a hint (they can say -EBUSY of pages of a huge
 * page that moved), so it is asked where the pages are. `told` keeps why they are not there. */
static int try_node(struct batch *b, int node, int *answer, struct migrate_result *ret)
{
    int status[MIGRATE_PAGES];
    int r = os_move_pages(b->page, b->n, node, status, UNTOUCHED);
    /* The kernel stops at the first page for which there is no memory. */
    if (r != 0 && r != -ENOMEM && r != -EBUSY && r != -EAGAIN && r != -EINTR)
        return r;
    for (unsigned i = 0; i < b->n; i++)
        answer[b->index[i]] = r == -ENOMEM && status[i] == UNTOUCHED ? -ENOMEM : status[i];
    int asked = os_page_nodes(b->page, b->n, b->where);
    if (asked != 0)
        return asked;
    sort_out(b, MIGRATE_MOVED, ret);
    return 0;
}

static bool worth_waiting(const struct batch *b, const int *answer)
{
    for (unsigned i = 0; i < b->n; i++)
        if (answer[b->index[i]] != -EACCES && answer[b->index[i]] != -ENOMEM)
            return true;
    return false;
}

static int migrate_numa(uint64_t nodes, char *base, unsigned pages, struct migrate_result *ret)
{
    struct batch b = {.n = pages, .nodes = nodes};
    int answer[MIGRATE_PAGES];
    for (unsigned i = 0; i < pages; i++) {
        b.page[i] = base + i * HY_PAGE;
        b.index[i] = (uint16_t)i;
        answer[i] = UNTOUCHED;
    }
    int r = os_page_nodes(b.page, b.n, b.where);
    if (r != 0)
        return r;
    sort_out(&b, MIGRATE_THERE, ret);
    for (int try = 0; try < TRIES && b.n > 0; try++) {
        if (try > 0 && !worth_waiting(&b, answer))
            break;
        if (try > 0)
            os_sleep_ns(PAUSE_NS << try);
        for (uint64_t left = nodes; left && b.n > 0; left &= left - 1) {
            r = try_node(&b, __builtin_ctzll(left), answer, ret);
            if (r != 0)
                return r;
        }
    }
    for (unsigned i = 0; i < b.n; i++)
        settle(ret, b.index[i], answer[b.index[i]] == -ENOMEM ? MIGRATE_FULL : MIGRATE_REFUSED);
    return 0;
}

static int where_emulated(void *const *page, unsigned n, int8_t *ret)
{
    for (unsigned i = 0; i < n; i++) {
        uint8_t tier;
        int r = emulator_range_tiers(page[i], HY_PAGE, &tier);
        if (r != 0)
            return r == -ENODEV ? -EOPNOTSUPP
                                : r; /* without a machine the books are all there is */
        ret[i] = tier == EMULATOR_UNUSED ? -1 : (int8_t)tier;
    }
    return 0;
}

int migrator_where(void *how, void *const *page, unsigned n, int8_t *ret)
{
    const struct migrator *m = how;
    int where[MIGRATE_PAGES];
    if (n > MIGRATE_PAGES)
        return -EINVAL;
    if (m->way == MIGRATE_EMULATED)
        return where_emulated(page, n, ret);
    if (m->way != MIGRATE_NUMA)
        return -EOPNOTSUPP;
    int r = os_page_nodes(page, n, where);
    for (unsigned i = 0; r == 0 && i < n; i++)
        ret[i] = on(m->nodes[HY_DRAM], where[i]) ? HY_DRAM
                 : on(m->nodes[HY_PM], where[i]) ? HY_PM
                                                 : -1;
    return r;
}

static int migrate_emulated(char *base, unsigned pages, enum hy_tier to, struct migrate_result *ret)
{
    uint8_t tier[MIGRATE_PAGES];
    int64_t moved = emulator_move(base, pages * HY_PAGE, to);
    if (moved == -ENODEV)
        moved = (int64_t)pages;
    if (moved < 0)
        return (int)moved;
    /* Short of some: never used, or no room. Which ones, the machine knows. */
    bool all = moved == (int64_t)pages || emulator_range_tiers(base, pages * HY_PAGE, tier) != 0;
    for (unsigned i = 0; i < pages; i++)
        settle(ret, i,
               all || tier[i] == to         ? MIGRATE_MOVED
               : tier[i] == EMULATOR_UNUSED ? MIGRATE_ABSENT
               : to == HY_DRAM              ? MIGRATE_FULL
                                            : MIGRATE_REFUSED);
    return 0;
}

int migrate(const struct migrator *m, void *base, size_t bytes, enum hy_tier to,
            struct migrate_result *ret)
{
    size_t pages = bytes / HY_PAGE;
    uint64_t start = os_now_ns();
    int r = -ENODEV;
    if (((uintptr_t)base | bytes) % HY_PAGE || pages == 0 || pages > MIGRATE_PAGES)
        return -EINVAL;
    if (m->way == MIGRATE_FILE)
        return -EOPNOTSUPP;
    struct migrate_result result = {0};
    if (m->way == MIGRATE_NUMA && m->nodes[to] != 0)
        r = migrate_numa(m->nodes[to], base, (unsigned)pages, &result);
    else if (m->way == MIGRATE_EMULATED)
        r = migrate_emulated(base, (unsigned)pages, to, &result);
    if (r != 0)
        return r;
    result.ns = os_now_ns() - start;
    *ret = result;
    return 0;
}
