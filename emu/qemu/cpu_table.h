/* SPDX-License-Identifier: BSD-2-Clause
 * QEMU (seen: 7.2) keeps a table of its virtual CPUs for plugins. In a forked child it forgets to
 * take out those of threads that did not come along, gives their numbers away again, and
 * aborts when it finds one taken: in the child's first pthread_create. We take them out. */
#ifndef EMU_QEMU_CPU_TABLE_H
#define EMU_QEMU_CPU_TABLE_H

/* Before the first virtual CPU is made. */
void cpu_table_watch(void);
/* QEMU has made a virtual CPU, in this thread. */
void cpu_table_vcpu_made(unsigned vcpu);
/* In a forked child, where `vcpu` goes on alone. */
void cpu_table_forked(unsigned vcpu);

#endif
