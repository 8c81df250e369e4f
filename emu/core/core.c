/* SPDX-License-Identifier: BSD-2-Clause
 * Accesses and batches of the emulated threads. See core.h. */
#include "core/inside.h"

#include <string.h>
#include <sys/resource.h>

#include "pages/pages.h"
#include "pages/watch.h"

#define DEBT_PS 2000000

#ifndef EMU_SELF_POINTER
__thread struct emu_thread emu_self;
#endif
int64_t emu_access_step, emu_block_step;

void emu_new_batch(struct emu_thread *t)
{
    t->batch = (struct emu_batch){.cpu_ps = 0};
    memset(t->reads, 0, sizeof(t->reads));
    memset(t->writebacks, 0, sizeof(t->writebacks));
    t->l1_misses = t->dependent = t->streamed = 0;
    t->instructions = 0;
    t->stall_ps = t->cache_ps = t->move_ps = 0;
    t->left = t->granted = EMU_FIX(emu_core.params.batch_ps);
}

/* The kernel's count knows what the page table of media does not: memory that libc has given back
 * and takes anew inside itself. */
static int64_t faults_so_far(void)
{
    struct rusage u;
    return getrusage(RUSAGE_THREAD, &u) == 0 ? u.ru_minflt : 0;
}

void emu_faults_begin(struct emu_thread *t)
{
    if (emu_core.params.fault_ps)
        t->faults = faults_so_far();
}

/* The kernel's time for the batch's page faults. */
static int64_t charge_faults(struct emu_thread *t)
{
    int64_t before = t->faults, ps;

    if (!emu_core.params.fault_ps)
        return 0;
    t->faults = faults_so_far();
    ps = (t->faults - before) * emu_core.params.fault_ps;
    t->batch.hit_ps += ps;
    t->left -= EMU_FIX(ps);
    emu_add(EMU_C_page_faults, (uint64_t)(t->faults - before));
    return ps;
}

static void count_batch(struct emu_thread *t, int64_t accesses, int64_t wait)
{
    const struct emu_batch *b = &t->batch;

    emu_add(EMU_C_instructions, t->instructions
                                    ? t->instructions
                                    : (uint64_t)(b->cpu_ps / emu_core.params.instruction_ps));
    emu_add(EMU_C_accesses, (uint64_t)accesses);
    emu_add(EMU_C_l1_misses, t->l1_misses);
    emu_add(EMU_C_llc_reads_dram, t->reads[EMU_DRAM]);
    emu_add(EMU_C_llc_reads_pm, t->reads[EMU_PM]);
    emu_add(EMU_C_writebacks_dram, t->writebacks[EMU_DRAM]);
    emu_add(EMU_C_writebacks_pm, t->writebacks[EMU_PM]);
    emu_add(EMU_C_units_read_pm, b->read_units[EMU_PM]);
    emu_add(EMU_C_units_written_pm, b->write_units[EMU_PM]);
    emu_add(EMU_C_dependent_misses, t->dependent);
    emu_add(EMU_C_stream_misses, t->streamed);
    emu_add(EMU_C_compute_ns, (uint64_t)(b->cpu_ps / 1000));
    emu_add(EMU_C_stall_ns, (uint64_t)(t->stall_ps / 1000));
    emu_add(EMU_C_cache_ns, (uint64_t)(t->cache_ps / 1000));
    emu_add(EMU_C_wait_ns, (uint64_t)(wait / 1000));
    emu_add(EMU_C_move_ns, (uint64_t)(t->move_ps / 1000));
}

void emu_settle_inside(struct emu_thread *t, enum emu_settle_how how)
{
    struct emu_cpu_user *user = &emu_core.machine->cpu_user[t->slot];
    struct emu_batch *b = &t->batch;
    int64_t spent, accesses, in_kernel, begin, wait, end, old;

    /* The process has left the machine: its slots may be somebody else's by now. It can
     * come back (an exec that fails). */
    if (!atomic_load(&emu_core.running)) {
        t->mode = EMU_T_NEW;
        t->left = t->granted = EMU_LOOK_AGAIN;
        return;
    }
    in_kernel = charge_faults(t);
    spent = emu_spent_ps(t);
    accesses = EMU_FIX(spent) - (t->granted - t->left);
    emu_drop_moved(t);
    b->cpu_ps = spent - t->stall_ps - t->move_ps - in_kernel;
    if (how == SETTLE_ORDERED || how == SETTLE_LEAVING)
        t->now = emu_clock_turn(&emu_core.machine->clock, t->slot, t->now);
    begin = end = t->now;
    wait = 0;
    if (spent > 0) {
        begin = emu_cpus_take(&emu_core.machine->cpus, user, t->now, spent, how == SETTLE_LEAVING);
        end = emu_media_settle(&emu_core.machine->media, &emu_core.costs,
                               &emu_core.machine->past[user->cpu], begin, b, &wait);
        emu_cpus_extend(&emu_core.machine->cpus, user, end - begin - spent);
    }
    if (how == SETTLE_LEAVING)
        emu_cpus_yield(&emu_core.machine->cpus, user, end);
    if (end - begin >= EMU_WINDOWS * EMU_WINDOW_PS)
        emu_add(EMU_C_overflows, 1);
    if (begin > t->now) {
        atomic_store(&emu_core.machine->clock.thread[t->slot].waited, begin);
        emu_add(EMU_C_cpu_wait_ns, (uint64_t)((begin - t->now) / 1000));
    }
    count_batch(t, accesses, wait);
    emu_add(EMU_C_core_nj, (uint64_t)((end - begin) / 1000 * emu_core.core_mw / 1000));
    emu_new_batch(t);
    t->now = emu_clock_advance(&emu_core.machine->clock, t->slot, end,
                               how == SETTLE_NOW ? EMU_UNLIMITED : emu_core.params.lookahead_ps);
    old = atomic_load(&emu_core.process->end);
    while (old < t->now && !atomic_compare_exchange_weak(&emu_core.process->end, &old, t->now))
        ;
}

static enum emu_tier tier_of_line(uint64_t line)
{
    return emu_tier_of(line << EMU_LINE_SHIFT);
}

static enum emu_miss classify(struct emu_thread *t, uintptr_t a, uint64_t line, unsigned write)
{
    const void *contents = (const void *)(line << EMU_LINE_SHIFT);
    enum emu_miss kind = emu_miss_kind(&t->history, a, write, contents);
    t->dependent += kind == EMU_MISS_DEPENDENT;
    t->streamed += kind == EMU_MISS_STREAM;
    return kind;
}

/* L1 has missed or a line turned dirty. */
static void to_llc(struct emu_thread *t, uintptr_t a, uint64_t line, unsigned write)
{
    struct emu_llc_result r =
        emu_llc_access(&emu_core.llc, line, emu_core.salt, write, tier_of_line);
    int64_t stall = 0;

    if (r.write_back) {
        t->writebacks[r.tier]++;
        t->batch.write_units[r.tier] +=
            emu_media_units(&emu_core.machine->media, &emu_core.costs, r.tier, line, true);
        stall += emu_core.costs.writeback_ps[r.tier];
    }
    if (!r.hit) {
        t->reads[r.tier]++;
        t->batch.read_units[r.tier] +=
            emu_media_units(&emu_core.machine->media, &emu_core.costs, r.tier, line, false);
        stall += emu_core.costs.miss_ps[r.tier][classify(t, a, line, write)];
    }
    t->batch.stall_ps[r.tier] += stall;
    if (r.hit) {
        t->batch.hit_ps += emu_core.costs.hit_ps;
        stall += emu_core.costs.hit_ps;
        t->cache_ps += emu_core.costs.hit_ps;
    }
    t->stall_ps += stall;
    t->left -= EMU_FIX(stall);
    if (__builtin_expect(emu_watching, 0))
        emu_watch(&(struct emu_seen){a, r.tier, write, r.hit, r.write_back, stall});
}

/* The budget is spent; what that means depends on the thread. */
static void new_budget(struct emu_thread *t)
{
    if (t->mode == EMU_T_LIVE)
        emu_settle_inside(t, SETTLE_ORDERED);
    else if (t->mode == EMU_T_NEW)
        emu_adopt(t);
    else
        emu_switch_off(t);
}

void emu_touch_slow(uintptr_t a, unsigned write)
{
    struct emu_thread *t = &emu_self;
    uint64_t line = a >> EMU_LINE_SHIFT;
    enum emu_l1_result r = EMU_L1_HIT;

    /* Most calls end here: an older way. A handler that interrupts this loses or doubles a
     * line at worst, so the core is not entered for it. */
    if (t->mode == EMU_T_LIVE) {
        r = emu_l1_access(&t->l1, line, write);
        if (EMU_LIKELY(r == EMU_L1_HIT && t->left >= 0))
            return;
    }
    if (!emu_enter(t))
        return;
    if (t->left < 0)
        new_budget(t);
    if (r != EMU_L1_HIT && t->mode == EMU_T_LIVE) {
        t->l1_misses += r == EMU_L1_MISS;
        to_llc(t, a, line, write);
    }
    emu_leave(t);
}

void emu_budget_spent(void)
{
    struct emu_thread *t = &emu_self;
    if (!emu_enter(t))
        return;
    new_budget(t);
    emu_leave(t);
}

void emu_touch_range(const volatile void *a, uint64_t n, unsigned write)
{
    uint64_t line = (uintptr_t)a >> EMU_LINE_SHIFT, last;
    if (n == 0)
        return;
    last = ((uintptr_t)a + n - 1) >> EMU_LINE_SHIFT;
    emu_touch(a, write);
    while (++line <= last)
        emu_touch((const volatile void *)(line << EMU_LINE_SHIFT), write);
}

void emu_settle_as(enum emu_settle_how how)
{
    struct emu_thread *t = &emu_self;
    if (t->mode != EMU_T_LIVE || !emu_enter(t))
        return;
    emu_settle_inside(t, how);
    emu_leave(t);
}

void emu_settle(void)
{
    emu_settle_as(SETTLE_ORDERED);
}

void emu_settle_and_yield(void)
{
    emu_settle_as(SETTLE_LEAVING);
}

void emu_settle_now(void)
{
    emu_settle_as(SETTLE_NOW);
}

void emu_settle_debt(void)
{
    if (emu_live() && emu_spent_ps(&emu_self) > DEBT_PS)
        emu_settle_as(SETTLE_DEBT);
}

void emu_settle_debt_ordered(void)
{
    if (emu_live() && emu_spent_ps(&emu_self) > DEBT_PS)
        emu_settle_as(SETTLE_ORDERED);
}

int64_t emu_now(void)
{
    return emu_live() ? emu_self.now + emu_spent_ps(&emu_self) : 0;
}

void emu_catch_up(int64_t ps)
{
    if (!emu_live() || emu_now() >= ps)
        return;
    emu_settle();
    if (emu_self.now < ps)
        emu_self.now = ps;
}
