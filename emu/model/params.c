/* SPDX-License-Identifier: BSD-2-Clause
 * Presets and settings by name. See params.h. */
#include "model/params.h"

#include <errno.h>
#include <string.h>

static const struct preset {
    const char *name, *help;
    struct emu_params params;
} presets[] = {
#define EMU_PRESET(n, h, ...) {.name = n, .help = h, .params = {__VA_ARGS__}},
#include "model/presets.def"
#undef EMU_PRESET
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* What emu_params_set knows: a value of the text times `scale` is what is kept. */
static const struct setting {
    const char *name;
    size_t offset;
    int64_t scale, min, max;
} settings[] = {
#define FIELD(f) offsetof(struct emu_params, f)
#define MEDIUM(n, t)                                                                               \
    {n "_read_ns", FIELD(medium[t].read_ps), 1000, 1, 100000},                                     \
        {n "_write_ns", FIELD(medium[t].write_ps), 1000, 1, 100000},                               \
        {n "_read_mbs", FIELD(medium[t].read_mbs), 1, 10, 10000000},                               \
        {n "_write_mbs", FIELD(medium[t].write_mbs), 1, 10, 10000000},                             \
        {n "_mlp_stream", FIELD(medium[t].mlp_stream), 1, 1, 64},                                  \
        {n "_read_pj", FIELD(medium[t].read_pj), 1, 0, 1000000000},                                \
        {n "_write_pj", FIELD(medium[t].write_pj), 1, 0, 1000000000},                              \
    {                                                                                              \
        n "_endurance", FIELD(medium[t].endurance), 1, 0, INT64_MAX                                \
    }
    MEDIUM("dram", EMU_DRAM),
    MEDIUM("pm", EMU_PM),
    {"pm_block", FIELD(medium[EMU_PM].block), 1, 64, 4096},
    {"pm_bytes", FIELD(pm_bytes), 1, 1, INT64_MAX},
    {"move_page_ns", FIELD(move_page_ps), 1000, 0, 1000000},
    {"move_batch_ns", FIELD(move_batch_ps), 1000, 0, 1000000},
    {"fault_ns", FIELD(fault_ps), 1000, 0, 1000000},
    {"ctl_read_pct", FIELD(ctl_read_pct), 1, 0, 1000},
    {"ctl_write_pct", FIELD(ctl_write_pct), 1, 0, 1000},
    {"ctl_cross_pct", FIELD(ctl_cross_pct), 1, 0, 1000},
    {"ctl_queue", FIELD(ctl_queue), 1, 1, 64},
    {"ctl_dram_pct", FIELD(ctl_dram_pct), 1, 0, 1000},
    {"scatter_pct", FIELD(scatter_pct), 1, 0, 100},
    {"mlp_random", FIELD(mlp_random), 1, 1, 64},
    {"mlp_store", FIELD(mlp_store), 1, 1, 64},
    {"mlp_writeback", FIELD(mlp_writeback), 1, 1, 64},
    {"load_pct", FIELD(load_pct), 1, 0, 1000},
    {"llc_kb", FIELD(llc_kb), 1, 64, EMU_LLC_MAX_KB},
    {"hit_ps", FIELD(hit_ps), 1, 0, 100000},
    {"instruction_ps", FIELD(instruction_ps), 1, 1, 100000},
    {"access_ps", FIELD(access_ps), 1, 1, 100000},
    {"block_ps", FIELD(block_ps), 1, 0, 100000},
    {"batch_us", FIELD(batch_ps), 1000000, 1, 1000},
    {"core_mw", FIELD(core_mw), 1, 0, 1000000},
    {"core_low_mw", FIELD(core_low_mw), 1, 0, 1000000},
    {"lookahead_us", FIELD(lookahead_ps), 1000000, 1, 10000},
#undef MEDIUM
#undef FIELD
};

size_t emu_preset_count(void)
{
    return COUNT(presets);
}

const char *emu_preset_name(size_t i)
{
    return presets[i].name;
}

const char *emu_preset_help(size_t i)
{
    return presets[i].help;
}

int emu_params_preset(const char *name, struct emu_params *ret)
{
    for (size_t i = 0; i < COUNT(presets); i++)
        if (strcmp(name, presets[i].name) == 0) {
            *ret = presets[i].params;
            return 0;
        }
    return -ENOENT;
}

/* Digits up to ',' or the end; NULL: no such number within [min, max]. */
static const char *number(const char *s, const struct setting *k, int64_t *ret)
{
    int64_t v = 0;
    const char *p = s;
    for (; *p >= '0' && *p <= '9'; p++) {
        int digit = *p - '0';
        if (v > (k->max - digit) / 10)
            return NULL;
        v = v * 10 + digit;
    }
    if (p == s || (*p != ',' && *p != '\0') || v < k->min)
        return NULL;
    *ret = v * k->scale;
    return p;
}

int emu_params_set(struct emu_params *p, const char *text, const char **ret_bad)
{
    struct emu_params out = *p;
    const char *s = text;

    while (*s) {
        size_t n = strcspn(s, "="), i = 0;
        const char *end = NULL;
        int64_t v = 0;
        while (i < COUNT(settings) &&
               (strlen(settings[i].name) != n || memcmp(settings[i].name, s, n) != 0))
            i++;
        if (i < COUNT(settings) && s[n] == '=')
            end = number(s + n + 1, &settings[i], &v);
        if (!end) {
            *ret_bad = s;
            return -EINVAL;
        }
        memcpy((char *)&out + settings[i].offset, &v, sizeof(v));
        s = *end == ',' ? end + 1 : end;
    }
    /* Blocks are found by a shift: round down to a power of two. */
    while (out.medium[EMU_PM].block & (out.medium[EMU_PM].block - 1))
        out.medium[EMU_PM].block &= out.medium[EMU_PM].block - 1;
    *p = out;
    return 0;
}

void emu_params_clock(struct emu_params *p, unsigned mhz)
{
    int64_t *const of_the_core[] = {&p->hit_ps, &p->instruction_ps, &p->access_ps, &p->block_ps};

    for (size_t i = 0; i < COUNT(of_the_core); i++)
        *of_the_core[i] = (*of_the_core[i] * EMU_MHZ + mhz / 2) / mhz;
}

int64_t emu_core_mw(const struct emu_params *p, unsigned mhz)
{
    int64_t mw = p->core_low_mw + (p->core_mw - p->core_low_mw) * ((int64_t)mhz - EMU_LOW_MHZ) /
                                      (EMU_MHZ - EMU_LOW_MHZ);
    return mw > 0 ? mw : 0;
}
