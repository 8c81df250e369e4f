/* SPDX-License-Identifier: BSD-2-Clause */
#include "pages/migrate_beside.h"

#include "pages/migrate_books.h"
#include "pages/sampler.h"
#include "sys/log.h"
#include "sys/os.h"
#include "sys/usage.h"

#define PAGE_NS 300u /* to ask about one, until measured */

void beside_begin(struct beside *b, const struct migrator *how)
{
    b->on = how->way == MIGRATE_NUMA;
    if (!b->opened)
        foreign_init(&b->foreign);
    b->opened = true;
    b->page_ns = PAGE_NS;
    b->due_ns = 0;
}

void beside_forked(struct beside *b)
{
    __atomic_store_n(&b->forked, true, __ATOMIC_RELEASE);
}

static uint64_t number_of(const void *page)
{
    return (uintptr_t)page / HY_PAGE;
}

static void pin_resting(const struct foreign *o)
{
    uint64_t first;
    for (unsigned at = 0; foreign_resting(o, &at, &first);)
        sampler_pin((void *)(uintptr_t)(first * HY_PAGE), FOREIGN_SPOT * HY_PAGE);
}

static void ask(struct beside *b, const struct migrator *how, const struct pace *pace)
{
    static struct sampler_found found[BESIDE_FOUND]; /* one thread */
    struct migrator m = *how;
    uint64_t asked, start = os_thread_cpu_ns();
    uint64_t budget = others_budget(pace->interval, pace->limits.core_permille, b->page_ns);
    unsigned n = sampler_places(budget, migrator_where, &m, found, BESIDE_FOUND, &asked);
    for (unsigned i = 0; i < n; i++) {
        uint64_t pages = found[i].bytes / HY_PAGE;
        b->view.found_pages += pages;
        b->view.undone_pages +=
            foreign_found(&b->foreign, number_of(found[i].base), pages, found[i].home);
    }
    if (n > 0)
        books_settle(0);
    b->view.asked_pages += asked;
    if (asked > 0)
        b->page_ns = (3 * b->page_ns + (os_thread_cpu_ns() - start) / asked) / 4;
}

void beside_look(struct beside *b, const struct migrator *how, struct pace *pace)
{
    if (!b->on)
        return;
    if (__atomic_exchange_n(&b->forked, false, __ATOMIC_ACQ_REL))
        foreign_forked(&b->foreign);
    foreign_pass(&b->foreign);
    ask(b, how, pace);
    pin_resting(&b->foreign);
    b->due_ns = os_now_ns() + pace->limits.interval_max;
    unsigned pause = foreign_pause(&b->foreign);
    if (pause == 0)
        return;
    b->view.truces++;
    pace_truce(pace, pause);
    log_info("others undo moves of pages: none for %u looks", pause);
}

bool beside_due(const struct beside *b)
{
    return b->on && os_now_ns() >= b->due_ns;
}

void beside_moved(struct beside *b, const void *base, size_t pages, enum migrate_outcome o)
{
    if (!b->on)
        return;
    if (o == MIGRATE_MOVED)
        foreign_ours(&b->foreign, number_of(base), pages);
    else if (o == MIGRATE_THERE) /* by others, as we wanted it */
        b->view.found_pages += pages;
}
