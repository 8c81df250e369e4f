/* SPDX-License-Identifier: BSD-2-Clause
 * The functions that ours stand before. */
#ifndef EMU_REAL_H
#define EMU_REAL_H

#define EXPORT __attribute__((visibility("default")))

/* The next function of this name, as a program that is linked today would get it. */
void *emu_real(const char *name);

/* Looked up at the first call, which may be before our constructor. */
#define REAL(ret, name, ...)                                                                       \
    static ret (*f)(__VA_ARGS__);                                                                  \
    if (!f)                                                                                        \
    f = (ret(*)(__VA_ARGS__))emu_real(#name)

#endif
