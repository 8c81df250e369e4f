/* SPDX-License-Identifier: BSD-2-Clause
 * Any file given as profile: no crash, few and printable messages, a result
 * within its bounds or none at all. The input is the file. */
#include "fuzz.h"

#include <errno.h>

#include "decide/profile.h"

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
    CHECK((unsigned)profile_matches(p, &who) <= PROFILE_OTHER_BUILD);
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
    told = 0;
    r = profile_parse((const char *)data, size, name, &p, hear, NULL);
    CHECK(told <= PROFILE_MAX_MESSAGES + 2);
    if (r == 0)
        check_profile(&p);
    else
        CHECK((r == -EINVAL || r == -E2BIG) && told > 0 && memcmp(&p, &before, sizeof(p)) == 0);
    return 0;
}
