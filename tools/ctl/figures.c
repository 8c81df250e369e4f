/* SPDX-License-Identifier: BSD-2-Clause
 * The doctor's word on the machine's figures: which ones hold, and how to get better ones. */
#include "classify/figures.h"
#include "tools/ctl/ctl.h"
#include "tools/ctl/doctor.h"

static void hear(void *ctx, const char *message)
{
    (void)ctx;
    doctor_add(FOUND_MISSING, "figures", "machine file", "%s", message);
}

static void show(const char *name, const struct medium_figures *m)
{
    doctor_add(FOUND_INFO, "figures", name,
               "read %.0f ns, %.1f GB/s (%.1f at random), write %.0f ns, %.1f GB/s (%.1f)",
               m->read_ns, m->seq_read_mbs / 1e3, m->random_read_mbs / 1e3, m->write_ns,
               m->seq_write_mbs / 1e3, m->random_write_mbs / 1e3);
}

void doctor_figures(const struct hy_settings *s)
{
    static struct figures_found found;
    struct topology t;
    struct figures_query place;

    (void)topology_read("/sys", &t);
    figures_query(&s->pm, &t, &place);
    if (place.backend == HY_PM_NONE) {
        doctor_add(FOUND_INFO, "figures", "from", "not needed: there is no second memory");
        return;
    }
    figures_find(s->machine, &place, &found, hear, NULL);
    bool measured = found.figures.source == FIGURES_MEASURED;
    struct finding *f = doctor_add(measured ? FOUND_OK : FOUND_INFO, "figures", "from", "%s%s",
                                   found.said, measured ? "" : "; not measured here");
    if (!measured)
        doctor_fix(f, "hybridctl calibrate   # when the machine has nothing else to do");
    show("DRAM", &found.figures.medium[HY_DRAM]);
    show("PM", &found.figures.medium[HY_PM]);
}
