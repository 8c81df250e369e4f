/* SPDX-License-Identifier: BSD-2-Clause
 * Build-ids, and whether a profile is about the program at hand. */
#include "settings/rules/profile.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"

int build_id_parse(const char *text, uint8_t *id, unsigned *ret_len)
{
    size_t len = strlen(text);

    if (len < 2 || len > 2 * BUILD_ID_MAX || len % 2 != 0)
        return -EINVAL;
    for (size_t i = 0; i < len; i++)
        if (text_hex_digit(text[i]) < 0)
            return -EINVAL;
    memset(id, 0, BUILD_ID_MAX);
    for (size_t i = 0; i < len; i++)
        id[i / 2] = (uint8_t)(id[i / 2] << 4 | text_hex_digit(text[i]));
    *ret_len = (unsigned)(len / 2);
    return 0;
}

void build_id_format(const uint8_t *id, unsigned len, char *buf, size_t cap)
{
    static const char digits[] = "0123456789abcdef";
    size_t out = 0;

    if (cap == 0)
        return;
    for (unsigned i = 0; i < HY_MIN(len, BUILD_ID_MAX) && out + 3 <= cap; i++) {
        buf[out++] = digits[id[i] >> 4];
        buf[out++] = digits[id[i] & 15];
    }
    buf[out] = '\0';
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

enum profile_fit profile_matches(const struct profile *p, const struct profile_subject *who)
{
    const char *path = who->exe_path ?: "", *args = who->args ?: "";
    bool named = p->exe[0] || p->path[0] || p->args[0];

    if ((p->exe[0] && strcmp(p->exe, base_name(path)) != 0) ||
        (p->path[0] && !text_glob(p->path, path)) || (p->args[0] && !text_glob(p->args, args)))
        return PROFILE_OTHER_PROGRAM;
    if (p->build_id_len == 0 || (who->build_id_len == p->build_id_len &&
                                 memcmp(who->build_id, p->build_id, p->build_id_len) == 0))
        return PROFILE_FITS;
    return named ? PROFILE_OTHER_BUILD : PROFILE_OTHER_PROGRAM;
}
