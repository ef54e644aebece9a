/* SPDX-License-Identifier: GPL-2.0 */
/* The tick: what ends calls that take too long. */
#ifndef POSTERN_TICK_H
#define POSTERN_TICK_H

/* Ticks begin on all processors, or end, with those that are still wanted. May sleep. */
int postern_tick_begin(void);
void postern_tick_end(void);

#endif
