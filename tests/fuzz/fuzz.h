/* SPDX-License-Identifier: BSD-2-Clause
 * What fuzz targets share. A target defines LLVMFuzzerTestOneInput; libFuzzer
 * drives it (-Dfuzz=true with clang) or fuzz_main.c (everywhere else). */
#ifndef HYBRID_TESTS_FUZZ_H
#define HYBRID_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(cond)                                                                                \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond);                             \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* A message for the user is one line of well-formed UTF-8 without control
 * characters, and not a page. */
static inline void check_message(const char *message)
{
    size_t len = strlen(message), more = 0;

    CHECK(len > 10 && len < 1200);
    for (const unsigned char *c = (const unsigned char *)message; *c; c++) {
        CHECK(*c >= 0x20 && *c != 0x7f);
        if (more > 0) {
            CHECK((*c & 0xc0) == 0x80);
            more--;
        } else if (*c >= 0x80) {
            CHECK(*c >= 0xc2 && *c <= 0xf4);
            more = *c >= 0xf0 ? 3 : *c >= 0xe0 ? 2 : 1;
        }
    }
    CHECK(more == 0);
}

#endif
