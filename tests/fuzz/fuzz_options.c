/* SPDX-License-Identifier: BSD-2-Clause
 * Any environment: no crash, printable messages, settings within their limits,
 * and what is shown of a setting is accepted again and means the same.
 *
 * Input: lines NAME=VALUE as in an environment; with '@' before the key, from
 * a profile. */
#include "fuzz.h"

#include <errno.h>

#include "base/text.h"
#include "settings/rules/options.h"

static unsigned told;

static void hear(void *ctx, const char *message)
{
    (void)ctx;
    told++;
    check_message(message);
}

static void apply(struct hy_settings *s, char *line)
{
    char *eq = strchr(line, '=');
    bool profile = line[0] == '@';
    const char *value = eq ? eq + 1 : "";
    size_t len = eq ? (size_t)(eq - line) : strlen(line);
    enum hy_opt_id id;

    line[len] = '\0';
    id = profile ? options_by_key(line + 1) : options_by_env(line, len);
    if (id == OPT_COUNT) {
        CHECK(options_nearest(line, len) <= OPT_COUNT);
        options_unknown_env(line, len, hear, NULL);
        return;
    }
    enum hy_source before = s->source[id], from = profile ? HY_FROM_PROFILE : HY_FROM_ENV;
    unsigned drop_access = told;
    int r = options_set(s, id, value, from, hear, NULL);

    CHECK(r == 0 || r == -EINVAL);
    CHECK(told == drop_access + (r != 0));
    CHECK(s->source[id] == (r == 0 && from > before ? from : before));
}

static void check_settings(const struct hy_settings *s)
{
    static char shown[HY_PATH_MAX + 64], again[HY_PATH_MAX + 64];
    static struct hy_settings copy;

    CHECK((unsigned)s->policy <= HY_POLICY_OFF && (unsigned)s->cls < HY_CLASS_MAX);
    CHECK((unsigned)s->pm.kind <= HY_PM_EMULATED && (unsigned)s->sites <= HY_ON);
    CHECK((unsigned)s->dram_allocator <= HY_DRAM_NEXT && (unsigned)s->verbose <= 2);
    CHECK(s->dram.value <= (s->dram.is_percent ? 100 : TEXT_SIZE_LIMIT));
    CHECK(s->dram_shared.value <= (s->dram_shared.is_percent ? 100 : TEXT_SIZE_LIMIT));
    CHECK(s->start <= TEXT_SIZE_LIMIT && s->mmap_min >= HY_PAGE && s->site_sample > 0);
    CHECK(s->pm.kind != HY_PM_NODE || s->pm.nodes != 0);
    CHECK(s->pm.kind != HY_PM_FILE || s->pm.dir[0] == '/');
    options_defaults(&copy);
    for (unsigned i = 0; i < OPT_COUNT; i++) {
        enum hy_opt_id id = (enum hy_opt_id)i;

        options_format(s, id, shown, sizeof(shown));
        CHECK(shown[0] != '\0');
        /* A directory that was just short enough is too long behind "file:". */
        if (options_set(&copy, id, shown, HY_FROM_ENV, NULL, NULL) != 0)
            CHECK(strlen(shown) >= HY_PATH_MAX);
        else {
            options_format(&copy, id, again, sizeof(again));
            CHECK(strcmp(shown, again) == 0);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct hy_settings s;
    char *text = malloc(size + 1), *save = NULL;

    CHECK(text);
    memcpy(text, data, size);
    text[size] = '\0';
    told = 0;
    options_defaults(&s);
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
        apply(&s, line);
    check_settings(&s);
    CHECK(options_check(&s, hear, NULL) >= 0);
    free(text);
    return 0;
}
