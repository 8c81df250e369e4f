/* SPDX-License-Identifier: BSD-2-Clause
 * What guests' pmemu_ functions do in the plugin. See hypercall.h. Guests' addresses are
 * ours, so most arguments go through as they are. */
#include "qemu/hypercall.h"

#include <errno.h>
#include <stddef.h>

#include "program/samples.h"
#include "pmemu.h"
#include "qemu/guest.h"

static void *pointer(uint64_t address)
{
    return (void *)address; /* NOLINT: guests' addresses are ours */
}

static int64_t range_counts(const uint64_t *a)
{
    struct pmemu_range_counts counts;
    int r = pmemu_range_counts(pointer(a[0]), a[1], &counts);
    return r < 0 ? r : guest_write(a[2], &counts, sizeof(counts));
}

static int64_t range_tiers(const uint64_t *a)
{
    uint8_t tier[1024];
    uint64_t at = a[0], to = a[2], left = a[1];
    int r = 0;

    while (r == 0 && left) {
        uint64_t room = sizeof(tier) * PMEMU_PAGE - at % PMEMU_PAGE, n = left < room ? left : room;
        r = pmemu_range_tiers(pointer(at), n, tier);
        if (r == 0)
            r = guest_write(to, tier, (at % PMEMU_PAGE + n + PMEMU_PAGE - 1) / PMEMU_PAGE);
        to += sizeof(tier);
        at += n;
        left -= n;
    }
    return r;
}

static int64_t call(uint64_t function, const uint64_t *a)
{
    switch (function) {
    case EMU_HC_VTIME_NS:
        return pmemu_vtime_ns();
    case EMU_HC_AWAY:
        pmemu_away(a[0]);
        return 0;
    case EMU_HC_BACK:
        pmemu_back((int64_t)a[0]);
        return 0;
    case EMU_HC_RELEASE:
        pmemu_release(a[0], (int64_t)a[1]);
        return 0;
    case EMU_HC_SET_TIER:
        return pmemu_set_tier(pointer(a[0]), a[1], (int)a[2]);
    case EMU_HC_MOVE:
        return pmemu_move(pointer(a[0]), a[1], (int)a[2]);
    case EMU_HC_TIER_OF:
        return pmemu_tier_of(pointer(a[0]));
    case EMU_HC_DISCARD:
        pmemu_discard(pointer(a[0]), a[1]);
        return 0;
    case EMU_HC_TIER_BYTES:
        return (int64_t)pmemu_tier_bytes((int)a[0]);
    case EMU_HC_IGNORE_THREAD:
        pmemu_ignore_thread();
        return 0;
    case EMU_HC_EVENT:
        return pmemu_event((int)a[0]);
    case EMU_HC_COUNT_PAGES:
        return pmemu_count_pages();
    case EMU_HC_RANGE_COUNTS:
        return range_counts(a);
    case EMU_HC_SAMPLES_OPEN:
        return emu_samples_open((unsigned)a[0], a[1], pointer(a[3]), a[2]);
    case EMU_HC_SAMPLES_CLOSE:
        pmemu_samples_close();
        return 0;
    case EMU_HC_HOLD:
        return pmemu_hold((int64_t)a[0]);
    case EMU_HC_RANGE_TIERS:
        return range_tiers(a);
    case EMU_HC_DRAM_FREE:
        return pmemu_dram_free();
    case EMU_HC_FILL_WAYS:
        return pmemu_fill_ways((int)a[0]);
    default:
        return -ENOSYS;
    }
}

void hypercall(uint64_t address)
{
    struct emu_hypercall h;

    if (guest_read(address, &h, sizeof(h)) < 0)
        return;
    h.result = call(h.function, h.arg);
    (void)guest_write(address, &h, sizeof(h));
}
