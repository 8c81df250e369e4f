/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/emulator.h"

#include <emu/pmemu.h>
#include <errno.h>

#include "sys/dl.h"
#include "sys/os.h"

/* The emulated clock goes some 20 us in a millisecond; and the program waits for who polls. */
#define POLL_NS 200000ull

/* Its functions; the last tells that all are there. */
#define FUNCTIONS(X)                                                                               \
    X(discard)                                                                                     \
    X(move)                                                                                        \
    X(range_tiers)                                                                                 \
    X(dram_free)                                                                                   \
    X(tier_bytes)                                                                                  \
    X(vtime_ns)                                                                                    \
    X(hold)                                                                                        \
    X(offer_events)                                                                                \
    X(fill_ways)                                                                                   \
    X(ignore_thread)                                                                               \
    X(set_tier)

static struct {
#define X(name) __typeof__(&pmemu_##name) name;
    FUNCTIONS(X)
    X(ignore_code)
#undef X
} em;
static bool machine_asked;

/* Weak: the loader tells whether there is an emulator. A look-up that fails makes it allocate. */
extern __typeof__(pmemu_ignore_code) pmemu_ignore_code __attribute__((weak));

bool emulator_open(void)
{
    if (__atomic_exchange_n(&machine_asked, true, __ATOMIC_ACQ_REL))
        return em.set_tier != NULL;
    em.ignore_code = pmemu_ignore_code;
    if (!em.ignore_code)
        return false;
    emulator_ignore_code_of((const void *)(uintptr_t)emulator_open);
#define X(name) em.name = (__typeof__(em.name))dl_global("pmemu_" #name);
    FUNCTIONS(X)
#undef X
    return em.set_tier != NULL;
}

void emulator_set_tier(const void *base, size_t bytes, enum hy_tier t)
{
    if (HY_UNLIKELY(em.set_tier != NULL))
        (void)em.set_tier(base, bytes, t == HY_PM);
}

void emulator_discard(const void *base, size_t bytes)
{
    if (HY_UNLIKELY(em.discard != NULL))
        em.discard(base, bytes);
}

void emulator_ignore_code_of(const void *address)
{
    struct dl_object o;
    if (em.ignore_code && dl_find(address, &o) == 0)
        (void)em.ignore_code((const void *)o.start, (const void *)o.end);
}

int64_t emulator_move(const void *base, size_t bytes, enum hy_tier t)
{
    return em.move ? em.move(base, bytes, t == HY_PM) : -ENODEV;
}

int emulator_range_tiers(const void *base, size_t bytes, uint8_t *ret)
{
    return em.range_tiers ? em.range_tiers(base, bytes, ret) : -ENODEV;
}

uint64_t emulator_dram_free(void)
{
    int64_t n = em.dram_free ? em.dram_free() : INT64_MAX;
    return n >= 0 && n < INT64_MAX ? (uint64_t)n : UINT64_MAX;
}

uint64_t emulator_bytes(enum hy_tier t)
{
    return em.tier_bytes ? em.tier_bytes(t == HY_PM) : 0;
}

int emulator_fill_ways(unsigned ways)
{
    return em.fill_ways ? em.fill_ways((int)ways) : -ENODEV;
}

uint64_t emulator_now_ns(void)
{
    return em.vtime_ns ? (uint64_t)em.vtime_ns() : 0;
}

uint64_t emulator_clock_ns(void)
{
    return emulator_open() ? emulator_now_ns() : os_now_ns();
}

uint64_t emulator_sleep_ns(uint64_t ns, uint64_t real_ns)
{
    static const uint32_t nobody;
    return emulator_sleep_word(ns, real_ns, &nobody, 0);
}

uint64_t emulator_sleep_word(uint64_t ns, uint64_t real_ns, const uint32_t *word, uint32_t was)
{
    int64_t start = em.vtime_ns();
    uint64_t until = os_now_ns() + real_ns, passed = 0;

    if (em.hold)
        (void)em.hold(start + (int64_t)HY_MIN(ns, (uint64_t)INT64_MAX / 4));
    while (passed < ns && os_now_ns() < until && __atomic_load_n(word, __ATOMIC_ACQUIRE) == was) {
        os_wait_word(word, was, POLL_NS);
        int64_t now = em.vtime_ns(); /* a thread that comes back may be a little behind */
        passed = now > start ? (uint64_t)(now - start) : 0;
    }
    return passed;
}

void emulator_let_go(void)
{
    if (em.hold)
        (void)em.hold(-1);
}

void emulator_offer_events(void)
{
    if (em.offer_events)
        (void)em.offer_events();
}

void emulator_ignore_thread(void)
{
    /* In one step: a program that ran on in between would be somewhere else in each run. */
    if (em.hold && em.hold(em.vtime_ns()) == 0)
        return;
    if (em.ignore_thread)
        em.ignore_thread();
}
