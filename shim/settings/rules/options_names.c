/* SPDX-License-Identifier: BSD-2-Clause
 * Options by the names that users give them. */
#include <string.h>

#include "base/text.h"
#include "settings/rules/options.h"

#define PREFIX     "HYBRID_"
#define PREFIX_LEN (sizeof(PREFIX) - 1)
#define EMULATOR   "HYBRID_EMU_"

/* An environment name without the prefix, or a profile key. */
static enum hy_opt_id by_short_name(const char *name, size_t len)
{
    for (unsigned i = 0; i < OPT_COUNT; i++)
        if (strlen(options_info((enum hy_opt_id)i)->key) == len &&
            text_distance(options_info((enum hy_opt_id)i)->key, len, name, len) == 0)
            return (enum hy_opt_id)i;
    return OPT_COUNT;
}

enum hy_opt_id options_by_env(const char *name, size_t len)
{
    if (len < PREFIX_LEN || !text_same(name, PREFIX, PREFIX_LEN))
        return OPT_COUNT;
    for (unsigned i = 0; i < OPT_COUNT; i++) {
        const char *env = options_info((enum hy_opt_id)i)->env;

        if (text_same(env + PREFIX_LEN, name + PREFIX_LEN, len - PREFIX_LEN) && env[len] == '\0')
            return (enum hy_opt_id)i;
    }
    return OPT_COUNT;
}

enum hy_opt_id options_by_key(const char *key)
{
    size_t len = strlen(key);

    for (size_t i = 0; i < len; i++)
        if (key[i] >= 'A' && key[i] <= 'Z')
            return OPT_COUNT;
    return by_short_name(key, len);
}

enum hy_opt_id options_nearest(const char *name, size_t len)
{
    unsigned best = ~0u;
    enum hy_opt_id id = OPT_COUNT;

    if (len > PREFIX_LEN && memcmp(name, PREFIX, PREFIX_LEN) == 0) {
        name += PREFIX_LEN;
        len -= PREFIX_LEN;
    }
    for (unsigned i = 0; i < OPT_COUNT; i++) {
        const char *key = options_info((enum hy_opt_id)i)->key;
        unsigned d = text_distance(name, len, key, strlen(key));

        if (d < best && text_is_near(d, HY_MAX(len, strlen(key)))) {
            best = d;
            id = (enum hy_opt_id)i;
        }
    }
    return id;
}

void options_unknown_env(const char *name, size_t len, hy_diag_fn diag, void *ctx)
{
    enum hy_opt_id near = options_nearest(name, len);
    char quoted[TEXT_QUOTE_CAP];

    if (len >= sizeof(EMULATOR) - 1 && memcmp(name, EMULATOR, sizeof(EMULATOR) - 1) == 0)
        return;
    text_quote(name, len, quoted, sizeof(quoted));
    if (near == OPT_COUNT)
        options_tell(diag, ctx, "%s is not an option of libhybrid and is ignored", quoted);
    else
        options_tell(diag, ctx, "%s is not an option of libhybrid and is ignored; did you mean %s?",
                     quoted, options_info(near)->env);
}
