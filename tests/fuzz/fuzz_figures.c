/* SPDX-License-Identifier: BSD-2-Clause
 * Any file given as machine file: no crash, few and printable messages, figures within
 * their bounds or none at all; what is accepted once is accepted again. */
#include "fuzz.h"

#include <errno.h>
#include <math.h>

#include "classify/rules/machine_figures.h"

static unsigned told;

static void hear(void *ctx, const char *message)
{
    (void)ctx;
    told++;
    check_message(message);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct machine_figures f, before, again;
    char why[256];
    int r;

    memset(&f, 0xa5, sizeof(f));
    before = f;
    told = 0;
    r = figures_parse((const char *)data, size, "m.ini", &f, hear, NULL);
    CHECK(told <= FIGURES_MAX_MESSAGES);
    if (r != 0) {
        CHECK((r == -EINVAL || r == -E2BIG) && told > 0 && memcmp(&f, &before, sizeof(f)) == 0);
        return 0;
    }
    CHECK(told == 0 && memchr(f.name, '\0', sizeof(f.name)));
    CHECK(memchr(f.of.cpu, '\0', sizeof(f.of.cpu)) && memchr(f.of.pm, '\0', sizeof(f.of.pm)));
    CHECK(isfinite(f.of.dram_mib) && isfinite(f.of.pm_mib) && f.medium[HY_PM].stream_ns >= 0);
    CHECK((unsigned)f.source <= FIGURES_MEASURED && f.cycle_ns > 0);
    for (int t = 0; t < HY_TIERS; t++) {
        const struct medium_figures *m = &f.medium[t];
        CHECK(m->read_ns >= 1 && m->write_ns >= 1 && m->seq_read_mbs >= 1);
        CHECK(m->seq_write_mbs >= 1 && m->random_read_mbs >= 1 && m->random_write_mbs >= 1);
        CHECK(isfinite(m->read_knee) && isfinite(m->write_knee));
    }
    CHECK(figures_parse((const char *)data, size, "m.ini", &again, hear, NULL) == 0 && told == 0);
    CHECK(memcmp(&f, &again, sizeof(f)) == 0);
    CHECK(!figures_mismatch(&f.of, &again.of, why, sizeof(why), NULL));
    return 0;
}
