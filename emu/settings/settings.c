/* SPDX-License-Identifier: BSD-2-Clause
 * Settings from the environment. See settings.h. */
#include "settings/settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PREFIX "HYBRID_EMU_"

void emu_refuse(const char *format, ...)
{
    char line[512];
    int n;
    __builtin_va_list ap;

    __builtin_va_start(ap, format);
    n = vsnprintf(line, sizeof(line) - 1, format, ap);
    __builtin_va_end(ap);
    if (n > (int)sizeof(line) - 2)
        n = (int)sizeof(line) - 2;
    /* One line whatever a value holds. */
    for (int i = 0; i < n; i++)
        if ((unsigned char)line[i] < ' ' || line[i] == 127)
            line[i] = '?';
    line[n] = '\n';
    dprintf(STDERR_FILENO, "pmemu[%d]: %.*s", (int)getpid(), n + 1, line);
    _exit(78);
}

const char *emu_setting(enum emu_setting s)
{
    const char *v = secure_getenv(emu_setting_info(s)->env);
    return v && *v ? v : emu_setting_info(s)->dflt;
}

void emu_setting_refuse(enum emu_setting s)
{
    const struct emu_setting_info *i = emu_setting_info(s);
    emu_refuse("%s=%.100s: allowed is %s", i->env, emu_setting(s), i->allowed);
}

int emu_setting_choice(enum emu_setting s)
{
    const char *v = emu_setting(s), *word = emu_setting_info(s)->allowed;
    for (int i = 0;; i++) {
        size_t n = strcspn(word, "|");
        if (strlen(v) == n && memcmp(v, word, n) == 0)
            return i;
        if (word[n] == '\0')
            emu_setting_refuse(s);
        word += n + 1;
    }
}

static const char *text_or_null(enum emu_setting s)
{
    const char *v = emu_setting(s);
    return *v ? v : NULL;
}

/* A misspelt name would silently measure another machine. */
static void refuse_unknown(void)
{
    for (char **e = environ; e && *e; e++) {
        size_t n = strcspn(*e, "=");
        int s = 0;
        if (strncmp(*e, PREFIX, sizeof(PREFIX) - 1) != 0)
            continue;
        while (s < EMU_SETTING_COUNT && (strlen(emu_setting_info((enum emu_setting)s)->env) != n ||
                                         memcmp(emu_setting_info((enum emu_setting)s)->env, *e, n)))
            s++;
        if (s == EMU_SETTING_COUNT)
            emu_refuse("%.*s: no such setting (hybrid-emu settings lists them)",
                       (int)(n < 60 ? n : 60), *e);
    }
}

int emu_settings_cpus(int *ret_count, struct emu_cpuset *ret_start)
{
    const char *list = emu_setting(EMU_S_AFFINITY);
    char *end;
    long n = strtol(emu_setting(EMU_S_CPUS), &end, 10);

    if (*end || n < 1 || n > EMU_CPUS_MAX)
        return -EINVAL;
    if (!*list)
        emu_cpuset_fill(ret_start, (int)n);
    else if (emu_cpuset_parse(list, (int)n, ret_start) < 0)
        return -EINVAL;
    *ret_count = (int)n;
    return 0;
}

static void __attribute__((noreturn)) refuse_cpus(void)
{
    emu_refuse("HYBRID_EMU_CPUS=%.20s HYBRID_EMU_AFFINITY=%.60s: from 1 to %d CPUs, and a list of "
               "some of them such as 0-3,8",
               emu_setting(EMU_S_CPUS), emu_setting(EMU_S_AFFINITY), EMU_CPUS_MAX);
}

static void read_params(struct emu_settings *s)
{
    struct emu_cpuset start;
    const char *bad;
    int cpus;

    s->preset = emu_setting(EMU_S_PRESET);
    if (emu_params_preset(s->preset, &s->params) < 0) {
        char names[128] = "";
        for (size_t i = 0, n = 0; i < emu_preset_count(); i++)
            n += (size_t)snprintf(names + n, sizeof(names) - n, " %s", emu_preset_name(i));
        emu_refuse("HYBRID_EMU_PRESET=%.60s: no such machine; there are:%s", s->preset, names);
    }
    if (emu_params_set(&s->params, emu_setting(EMU_S_SET), &bad) < 0)
        emu_refuse("HYBRID_EMU_SET: not a setting within its limits: %.60s", bad);
    if (emu_settings_cpus(&cpus, &start) < 0)
        refuse_cpus();
    s->params.cpus = cpus;
}

/* "64M" in bytes; -1: not such a number. */
static int64_t bytes_of(const char *text)
{
    static const char units[] = "KMGT";
    char *end;
    long long n = strtoll(text, &end, 10);
    const char *unit = *end ? strchr(units, *end & ~0x20) : NULL;

    if (end == text || n <= 0 || (*end && (!unit || end[1])))
        return -1;
    for (const char *u = units; unit && u <= unit; u++)
        if (__builtin_mul_overflow(n, 1024, &n))
            return -1;
    return n;
}

static void read_place(struct emu_settings *s)
{
    const char *dram = text_or_null(EMU_S_DRAM);

    if (emu_place_parse(emu_setting(EMU_S_PLACE), &s->place) < 0)
        emu_setting_refuse(EMU_S_PLACE);
    s->params.dram_bytes = dram ? bytes_of(dram) : 0;
    if (s->params.dram_bytes < 0)
        emu_setting_refuse(EMU_S_DRAM);
    if (!dram && strcmp(emu_setting(EMU_S_PLACE), "first-touch") == 0)
        emu_refuse("HYBRID_EMU_PLACE=first-touch: HYBRID_EMU_DRAM must say how much DRAM there is");
}

static void read_mhz(struct emu_settings *s)
{
    char *end;
    long n = strtol(emu_setting(EMU_S_MHZ), &end, 10);

    if (*end || n < 400 || n > 10000)
        emu_setting_refuse(EMU_S_MHZ);
    s->mhz = (unsigned)n;
}

void emu_settings_read(struct emu_settings *ret)
{
    refuse_unknown();
    read_params(ret);
    read_place(ret);
    read_mhz(ret);
    ret->page_counts = emu_setting_choice(EMU_S_PAGE_COUNTS) == 1;
    ret->ways = 1 + (unsigned)emu_setting_choice(EMU_S_WAYS);
    ret->machine = text_or_null(EMU_S_MACHINE);
    ret->pm_dir = text_or_null(EMU_S_PM_DIR);
    ret->stats = text_or_null(EMU_S_STATS);
}
