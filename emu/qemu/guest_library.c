/* SPDX-License-Identifier: BSD-2-Clause
 * libpmemu-guest.so: preloaded into programs under QEMU, it has the functions of pmemu.h, so
 * that allocators, policies and samplers find there what an instrumented program finds in
 * libpmemu.so. In a process that is no guest they do nothing and say -ENOSYS. */
#include <dlfcn.h>
#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "program/sde.h"
#include "pmemu.h"
#include "qemu/hypercall.h"

#define EXPORT __attribute__((visibility("default")))

/* Keeps errno, which syscall() of libc would not. */
static int64_t ask(enum emu_hypercall_function f, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    struct emu_hypercall h = {f, -ENOSYS, {a, b, c, d}};
    long r = EMU_HYPERCALL;

    __asm__ volatile("syscall" : "+a"(r) : "D"(&h) : "rcx", "r11", "memory");
    return h.result;
}

static uint64_t address_of(const void *p)
{
    return (uint64_t)(uintptr_t)p;
}

EXPORT int64_t pmemu_vtime_ns(void)
{
    int64_t r = ask(EMU_HC_VTIME_NS, 0, 0, 0, 0);
    return r < 0 ? 0 : r;
}

EXPORT void pmemu_away(uint64_t key)
{
    ask(EMU_HC_AWAY, key, 0, 0, 0);
}

EXPORT void pmemu_back(int64_t vtime_ns)
{
    ask(EMU_HC_BACK, (uint64_t)vtime_ns, 0, 0, 0);
}

EXPORT void pmemu_release(uint64_t key, int64_t vtime_ns)
{
    ask(EMU_HC_RELEASE, key, (uint64_t)vtime_ns, 0, 0);
}

EXPORT int pmemu_set_tier(const void *address, size_t bytes, int tier)
{
    return (int)ask(EMU_HC_SET_TIER, address_of(address), bytes, (uint64_t)tier, 0);
}

EXPORT int64_t pmemu_move(const void *address, size_t bytes, int tier)
{
    return ask(EMU_HC_MOVE, address_of(address), bytes, (uint64_t)tier, 0);
}

EXPORT int pmemu_tier_of(const void *address)
{
    return (int)ask(EMU_HC_TIER_OF, address_of(address), 0, 0, 0);
}

EXPORT int pmemu_range_tiers(const void *address, size_t bytes, uint8_t *ret_tier)
{
    return (int)ask(EMU_HC_RANGE_TIERS, address_of(address), bytes, address_of(ret_tier), 0);
}

EXPORT int64_t pmemu_dram_free(void)
{
    return ask(EMU_HC_DRAM_FREE, 0, 0, 0, 0);
}

EXPORT int pmemu_fill_ways(int ways)
{
    return (int)ask(EMU_HC_FILL_WAYS, (uint64_t)ways, 0, 0, 0);
}

EXPORT void pmemu_discard(const void *address, size_t bytes)
{
    ask(EMU_HC_DISCARD, address_of(address), bytes, 0, 0);
}

EXPORT uint64_t pmemu_tier_bytes(int tier)
{
    int64_t r = ask(EMU_HC_TIER_BYTES, (uint64_t)tier, 0, 0, 0);
    return r < 0 ? 0 : (uint64_t)r;
}

EXPORT void pmemu_ignore_thread(void)
{
    ask(EMU_HC_IGNORE_THREAD, 0, 0, 0, 0);
}

EXPORT int pmemu_hold(int64_t vtime_ns)
{
    return (int)ask(EMU_HC_HOLD, (uint64_t)vtime_ns, 0, 0, 0);
}

/* QEMU's guests have no code beside the program's: a preloaded library counts. */
EXPORT int pmemu_ignore_code(const void *start, const void *end)
{
    (void)start;
    (void)end;
    return 0;
}

EXPORT int64_t pmemu_event(int event)
{
    return ask(EMU_HC_EVENT, (uint64_t)event, 0, 0, 0);
}

EXPORT int pmemu_count_pages(void)
{
    return (int)ask(EMU_HC_COUNT_PAGES, 0, 0, 0, 0);
}

EXPORT int pmemu_range_counts(const void *address, size_t bytes, struct pmemu_range_counts *ret)
{
    return (int)ask(EMU_HC_RANGE_COUNTS, address_of(address), bytes, address_of(ret), 0);
}

EXPORT int pmemu_samples_open(unsigned events, uint64_t period, size_t bytes,
                              struct pmemu_ring **ret)
{
    int e = errno, r;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    r = memory == MAP_FAILED
            ? -errno
            : (int)ask(EMU_HC_SAMPLES_OPEN, events, period, bytes, address_of(memory));
    if (memory != MAP_FAILED && r < 0)
        munmap(memory, bytes);
    if (r == 0)
        *ret = memory;
    errno = e;
    return r;
}

EXPORT void pmemu_samples_close(void)
{
    ask(EMU_HC_SAMPLES_CLOSE, 0, 0, 0, 0);
}

/* The call's result is the real time, which the plugin cannot change. */
EXPORT time_t time(time_t *ret)
{
    struct timespec t;
    int e = errno;

    clock_gettime(CLOCK_REALTIME, &t);
    errno = e;
    if (ret)
        *ret = t.tv_sec;
    return t.tv_sec;
}

/* PAPI's events cost a program 0.1 ms of its start: for those only that may ask. */
static void __attribute__((constructor)) start(void)
{
    if (dlsym(RTLD_DEFAULT, "PAPI_library_init"))
        emu_sde_register();
}
