/* SPDX-License-Identifier: BSD-2-Clause
 * Reads and writes as the emulated machine samples them. */
#include "pages/sampler.h"
#include "sys/pages/emulator_samples.h"

#define RING_BYTES ((size_t)16 << 20) /* touched as far as samples wait in it */

static int open_ring(void)
{
    return emulator_samples_open(SAMPLER_PERIOD, RING_BYTES);
}

static int drain(sampler_access_fn fn)
{
    return (int)emulator_samples_drain(fn);
}

const struct sampler_source sampler_emulated = {
    .name = "emulated-samples",
    .reads = true,
    .writes = true,
    .open = open_ring,
    .close = emulator_samples_close,
    .drain = drain,
    .period = SAMPLER_PERIOD,
    .present = sampler_present,
};
