/* SPDX-License-Identifier: GPL-2.0 */
/* The arena: text of extensions inside the module's text. */
#ifndef POSTERN_ARENA_H
#define POSTERN_ARENA_H

#define ARENA_SIZE (4 << 20)

#ifndef __ASSEMBLY__
#include <linux/types.h>

/* Made in arena.S; never written but through an alias that lives as long as the writing. */
extern u8 postern_arena[];

int postern_arena_init(void);
/* So many whole pages that nobody has, or NULL. The caller holds the lock of loads. */
u8 *postern_arena_take(u32 pages);
/* Writes to pages that were taken and that nothing runs in; afterwards no processor knows what was
 * there before. */
int postern_arena_write(u8 *at, const u8 *bytes, u32 size);
/* Pages that nothing runs in any more; they trap again. */
void postern_arena_give_back(u8 *at, u32 pages);

/* Counts its pages that can be written, and those that can be executed. */
void postern_arena_rights(u32 *writable, u32 *executable);

static inline bool postern_in_arena(unsigned long at)
{
	return at - (unsigned long)postern_arena < ARENA_SIZE;
}
#endif
#endif
