/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/emulator_samples.h"

#include <emu/pmemu.h>
#include <errno.h>

#include "sys/dl.h"

static struct pmemu_ring *ring;

int emulator_samples_open(uint64_t period, size_t bytes)
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
    ring = opened;
    return 0;
}

void emulator_samples_close(void)
{
    void (*close)(void) = (void (*)(void))dl_global("pmemu_samples_close");
    if (ring && close)
        close();
    ring = NULL;
}

unsigned emulator_samples_drain(void (*fn)(uintptr_t address, bool store))
{
    struct pmemu_sample sample;
    unsigned n = 0;
    while (ring && n < ring->slots && pmemu_samples_next(ring, &sample) == 1) {
        fn((uintptr_t)sample.address, sample.dirtied != 0);
        n++;
    }
    return n;
}
