/* SPDX-License-Identifier: BSD-2-Clause
 * Life of the emulated threads, and their waits. See core.h. */
#include "core/inside.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "settings/start_mask.h"

void emu_go_live(struct emu_thread *t, int slot, int64_t now)
{
    /* memset is the interposed one: it must not settle on a half-made thread, or after
     * a fork on the parent's slot. */
    emu_switch_off(t);
    memset(&t->l1, 0, sizeof(t->l1));
    memset(&t->history, 0, sizeof(t->history));
    t->slot = slot;
    t->now = now;
    emu_new_batch(t);
    emu_faults_begin(t);
    t->mode = EMU_T_LIVE;
    emu_clock_begin(&emu_core.machine->clock, slot);
    emu_add(EMU_C_threads, 1);
}

/* A slot for a thread of this process that starts at `now`. */
int emu_take_slot(int64_t now, const struct emu_cpuset *allowed, int *ret_slot)
{
    int r = emu_clock_join(&emu_core.machine->clock, now, ret_slot);
    if (r == 0)
        emu_cpus_enter(&emu_core.machine->cpus, &emu_core.machine->cpu_user[*ret_slot], allowed);
    return r;
}

/* A thread that nobody announced: main, or one made by clone. */
void emu_adopt(struct emu_thread *t)
{
    int64_t now;
    int slot;

    if (!atomic_load(&emu_core.running)) {
        t->left = t->granted = EMU_LOOK_AGAIN;
        return;
    }
    now = emu_clock_floor(&emu_core.machine->clock);
    if (emu_take_slot(now, emu_affinity_at_start(), &slot) < 0) {
        emu_add(EMU_C_lost_threads, 1);
        emu_switch_off(t);
        return;
    }
    emu_go_live(t, slot, now);
}

void emu_away(uint64_t wait_for)
{
    if (!emu_live() || emu_self.told_away)
        return;
    emu_settle_as(SETTLE_LEAVING);
    if (emu_live()) /* still */
        emu_clock_away(&emu_core.machine->clock, emu_self.slot, wait_for);
}

void emu_back(int64_t known)
{
    int e = errno;
    if (emu_live() && !emu_self.told_away)
        emu_self.now = emu_clock_back(&emu_core.machine->clock, emu_self.slot, emu_self.now, known);
    errno = e;
}

void emu_doze(int64_t ps)
{
    if (!emu_live() || emu_self.told_away)
        return;
    emu_settle_as(SETTLE_LEAVING);
    if (emu_live())
        emu_clock_doze(&emu_core.machine->clock, emu_self.slot, emu_self.now + ps);
}

void emu_doze_end(bool whole)
{
    int e = errno;
    if (emu_live() && !emu_self.told_away)
        emu_self.now =
            emu_clock_doze_end(&emu_core.machine->clock, emu_self.slot, emu_self.now, !whole);
    errno = e;
}

void emu_release_some(uint64_t wait_for, int64_t ps, int n)
{
    if (emu_live())
        emu_clock_release(&emu_core.machine->clock, wait_for, ps, n);
}

void emu_release(uint64_t wait_for, int64_t ps)
{
    emu_release_some(wait_for, ps, -1);
}

void emu_rush(bool on)
{
    if (atomic_load(&emu_core.running))
        emu_clock_rush(&emu_core.machine->clock, on);
}

int emu_thread_prepare(void)
{
    struct emu_cpuset allowed;
    int slot, r;
    if (!atomic_load(&emu_core.running) || !emu_live())
        return -EAGAIN;
    emu_settle();
    emu_cpus_allowed(&emu_core.machine->cpu_user[emu_self.slot], &allowed);
    r = emu_take_slot(emu_self.now, &allowed, &slot);
    return r < 0 ? r : slot;
}

void emu_thread_abandon(int slot)
{
    emu_clock_leave(&emu_core.machine->clock, slot);
}

void emu_thread_begin(int slot, int64_t now)
{
    emu_go_live(&emu_self, slot, now);
}

void emu_thread_end(void)
{
    struct emu_thread *t = &emu_self;
    if (t->mode != EMU_T_LIVE)
        return;
    emu_settle();
    emu_switch_off(t);
    emu_clock_leave(&emu_core.machine->clock, t->slot);
}

void emu_thread_ignore(void)
{
    if (emu_live())
        emu_add(EMU_C_threads, UINT64_MAX); /* none of the program's */
    emu_thread_end();
    emu_switch_off(&emu_self);
}

/* The slot is lost when the process leaves the machine. */
static bool observing(struct emu_thread *t)
{
    if (t->observes && (!atomic_load(&emu_core.running) ||
                        !emu_clock_mine(&emu_core.machine->clock, t->slot, t->observes)))
        t->observes = 0;
    return t->observes != 0;
}

static int first_observe(struct emu_thread *t, int64_t ps)
{
    bool live = t->mode == EMU_T_LIVE;
    int r;

    /* Not for a moment is there neither: the program would run on in it. */
    if (live) {
        emu_add(EMU_C_threads, UINT64_MAX);
        emu_settle_as(SETTLE_LEAVING);
        live = emu_live();
    }
    emu_switch_off(t);
    if (live) {
        emu_clock_turn_observer(&emu_core.machine->clock, t->slot, ps > t->now ? ps : t->now);
    } else {
        r = emu_clock_observe(&emu_core.machine->clock, ps, &t->slot);
        if (r < 0)
            return r;
        emu_cpus_enter(&emu_core.machine->cpus, &emu_core.machine->cpu_user[t->slot],
                       emu_affinity_at_start());
        t->now = emu_clock_floor(&emu_core.machine->clock);
    }
    t->observes = (int)syscall(SYS_gettid);
    return 0;
}

int emu_observe(int64_t ps)
{
    struct emu_thread *t = &emu_self;
    bool was = observing(t);

    if (!atomic_load(&emu_core.running))
        return -ESRCH;
    if (ps >= 0 && !was)
        return first_observe(t, ps);
    if (ps >= 0) {
        emu_clock_hold(&emu_core.machine->clock, t->slot, ps > t->now ? ps : t->now);
    } else if (was) {
        t->observes = 0;
        emu_clock_leave(&emu_core.machine->clock, t->slot);
    }
    return 0;
}

int64_t emu_observed(void)
{
    struct emu_thread *t = &emu_self;
    int64_t now;

    if (t->mode != EMU_T_OFF || !observing(t))
        return -1;
    now = emu_clock_held(&emu_core.machine->clock, t->slot);
    if (now > t->now) /* a thread that comes back may be a little behind */
        t->now = now;
    return t->now;
}

bool emu_visit(void)
{
    struct emu_thread *t = &emu_self;
    bool off = t->mode == EMU_T_OFF;
    int64_t now = emu_observed();

    if (now >= 0) {
        emu_go_live(t, t->slot, now);
        emu_add(EMU_C_threads, UINT64_MAX);
        return true;
    }
    if (t->mode == EMU_T_LIVE || !atomic_load(&emu_core.running) || !emu_enter(t))
        return false;
    t->mode = EMU_T_NEW;
    emu_adopt(t);
    emu_leave(t);
    if (t->mode == EMU_T_LIVE && off)
        emu_add(EMU_C_threads, UINT64_MAX); /* no thread of the program */
    return t->mode == EMU_T_LIVE && off;
}

/* An observer stays where the visit has brought it. */
void emu_visit_end(void)
{
    if (!emu_self.observes) {
        emu_thread_end();
        return;
    }
    emu_settle_as(SETTLE_LEAVING);
    emu_switch_off(&emu_self);
}
