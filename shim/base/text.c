/* SPDX-License-Identifier: BSD-2-Clause
 * Text helpers of settings and profiles. The C library's counterparts depend on
 * the locale (strtod, isspace), may allocate or take exponential time (fnmatch). */
#include "base/text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define QUOTE_BYTES  48
#define DISTANCE_MAX 32

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Invisible characters, and those that change the direction or the line of what
 * follows, would let a value disguise the message that shows it. */
static bool is_deceptive(uint32_t cp)
{
    return cp < 0xa0 || (cp >= 0x200b && cp <= 0x200f) || (cp >= 0x2028 && cp <= 0x202e) ||
           (cp >= 0x2060 && cp <= 0x206f) || cp == 0xfeff || (cp >= 0xfff0 && cp <= 0xffff) ||
           cp == 0xad || cp == 0x61c || (cp >= 0xe0000 && cp <= 0xe0fff);
}

/* Length of the printable UTF-8 character at s, 0 if there is none. */
static size_t utf8_length(const unsigned char *s, size_t len)
{
    uint32_t cp;
    size_t n;

    if (s[0] < 0x80)
        return s[0] >= 0x20 && s[0] < 0x7f;
    if (s[0] >= 0xc2 && s[0] <= 0xdf)
        n = 2, cp = s[0] & 0x1f;
    else if (s[0] >= 0xe0 && s[0] <= 0xef)
        n = 3, cp = s[0] & 0x0f;
    else if (s[0] >= 0xf0 && s[0] <= 0xf4)
        n = 4, cp = s[0] & 0x07;
    else
        return 0;
    if (n > len)
        return 0;
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        cp = cp << 6 | (s[i] & 0x3f);
    }
    if ((n == 3 && cp < 0x800) || (n == 4 && (cp < 0x10000 || cp > 0x10ffff)) ||
        (cp >= 0xd800 && cp <= 0xdfff) || is_deceptive(cp))
        return 0;
    return n;
}

void text_quote(const char *s, size_t len, char *buf, size_t cap)
{
    static const char hex[] = "0123456789abcdef";
    size_t at = 0, out = 0;

    if (cap == 0)
        return;
    while (at < len && at < QUOTE_BYTES) {
        size_t n = utf8_length((const unsigned char *)s + at, len - at);
        bool as_is = n > 0 && s[at] != '"' && s[at] != '\\';
        size_t need = as_is ? n : 4;

        if (out + need + 4 > cap) /* "..." and the NUL must still fit */
            break;
        if (as_is) {
            memcpy(buf + out, s + at, n);
            at += n;
        } else {
            unsigned char c = (unsigned char)s[at++];
            char escape[4] = {'\\', 'x', hex[c >> 4], hex[c & 15]};

            memcpy(buf + out, escape, 4);
        }
        out += need;
    }
    if (at < len && out + 4 <= cap) {
        memcpy(buf + out, "...", 3);
        out += 3;
    }
    buf[out] = '\0';
}

int text_parse_u64(const char *s, size_t len, uint64_t *ret)
{
    uint64_t n = 0;
    int result = 0;

    if (len == 0)
        return -EINVAL;
    for (size_t i = 0; i < len; i++) {
        if (!text_is_digit(s[i]))
            return -EINVAL; /* wins over too large: "999...9x" is no number at all */
        if (__builtin_mul_overflow(n, (uint64_t)10, &n) ||
            __builtin_add_overflow(n, (uint64_t)(s[i] - '0'), &n))
            result = -ERANGE;
    }
    if (result == 0)
        *ret = n;
    return result;
}

int text_parse_size(const char *s, size_t len, uint64_t *ret)
{
    static const char units[] = "kmgt";
    size_t digits = 0;
    unsigned shift = 0;
    uint64_t n;
    int r;

    while (digits < len && text_is_digit(s[digits]))
        digits++;
    if (digits < len) {
        size_t unit = text_find(units, sizeof(units) - 1, lower(s[digits]));
        if (unit == sizeof(units) - 1)
            return -EINVAL;
        shift = 10 * (unsigned)(unit + 1);
        size_t rest = len - digits - 1;
        const char *tail = s + digits + 1;

        if (!(rest == 0 || (rest == 1 && lower(tail[0]) == 'b') ||
              (rest == 2 && lower(tail[0]) == 'i' && lower(tail[1]) == 'b')))
            return -EINVAL;
    }
    r = text_parse_u64(s, digits, &n);
    if (r < 0)
        return r;
    if (n > TEXT_SIZE_LIMIT >> shift)
        return -ERANGE;
    *ret = n << shift;
    return 0;
}

void text_format_size(uint64_t bytes, char *buf, size_t cap)
{
    static const char units[] = "\0KMGT";
    unsigned u = 0;

    while (u < 4 && bytes != 0 && bytes % 1024 == 0) {
        bytes /= 1024;
        u++;
    }
    snprintf(buf, cap, "%llu%.1s", (unsigned long long)bytes, &units[u]);
}

int text_hex_digit(char c)
{
    if (text_is_digit(c))
        return c - '0';
    c = lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int text_parse_hex(const char *s, size_t len, uint64_t *ret)
{
    uint64_t n = 0;

    if (len == 0 || len > 16)
        return len == 0 ? -EINVAL : -ERANGE;
    for (size_t i = 0; i < len; i++) {
        int d = text_hex_digit(s[i]);

        if (d < 0)
            return -EINVAL;
        n = n << 4 | (uint64_t)d;
    }
    *ret = n;
    return 0;
}

int text_parse_decimal(const char *s, size_t len, double *ret)
{
    size_t whole = text_find(s, len, '.');
    double n = 0, scale = 1;

    if (whole == 0 || whole + 1 == len) /* nothing before the point, or behind it */
        return -EINVAL;
    for (size_t i = 0; i < len; i++) {
        if (i == whole)
            continue;
        if (!text_is_digit(s[i]))
            return -EINVAL;
        n = n * 10 + (s[i] - '0');
        if (i > whole)
            scale *= 10;
    }
    if (len > 31)
        return -ERANGE;
    *ret = n / scale;
    return 0;
}

static size_t to_bar(const char *s)
{
    size_t n = 0;
    while (s[n] != '\0' && s[n] != '|') /* words are short, and each start asks for some */
        n++;
    return n;
}

size_t text_choice_word(const char *choices, int index, const char **ret_word)
{
    while (index-- > 0) {
        choices += to_bar(choices);
        if (*choices++ == '\0')
            return 0;
    }
    *ret_word = choices;
    return to_bar(choices);
}

int text_choice(const char *choices, const char *s, size_t len)
{
    const char *word;
    size_t n;

    for (int i = 0; (n = text_choice_word(choices, i, &word)) > 0; i++)
        if (n == len && text_same(word, s, n))
            return i;
    return -1;
}

void text_choices_prose(const char *choices, char *buf, size_t cap)
{
    size_t out = 0, n;
    const char *word;

    if (cap == 0)
        return;
    buf[0] = '\0';
    for (int i = 0; (n = text_choice_word(choices, i, &word)) > 0; i++) {
        const char *join = i == 0 ? "" : strchr(word, '|') ? ", " : " or ";
        int w = snprintf(buf + out, cap - out, "%s%.*s", join, (int)n, word);

        if (w < 0 || (size_t)w >= cap - out)
            return;
        out += (size_t)w;
    }
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

void text_trim(const char **s, size_t *len)
{
    for (; *len > 0 && is_blank(**s); (*len)--)
        (*s)++;
    while (*len > 0 && is_blank((*s)[*len - 1]))
        (*len)--;
}

bool text_next_line(const char **at, const char *end, const char **ret, size_t *ret_len)
{
    const char *start = *at;

    if (start == end)
        return false;
    const char *stop = memchr(start, '\n', (size_t)(end - start)) ?: end;
    *at = stop + (stop < end);
    *ret = start;
    *ret_len = (size_t)(stop - start);
    text_trim(ret, ret_len);
    return true;
}

bool text_has_control(const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)s[i] < 0x20 || s[i] == 0x7f)
            return true;
    return false;
}

static char fold(char c)
{
    return c == '-' ? '_' : lower(c);
}

unsigned text_distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
    uint8_t row[3][DISTANCE_MAX + 1]; /* of the usual table: i-2, i-1 and i */

    if (a_len > DISTANCE_MAX || b_len > DISTANCE_MAX)
        return DISTANCE_MAX;
    for (size_t j = 0; j <= b_len; j++)
        row[0][j] = (uint8_t)j;
    for (size_t i = 1; i <= a_len; i++) {
        uint8_t *now = row[i % 3], *prev = row[(i + 2) % 3], *before = row[(i + 1) % 3];

        now[0] = (uint8_t)i;
        for (size_t j = 1; j <= b_len; j++) {
            char x = fold(a[i - 1]), y = fold(b[j - 1]);
            unsigned d = prev[j - 1] + (x != y);

            d = HY_MIN(d, HY_MIN(prev[j], now[j - 1]) + 1u);
            if (i > 1 && j > 1 && x == fold(b[j - 2]) && y == fold(a[i - 2]))
                d = HY_MIN(d, before[j - 2] + 1u);
            now[j] = (uint8_t)d;
        }
    }
    return row[a_len % 3][b_len];
}

bool text_is_near(unsigned distance, size_t len)
{
    return distance <= 3 && (distance * 3 <= len || (distance == 1 && len >= 2));
}

/* One element of a pattern against c. ret_next: the pattern behind it. An
 * unclosed '[' stands for itself. */
static bool glob_one(const char *p, char c, const char **ret_next)
{
    const unsigned char *set = (const unsigned char *)p + 1;
    unsigned char u = (unsigned char)c;
    bool negate, found = false;

    *ret_next = p + 1;
    if (*p == '?')
        return true;
    if (*p == '\\' && p[1]) {
        *ret_next = p + 2;
        return p[1] == c;
    }
    if (*p != '[')
        return *p == c;
    negate = *set == '!' || *set == '^';
    set += negate;
    for (bool first = true; *set && (*set != ']' || first); first = false) {
        unsigned char from = *set, to = from;

        if (set[1] == '-' && set[2] && set[2] != ']') {
            to = set[2];
            set += 2;
        }
        set++;
        found |= u >= from && u <= to;
    }
    if (!*set)
        return c == '[';
    *ret_next = (const char *)set + 1;
    return found != negate;
}

bool text_glob(const char *pattern, const char *s)
{
    const char *star = NULL, *resume = NULL, *next;

    while (*s) {
        if (*pattern == '*') {
            star = ++pattern;
            resume = s;
        } else if (*pattern && glob_one(pattern, *s, &next)) {
            pattern = next;
            s++;
        } else if (star) { /* only the last star can need another try */
            pattern = star;
            s = ++resume;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return *pattern == '\0';
}

static bool take_digits(const char **at, uint64_t *ret)
{
    uint64_t v = 0;
    if (**at < '0' || **at > '9')
        return false;
    for (; **at >= '0' && **at <= '9'; (*at)++)
        v = HY_MIN(v * 10 + (uint64_t)(**at - '0'), UINT32_MAX);
    *ret = v;
    return true;
}

bool text_next_range(const char **at, uint64_t *ret_lo, uint64_t *ret_hi)
{
    const char *p = *at;
    uint64_t lo, hi;

    p += *p == ',';
    if (!take_digits(&p, &lo))
        return false;
    hi = lo;
    if (*p == '-') {
        p++;
        if (!take_digits(&p, &hi))
            return false;
    }
    *at = p;
    *ret_lo = lo;
    *ret_hi = HY_MAX(lo, hi);
    return true;
}

static const struct {
    char name[3];
    uint64_t ns;
} units[] = {{"m", 60000000000u}, {"s", 1000000000u}, {"ms", 1000000u}, {"us", 1000u}};

int text_parse_time(const char *s, size_t len, uint64_t *ret)
{
    size_t digits = 0;
    uint64_t n;

    while (digits < len && s[digits] >= '0' && s[digits] <= '9')
        digits++;
    for (size_t i = 0; i < HY_ARRAY_SIZE(units); i++) {
        if (len - digits >= sizeof(units[i].name) || units[i].name[len - digits] != '\0' ||
            !text_same(units[i].name, s + digits, len - digits))
            continue;
        int r = text_parse_u64(s, digits, &n);

        if (r < 0)
            return r;
        if (n > ((uint64_t)1 << 60) / units[i].ns)
            return -ERANGE;
        *ret = n * units[i].ns;
        return 0;
    }
    return -EINVAL;
}

void text_format_time(uint64_t ns, char *buf, size_t cap)
{
    size_t i = 0;

    while (i + 1 < HY_ARRAY_SIZE(units) && (ns == 0 || ns % units[i].ns != 0))
        i++;
    (void)snprintf(buf, cap, "%llu%s", (unsigned long long)(ns / units[i].ns), units[i].name);
}
