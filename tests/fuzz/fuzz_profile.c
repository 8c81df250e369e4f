/* SPDX-License-Identifier: BSD-2-Clause
 * Any file given as profile: no crash, few and printable messages, a result
 * within its bounds or none at all. The input is the file. */
#include "fuzz.h"

#include <errno.h>

#include "place/rules/site_quota.h"
#include "record/rules/profile_write.h"
#include "tools/ctl/rules/profile_merge.h"
#include "tools/ctl/rules/profile_modules.h"

static unsigned told;

static void hear(void *ctx, const char *message)
{
    (void)ctx;
    told++;
    check_message(message);
}

static void hear_option(void *ctx, const char *message)
{
    (void)ctx;
    check_message(message);
}

static void check_text(const char *text, size_t cap)
{
    CHECK(memchr(text, '\0', cap));
    for (const char *c = text; *c; c++)
        CHECK((unsigned char)*c >= 0x20 && *c != 0x7f);
}

static void check_sites(const struct profile *p)
{
    CHECK(p->n_sites <= PROFILE_MAX_SITES);
    for (unsigned i = 0; i < p->n_sites; i++) {
        const struct profile_site *s = &p->sites[i];

        check_text(s->name, sizeof(s->name));
        CHECK(s->name[0] != '\0');
        CHECK(s->n_frames >= 1 && s->n_frames <= PROFILE_MAX_FRAMES);
        CHECK(!s->has_tier || s->tier == HY_DRAM || s->tier == HY_PM);
    }
}

/* Whatever sizes and counts it claims: a sound plan, never more than the share but for what is
 * named, and a finite time. */
static void check_plan(const struct profile *p)
{
    static struct plan_site site[PLAN_MAX];
    static struct quota_site run[PLAN_MAX];
    static struct plan_scratch scratch;
    static struct site_plan plan;
    static uint64_t quota[PLAN_MAX];
    struct machine_figures f;
    struct plan_work work;
    uint64_t share = p->footprint / 3 + 1, planned = 0, given = 0;
    bool counted;

    CHECK(figures_default(figures_name(p->n_sites % figures_count()), &f) == 0);
    counted = site_plan_work(p, &f, &work) == 0;
    unsigned n = site_plan_sites(p, site);
    CHECK(n >= p->n_sites && n <= PLAN_MAX);
    site_plan_make(&f, counted ? &work : NULL, site, n, share, &scratch, &plan);
    for (unsigned i = 0; i < n; i++) {
        CHECK(plan.order[plan.place[i].rank] == i);
        run[i] = (struct quota_site){.live = site[i].bytes / 2, .fixed = site[i].fixed};
        run[i].need = run[i].block = site[i].bytes;
        planned += site[i].fixed ? 0 : plan.place[i].dram_bytes;
    }
    site_quota_fill(&plan, run, share, quota);
    for (unsigned i = 0; i < n; i++)
        given += site[i].fixed ? 0 : quota[i];
    CHECK(planned <= share && given <= share);
    if (counted) {
        double t = site_plan_time(&f, &work, site, &plan);
        CHECK(t >= 0 && t < 1e300);
    }
}

static void check_profile(const struct profile *p)
{
    static struct hy_settings settings;
    static const uint8_t id[BUILD_ID_MAX];
    struct profile_subject who = {"/usr/bin/app", "app -x", id, sizeof(id)};
    bool seen[OPT_COUNT] = {false};

    check_text(p->exe, sizeof(p->exe));
    check_text(p->path, sizeof(p->path));
    check_text(p->args, sizeof(p->args));
    CHECK(!strchr(p->exe, '/'));
    CHECK(p->build_id_len <= BUILD_ID_MAX);
    CHECK((unsigned)p->cls < HY_CLASS_MAX);
    CHECK(p->slowdown >= 0 && p->slowdown <= 1000);
    CHECK(p->write_intensive >= -1 && p->write_intensive <= 1);
    CHECK(p->n_options <= OPT_COUNT);
    options_defaults(&settings);
    for (unsigned i = 0; i < p->n_options; i++) {
        CHECK((unsigned)p->option[i].id < OPT_COUNT && !seen[p->option[i].id]);
        seen[p->option[i].id] = true;
        check_text(p->option[i].value, sizeof(p->option[i].value));
        CHECK(!options_info(p->option[i].id)->env_only);
        (void)options_set(&settings, p->option[i].id, p->option[i].value, HY_FROM_PROFILE,
                          hear_option, NULL);
    }
    check_sites(p);
    if (p->n_sites <= 64) /* a plan of many takes milliseconds */
        check_plan(p);
    CHECK((unsigned)profile_matches(p, &who) <= PROFILE_OTHER_BUILD);
}

static void check_record(const struct profile *p)
{
    CHECK(p->n_phases <= PROFILE_MAX_PHASES);
    CHECK(p->n_behaviours <= PROFILE_BEHAVIOURS);
    for (unsigned i = 0; i < p->n_phases; i++) {
        CHECK((unsigned)p->phases[i].cls < HY_CLASS_MAX);
        CHECK(p->phases[i].slowdown >= 0 && p->phases[i].slowdown <= 1000);
    }
    CHECK(p->n_tasks <= PROFILE_MAX_TASKS);
    for (unsigned i = 0; i < p->n_tasks; i++)
        CHECK(p->tasks[i].needs >= 1 && p->tasks[i].needs <= PROFILE_MAX_NEEDS);
    check_text(p->source.method, sizeof(p->source.method));
    check_text(p->source.figures, sizeof(p->source.figures));
    check_text(p->source.libhybrid, sizeof(p->source.libhybrid));
    CHECK(p->exposure <= 1 && p->foreseen <= 1 && p->busy_threads >= 0);
    CHECK(p->source.confidence >= 0 && p->source.confidence <= 1);
}

/* What was read can be merged, ranked and written, and nothing is wrong with the result. */
static void check_written(const struct profile *p)
{
    static struct profile_site sites[2 * PROFILE_MAX_SITES], again[PROFILE_MAX_SITES];
    static char text[PROFILE_WRITE_CAP(PROFILE_MAX_SITES)];
    static struct profile merged, back;
    struct profile_merge m;
    int64_t len;

    merged.sites = sites;
    profile_merge_begin(&m, &merged, 2 * PROFILE_MAX_SITES);
    CHECK(profile_merge_add(&m, p, "a", hear_option, NULL) == 0);
    CHECK(profile_merge_add(&m, p, "a", hear_option, NULL) == 0);
    profile_merge_end(&m);
    profile_fold_alike(&merged);
    (void)profile_rank_sites(&merged, 0, PROFILE_MAX_SITES);
    profile_number_sites(&merged);
    CHECK(merged.n_sites <= p->n_sites);
    len = profile_write(&merged, NULL, 0, "", text, sizeof(text));
    CHECK(len > 0);
    back.sites = again;
    told = 0;
    CHECK(profile_parse(text, (size_t)len, "x", &back, hear, NULL) == 0);
    CHECK(told == 0 && back.n_sites == merged.n_sites && back.cls == merged.cls);
    CHECK(strcmp(back.exe, merged.exe) == 0 || merged.exe[0] != '\0');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct profile_site sites[PROFILE_MAX_SITES];
    static struct profile p, before;
    char name[16] = "";
    int r;

    /* The file's name is hostile as well. */
    memcpy(name, data, size < sizeof(name) ? size : sizeof(name) - 1);
    memset(&p, 0xa5, sizeof(p));
    p.sites = sites;
    before = p;
    struct profile_module modules[4];
    CHECK(profile_modules((const char *)data, size, modules, 4) <= 4);
    told = 0;
    r = profile_parse((const char *)data, size, name, &p, hear, NULL);
    CHECK(told <= PROFILE_MAX_MESSAGES + 2);
    if (r == 0) {
        check_profile(&p);
        check_record(&p);
        check_written(&p);
    } else
        CHECK((r == -EINVAL || r == -E2BIG) && told > 0 && memcmp(&p, &before, sizeof(p)) == 0);
    return 0;
}
