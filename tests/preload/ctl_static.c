/* SPDX-License-Identifier: BSD-2-Clause
 * A program that no preload reaches: linked statically. */
#include <stdio.h>

int main(void)
{
    puts("static");
    return 7;
}
