/* SPDX-License-Identifier: BSD-2-Clause
 * Samples of accesses. See samples.h and pmemu.h. */
#include "program/samples.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/core.h"
#include "pages/watch.h"

/* Samplers are compiled apart. */
_Static_assert(offsetof(struct pmemu_ring, head) == 64 &&
                   offsetof(struct pmemu_ring, tail) == 128 &&
                   offsetof(struct pmemu_ring, slot) == 192 && sizeof(struct pmemu_sample) == 40,
               "pmemu.h: layout of the ring");

static struct pmemu_ring *ring; /* NULL: off */
static uint32_t opened;         /* how often: threads start counting anew */

/* A thread's way to its next sample. */
static __thread struct {
    uint64_t left, random;
    uint32_t opened, number;
} self __attribute__((tls_model("initial-exec")));

/* Distances of mean `period`, three quarters to five quarters of it: a fixed one would meet
 * the same lines of a loop again and again. */
static uint64_t next_distance(uint64_t period)
{
    uint64_t half = period / 2;
    self.random = self.random * 6364136223846793005u + 1442695040888963407u;
    return half < 2 ? period : period - half / 2 + (self.random >> 33) % (half / 2 * 2 + 1);
}

static void put(struct pmemu_ring *r, const struct emu_seen *s)
{
    const struct emu_params *p = emu_core_params();
    const struct emu_costs *c = emu_core_costs();
    uint64_t n = __atomic_load_n(&r->head, __ATOMIC_RELAXED);
    struct pmemu_sample *to;

    do {
        if (n - __atomic_load_n(&r->tail, __ATOMIC_ACQUIRE) >= r->slots) {
            __atomic_fetch_add(&r->lost, 1, __ATOMIC_RELAXED);
            return;
        }
    } while (!__atomic_compare_exchange_n(&r->head, &n, n + 1, true, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
    to = &r->slot[n & (r->slots - 1)];
    to->address = s->address;
    to->vtime_ns = emu_now() / 1000;
    to->thread = self.number;
    to->latency_ns = (uint32_t)((s->hit ? c->hit_ps : p->medium[s->tier].read_ps) / 1000);
    to->stall_ns = (uint32_t)(s->stall_ps / 1000);
    to->store = s->store;
    to->source = s->hit ? PMEMU_FROM_LLC : s->tier == EMU_PM ? PMEMU_FROM_PM : PMEMU_FROM_DRAM;
    to->dirtied = s->dirtied;
    to->medium = (uint8_t)s->tier;
    __atomic_store_n(&to->ready, n + 1, __ATOMIC_RELEASE);
}

static void see(const struct emu_seen *s)
{
    struct pmemu_ring *r = __atomic_load_n(&ring, __ATOMIC_ACQUIRE);
    uint32_t now = __atomic_load_n(&opened, __ATOMIC_RELAXED);
    uint64_t n;

    if (!r)
        return;
    /* An access can be two events: a store that misses reads a line and dirties it. */
    n = (unsigned)((r->events & PMEMU_SAMPLE_READS) && !s->hit) +
        (unsigned)((r->events & PMEMU_SAMPLE_WRITES) && s->dirtied) +
        (unsigned)((r->events & PMEMU_SAMPLE_LLC_HIT) && s->hit);
    if (self.opened != now) {
        self.opened = now;
        self.number = (uint32_t)syscall(SYS_gettid);
        self.random = self.number * (uint64_t)now;
        self.left = next_distance(r->period);
    }
    while (n >= self.left) {
        n -= self.left;
        self.left = next_distance(r->period);
        put(r, s);
    }
    self.left -= n;
}

static const struct emu_watcher samples = {.see = see, .forked = emu_samples_close};

int emu_samples_open(unsigned events, uint64_t period, void *memory, size_t bytes)
{
    const unsigned known = PMEMU_SAMPLE_READS | PMEMU_SAMPLE_WRITES | PMEMU_SAMPLE_LLC_HIT;
    struct pmemu_ring *r = memory, *none = NULL;
    uint64_t slots = EMU_SAMPLES_MIN;

    if (events == 0 || (events & ~known) || period == 0 || period > UINT32_MAX ||
        bytes < sizeof(*r) + slots * sizeof(r->slot[0]))
        return -EINVAL;
    while (sizeof(*r) + 2 * slots * sizeof(r->slot[0]) <= bytes)
        slots *= 2;
    r->slots = slots;
    r->period = period;
    r->events = events;
    __atomic_fetch_add(&opened, 1, __ATOMIC_RELAXED);
    if (!__atomic_compare_exchange_n(&ring, &none, r, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        return -EBUSY;
    emu_watch_on(EMU_WATCH_SAMPLES, &samples);
    return 0;
}

void emu_samples_close(void)
{
    emu_watch_off(EMU_WATCH_SAMPLES);
    __atomic_store_n(&ring, NULL, __ATOMIC_RELEASE);
}
