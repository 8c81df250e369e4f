/* SPDX-License-Identifier: BSD-2-Clause
 * Text in and out for settings and profiles. Everything works on bytes, knows
 * no locale and allocates nothing, so it can run inside any program. */
#ifndef HYBRID_BASE_TEXT_H
#define HYBRID_BASE_TEXT_H

#include "base/types.h"

#define TEXT_QUOTE_CAP  256                 /* enough for any result of text_quote */
#define TEXT_SIZE_LIMIT ((uint64_t)1 << 50) /* 1024T: no size above it makes sense */

/* One printable line from any bytes: what is not printable UTF-8 becomes \xNN,
 * and text of more than 48 bytes is cut and ends in "...". */
void text_quote(const char *s, size_t len, char *buf, size_t cap);
/* Decimal digits only. -EINVAL: something else; -ERANGE: too large. */
int text_parse_u64(const char *s, size_t len, uint64_t *ret);
/* Digits and an optional K, M, G or T (also KiB, KB, k, ...: all powers of
 * 1024). -EINVAL as above; -ERANGE above TEXT_SIZE_LIMIT. */
int text_parse_size(const char *s, size_t len, uint64_t *ret);
/* Digits and a unit: us, ms, s or m; in ns. -EINVAL as above, also without a unit; -ERANGE
 * above 2^60 ns. */
int text_parse_time(const char *s, size_t len, uint64_t *ret);
/* The shortest exact form: 10ms, 1500us, 2s. */
void text_format_time(uint64_t ns, char *buf, size_t cap);
/* The shortest exact form: 16M, 1536K, 1000. */
void text_format_size(uint64_t bytes, char *buf, size_t cap);
int text_parse_hex(const char *s, size_t len, uint64_t *ret);
/* Digits with or without a point and more digits; the locale does not matter. -EINVAL:
 * something else; -ERANGE: more than 31 characters. */
int text_parse_decimal(const char *s, size_t len, double *ret);
int text_hex_digit(char c); /* 0..15, -1 */
static inline bool text_is_digit(char c)
{
    return c >= '0' && c <= '9';
}
/* As strcmp and memcmp tell: at each start a look-up by the loader less. */
static inline bool text_is(const char *s, const char *word)
{
    while (*s != '\0' && *s == *word)
        s++, word++;
    return *s == *word;
}
static inline bool text_same(const char *a, const char *b, size_t n)
{
    while (n > 0 && *a == *b)
        a++, b++, n--;
    return n == 0;
}
/* Where c is, else len. */
static inline size_t text_find(const char *s, size_t len, char c)
{
    size_t n = 0;
    while (n < len && s[n] != c)
        n++;
    return n;
}
/* Index of s in "red|green|blue", -1 if it is not there. */
int text_choice(const char *choices, const char *s, size_t len);
/* The index-th word of such a list; empty when there is none. */
size_t text_choice_word(const char *choices, int index, const char **ret_word);
/* "a|b|c" as "a, b or c". */
void text_choices_prose(const char *choices, char *buf, size_t cap);
/* The next of a kernel's list ("0-3,8"): lo == hi for a single number. false at its end or at
 * something else. *at moves on. Numbers are cut at 2^32. */
bool text_next_range(const char **at, uint64_t *ret_lo, uint64_t *ret_hi);
/* Blanks at both ends go. */
void text_trim(const char **s, size_t *len);
/* The next line of a text, trimmed; false behind the last. *at moves on. */
bool text_next_line(const char **at, const char *end, const char **ret, size_t *ret_len);
bool text_has_control(const char *s, size_t len);
/* How many single-letter slips (insert, drop, change, swap) lie between two
 * names, ignoring case and taking '-' for '_'; large when they are long. */
unsigned text_distance(const char *a, size_t a_len, const char *b, size_t b_len);
/* Is `distance` small enough for a name of this length to be called a slip? */
bool text_is_near(unsigned distance, size_t len);
/* Shell pattern: * ? [a-z] [!a-z] and \ before a literal. '*' also matches
 * '/'. No recursion, and the time is polynomial whatever the pattern. */
bool text_glob(const char *pattern, const char *s);

#endif
