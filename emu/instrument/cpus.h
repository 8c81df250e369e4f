/* SPDX-License-Identifier: BSD-2-Clause
 * The CPUs that a thread is created for. */
#ifndef EMU_INSTRUMENT_CPUS_H
#define EMU_INSTRUMENT_CPUS_H

#include <pthread.h>

#include "program/affinity.h"

/* Attributes that name CPUs are of use on the emulated machine only: 1, with the others
 * in *ret_plain (to be destroyed) and the CPUs apart; 0: they name none; -errno. */
int emu_attr_split(const pthread_attr_t *a, pthread_attr_t *ret_plain, struct emu_cpuset *ret_set);

#endif
