/* SPDX-License-Identifier: BSD-2-Clause
 * The ring is made for one reader, whose place (`tail`) lets writers go on. Here the reader
 * that is furthest sets it; one that is slower checks after it has copied a sample that no
 * writer can have begun to overwrite it, and else goes on with what is left. */
#include "sys/pages/emulator_samples.h"

#include <emu/pmemu.h>
#include <errno.h>
#include <pthread.h>

#include "sys/dl.h"

struct reader {
    bool open;
    uint64_t at, missed, lost_before;
};

static struct pmemu_ring *ring;
static struct reader pages, tap;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of opening and closing */

static int open_ring(uint64_t period, size_t bytes)
{
    int (*open)(unsigned, uint64_t, size_t, struct pmemu_ring **);
    struct pmemu_ring *opened = NULL;

    open =
        (int (*)(unsigned, uint64_t, size_t, struct pmemu_ring **))dl_global("pmemu_samples_open");
    if (!open)
        return -ENODEV;
    int r = open(PMEMU_SAMPLE_READS | PMEMU_SAMPLE_WRITES, period, bytes, &opened);
    if (r < 0)
        return r;
    __atomic_store_n(&ring, opened, __ATOMIC_RELEASE);
    return 0;
}

static int open_reader(struct reader *r, uint64_t period, size_t bytes)
{
    int e = 0;

    pthread_mutex_lock(&lock);
    if (r->open)
        e = -EBUSY;
    else if (!ring)
        e = open_ring(period, bytes);
    if (e == 0) {
        r->at = __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE);
        r->lost_before = __atomic_load_n(&ring->lost, __ATOMIC_RELAXED);
        r->missed = 0;
        r->open = true;
    }
    pthread_mutex_unlock(&lock);
    return e;
}

/* The machine keeps a ring that was closed, so a reader that is late reads no foreign memory. */
static void close_reader(struct reader *r)
{
    void (*close)(void) = (void (*)(void))dl_global("pmemu_samples_close");

    pthread_mutex_lock(&lock);
    bool was_open = r->open;
    r->open = false;
    if (was_open && !pages.open && !tap.open) {
        if (close)
            close();
        __atomic_store_n(&ring, NULL, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&lock);
}

static void let_writers_on(struct pmemu_ring *g, uint64_t at)
{
    uint64_t tail = __atomic_load_n(&g->tail, __ATOMIC_RELAXED);

    while (tail < at && !__atomic_compare_exchange_n(&g->tail, &tail, at, true, __ATOMIC_RELEASE,
                                                     __ATOMIC_RELAXED))
        ;
}

/* A writer claims number n + slots before it overwrites sample n. */
static bool overtaken(const struct pmemu_ring *g, uint64_t n)
{
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return __atomic_load_n(&g->head, __ATOMIC_RELAXED) - n > g->slots;
}

static bool next_sample(struct reader *r, struct pmemu_ring *g, struct pmemu_sample *ret)
{
    for (;;) {
        const struct pmemu_sample *s = &g->slot[r->at & (g->slots - 1)];
        uint64_t ready = __atomic_load_n(&s->ready, __ATOMIC_ACQUIRE);

        if (ready < r->at + 1 && !overtaken(g, r->at))
            return false;
        if (ready == r->at + 1) {
            *ret = *s;
            if (!overtaken(g, r->at)) {
                r->at++;
                let_writers_on(g, r->at);
                return true;
            }
        }
        /* Half a ring of room, so as not to be overtaken again at once. */
        uint64_t to = __atomic_load_n(&g->head, __ATOMIC_RELAXED) - g->slots / 2;
        r->missed += to - r->at;
        r->at = to;
    }
}

int emulator_samples_open(uint64_t period, size_t bytes)
{
    return open_reader(&pages, period, bytes);
}

void emulator_samples_close(void)
{
    close_reader(&pages);
}

/* A store that misses is two events, a line read and one dirtied, so it is sampled twice as often:
 * half of its samples are the read. Which ones is drawn, as loops have rhythms. */
static bool as_store(const struct pmemu_sample *s)
{
    static uint64_t random = 1; /* one reader */
    if (!s->dirtied || s->source == PMEMU_FROM_LLC)
        return s->dirtied != 0;
    random = random * 6364136223846793005u + 1442695040888963407u;
    return random >> 63;
}

unsigned emulator_samples_drain(void (*fn)(uintptr_t address, bool store))
{
    struct pmemu_ring *g = __atomic_load_n(&ring, __ATOMIC_ACQUIRE);
    struct pmemu_sample sample;
    unsigned n = 0;

    while (g && pages.open && n < g->slots && next_sample(&pages, g, &sample)) {
        fn((uintptr_t)sample.address, as_store(&sample));
        n++;
    }
    return n;
}

int emulator_tap_open(uint64_t period, size_t bytes)
{
    return open_reader(&tap, period, bytes);
}

void emulator_tap_close(void)
{
    close_reader(&tap);
}

unsigned emulator_tap_drain(void (*fn)(uintptr_t address, bool read, bool dirtied))
{
    struct pmemu_ring *g = __atomic_load_n(&ring, __ATOMIC_ACQUIRE);
    struct pmemu_sample sample;
    unsigned n = 0;

    while (g && tap.open && n < g->slots && next_sample(&tap, g, &sample)) {
        fn((uintptr_t)sample.address, sample.source != PMEMU_FROM_LLC, sample.dirtied != 0);
        n++;
    }
    return n;
}

uint64_t emulator_tap_period(void)
{
    const struct pmemu_ring *g = __atomic_load_n(&ring, __ATOMIC_ACQUIRE);
    return g ? g->period : 0;
}

uint64_t emulator_tap_lost(void)
{
    const struct pmemu_ring *g = __atomic_load_n(&ring, __ATOMIC_ACQUIRE);
    return g && tap.open
               ? __atomic_load_n(&g->lost, __ATOMIC_RELAXED) - tap.lost_before + tap.missed
               : 0;
}
