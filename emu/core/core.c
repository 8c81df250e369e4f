/* SPDX-License-Identifier: BSD-2-Clause
 * Threads of the emulated machine. See core.h. */
#include "core/core.h"

#include <errno.h>
#include <string.h>

#include "core/pages.h"

#define FIX(ps)    ((int64_t)((uint64_t)(ps) << EMU_COUNT_BITS))
#define COUNT_MASK (((int64_t)1 << EMU_COUNT_BITS) - 1)
#define DEBT_PS    2000000
#define UNLIMITED  (INT64_MAX / 2)
/* A load from within this distance above a pointer follows the pointer. */
#define FIELD_BYTES 128
#define SALT_SHIFT  42

__thread struct emu_thread emu_self;
int64_t emu_access_step, emu_block_step;

static struct emu_machine *machine;
static struct emu_process *process;
static struct emu_llc llc;
static struct emu_costs costs;
static struct emu_params params;
static const char *machine_path;
static uint64_t salt;
static _Atomic bool running;

static inline void add(enum emu_counter c, uint64_t v)
{
    if (v)
        atomic_fetch_add_explicit(&process->count[c], v, memory_order_relaxed);
}

/* Into the core; false: this thread is in it already. A handler's frame lies below
 * the call that it interrupts; one above means that somebody has jumped out (longjmp). */
static inline bool enter(struct emu_thread *t)
{
    uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
    if (t->inside != 0 && frame < t->inside)
        return false;
    t->inside = frame;
    return true;
}

static inline void leave(struct emu_thread *t)
{
    t->inside = 0;
}

static void new_batch(struct emu_thread *t)
{
    t->batch = (struct emu_batch){.cpu_ps = 0};
    memset(t->reads, 0, sizeof(t->reads));
    memset(t->writebacks, 0, sizeof(t->writebacks));
    t->l1_misses = t->dependent = t->streamed = 0;
    t->stall_ps = 0;
    t->left = t->granted = FIX(params.batch_ps);
}

static void switch_off(struct emu_thread *t)
{
    t->mode = EMU_T_OFF;
    t->left = t->granted = UNLIMITED;
}

static int64_t spent_ps(const struct emu_thread *t)
{
    return (t->granted - t->left + COUNT_MASK) >> EMU_COUNT_BITS;
}

static void settle(struct emu_thread *t)
{
    struct emu_batch *b = &t->batch;
    int64_t spent = spent_ps(t), wait, end, old;
    int64_t accesses = FIX(spent) - (t->granted - t->left);

    /* The process has left the machine: its slots may be somebody else's by now. */
    if (!atomic_load(&running)) {
        switch_off(t);
        return;
    }
    b->cpu_ps = spent - t->stall_ps;
    end = emu_media_settle(&machine->media, &costs, t->now, b, &wait);
    add(EMU_C_instructions, (uint64_t)(b->cpu_ps / params.instruction_ps));
    add(EMU_C_accesses, (uint64_t)accesses);
    add(EMU_C_l1_misses, t->l1_misses);
    add(EMU_C_llc_reads_dram, t->reads[EMU_DRAM]);
    add(EMU_C_llc_reads_pm, t->reads[EMU_PM]);
    add(EMU_C_writebacks_dram, t->writebacks[EMU_DRAM]);
    add(EMU_C_writebacks_pm, t->writebacks[EMU_PM]);
    add(EMU_C_units_read_pm, b->read_units[EMU_PM]);
    add(EMU_C_units_written_pm, b->write_units[EMU_PM]);
    add(EMU_C_dependent_misses, t->dependent);
    add(EMU_C_stream_misses, t->streamed);
    add(EMU_C_compute_ns, (uint64_t)(b->cpu_ps / 1000));
    add(EMU_C_stall_ns, (uint64_t)(t->stall_ps / 1000));
    add(EMU_C_wait_ns, (uint64_t)(wait / 1000));
    new_batch(t);
    t->now = emu_clock_advance(&machine->clock, t->slot, end, params.lookahead_ps);
    old = atomic_load(&process->end);
    while (old < t->now && !atomic_compare_exchange_weak(&process->end, &old, t->now))
        ;
}

static void go_live(struct emu_thread *t, int slot, int64_t now)
{
    /* memset is the interposed one: it must not settle on a half-made thread, or after
     * a fork on the parent's slot. */
    switch_off(t);
    memset(&t->l1, 0, sizeof(t->l1));
    memset(t->stream, 0, sizeof(t->stream));
    t->slot = slot;
    t->now = now;
    new_batch(t);
    t->mode = EMU_T_LIVE;
    emu_clock_begin(&machine->clock, slot);
    add(EMU_C_threads, 1);
}

/* A thread that nobody announced: main, or one made by clone. */
static void adopt(struct emu_thread *t)
{
    int64_t now;
    int slot;

    if (!atomic_load(&running)) {
        t->left = t->granted = FIX(1000000); /* look again soon */
        return;
    }
    now = emu_clock_floor(&machine->clock);
    if (emu_clock_join(&machine->clock, now, &slot) < 0) {
        add(EMU_C_lost_threads, 1);
        switch_off(t);
        return;
    }
    go_live(t, slot, now);
}

static enum emu_tier tier_of_line(uint64_t line)
{
    return emu_tier_of(line << EMU_LINE_SHIFT);
}

/* What kind of miss; remembers what the next ones are judged by. */
static enum emu_miss classify(struct emu_thread *t, uintptr_t a, uint64_t line, unsigned write)
{
    enum emu_miss kind = write ? EMU_MISS_STORE : EMU_MISS_RANDOM;

    for (unsigned i = 0; i < EMU_STREAMS; i++) {
        int64_t d = (int64_t)(line - t->stream[i]);
        if (d != 0 && d >= -2 && d <= 4) {
            t->stream[i] = line;
            t->streamed++;
            return EMU_MISS_STREAM;
        }
    }
    t->stream[t->next_stream++ % EMU_STREAMS] = line;
    if (write)
        return kind;
    for (unsigned i = 0; i < 16; i++)
        if (a - t->word[i / 8][i % 8] < FIELD_BYTES) {
            t->dependent++;
            kind = EMU_MISS_DEPENDENT;
            break;
        }
    /* Now: the line may be unmapped before the next miss. The program is about to
     * read it, so it is there. */
    __builtin_memcpy(t->word[t->next_word++ % 2], (const void *)(line << EMU_LINE_SHIFT), 64);
    return kind;
}

/* L1 has missed or a line turned dirty. */
static void to_llc(struct emu_thread *t, uintptr_t a, uint64_t line, unsigned write)
{
    struct emu_llc_result r = emu_llc_access(&llc, line, salt, write, tier_of_line);
    int64_t stall = r.hit ? costs.hit_ps : 0;

    if (r.write_back) {
        t->writebacks[r.tier]++;
        t->batch.write_units[r.tier] +=
            emu_media_units(&machine->media, &costs, r.tier, line, true);
        stall += costs.writeback_ps[r.tier];
    }
    if (!r.hit) {
        t->reads[r.tier]++;
        t->batch.read_units[r.tier] +=
            emu_media_units(&machine->media, &costs, r.tier, line, false);
        stall += costs.miss_ps[r.tier][classify(t, a, line, write)];
        t->batch.stall_ps[r.tier] += stall;
    } else if (stall > 0) {
        /* A hit waits for nobody, but its stall is part of the batch. */
        t->batch.hit_ps += stall;
    }
    t->stall_ps += stall;
    t->left -= FIX(stall);
}

void emu_touch_slow(uintptr_t a, unsigned write)
{
    struct emu_thread *t = &emu_self;
    uint64_t line = a >> EMU_LINE_SHIFT;

    if (!enter(t))
        return;
    if (t->left < 0) {
        if (t->mode == EMU_T_LIVE)
            settle(t);
        else if (t->mode == EMU_T_NEW)
            adopt(t);
        else
            switch_off(t);
    }
    if (t->mode == EMU_T_LIVE) {
        enum emu_l1_result r = emu_l1_access(&t->l1, line, write);
        if (r == EMU_L1_MISS)
            t->l1_misses++;
        if (r != EMU_L1_HIT)
            to_llc(t, a, line, write);
    }
    leave(t);
}

void emu_budget_spent(void)
{
    struct emu_thread *t = &emu_self;
    if (!enter(t))
        return;
    if (t->mode == EMU_T_LIVE)
        settle(t);
    else if (t->mode == EMU_T_NEW)
        adopt(t);
    else
        switch_off(t);
    leave(t);
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

void emu_settle(void)
{
    struct emu_thread *t = &emu_self;
    if (t->mode != EMU_T_LIVE || !enter(t))
        return;
    settle(t);
    leave(t);
}

void emu_settle_debt(void)
{
    if (emu_live() && spent_ps(&emu_self) > DEBT_PS)
        emu_settle();
}

int64_t emu_now(void)
{
    return emu_live() ? emu_self.now + spent_ps(&emu_self) : 0;
}

void emu_catch_up(int64_t ps)
{
    if (!emu_live() || emu_now() >= ps)
        return;
    emu_settle();
    if (emu_self.now < ps)
        emu_self.now = ps;
}

void emu_away(uint64_t wait_for)
{
    if (!emu_live())
        return;
    emu_settle();
    emu_clock_away(&machine->clock, emu_self.slot, wait_for);
}

void emu_back(int64_t known)
{
    int e = errno;
    if (emu_live())
        emu_self.now = emu_clock_back(&machine->clock, emu_self.slot, emu_self.now, known);
    errno = e;
}

void emu_release(uint64_t wait_for, int64_t ps)
{
    if (emu_live())
        emu_clock_release(&machine->clock, wait_for, ps);
}

int emu_thread_prepare(void)
{
    int slot, r;
    if (!atomic_load(&running) || !emu_live())
        return -EAGAIN;
    emu_settle();
    r = emu_clock_join(&machine->clock, emu_self.now, &slot);
    return r < 0 ? r : slot;
}

void emu_thread_abandon(int slot)
{
    emu_clock_leave(&machine->clock, slot);
}

void emu_thread_begin(int slot, int64_t now)
{
    go_live(&emu_self, slot, now);
}

void emu_thread_end(void)
{
    struct emu_thread *t = &emu_self;
    if (t->mode != EMU_T_LIVE)
        return;
    emu_settle();
    switch_off(t);
    emu_clock_leave(&machine->clock, t->slot);
}

bool emu_core_running(void)
{
    return atomic_load(&running);
}

const struct emu_params *emu_core_params(void)
{
    return &params;
}

static void choose_salt(void)
{
    salt = (atomic_load(&process->serial) & 0xffff) << SALT_SHIFT;
}

int emu_core_start(const char *path, const struct emu_params *p)
{
    int r = emu_machine_attach(path, p, &machine, &process);
    if (r < 0)
        return r;
    machine_path = path;
    params = *p;
    emu_costs_init(&costs, p);
    llc = (struct emu_llc){.set_mask = emu_llc_sets((uint32_t)p->llc_kb) - 1, .slot = machine->llc};
    choose_salt();
    emu_access_step = FIX(p->access_ps) - 1;
    emu_block_step = FIX(p->block_ps);
    atomic_store(&running, true);
    emu_self.mode = EMU_T_NEW;
    adopt(&emu_self);
    return 0;
}

void emu_core_forked(void)
{
    if (!atomic_load(&running))
        return;
    /* The slots are the parent's. Without one of its own the child runs uncounted. */
    if (emu_machine_join(machine, &process) < 0) {
        atomic_store(&running, false);
        switch_off(&emu_self);
        return;
    }
    choose_salt();
    if (emu_self.mode == EMU_T_LIVE) {
        int64_t now = emu_self.now;
        int slot;
        if (emu_clock_join(&machine->clock, now, &slot) < 0) {
            switch_off(&emu_self);
            return;
        }
        atomic_store(&process->begin, now);
        go_live(&emu_self, slot, now);
    }
}

void emu_core_stop(uint64_t ret_count[EMU_COUNTER_COUNT], int64_t *ret_virtual_ps,
                   uint64_t *ret_unseen)
{
    emu_settle();
    atomic_store(&running, false);
    switch_off(&emu_self);
    for (int c = 0; c < EMU_COUNTER_COUNT; c++)
        ret_count[c] = atomic_load(&process->count[c]);
    *ret_virtual_ps = atomic_load(&process->end) - atomic_load(&process->begin);
    *ret_unseen = atomic_load(&machine->clock.unseen);
    emu_machine_leave(machine, process, machine_path);
}
