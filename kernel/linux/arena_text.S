/* SPDX-License-Identifier: GPL-2.0 */
/* Where the text of extensions lies: inside the text of the module, so that the kernel looks for
 * its faults in the module's exception table. arena.c says who has what. What is here is replaced
 * by int3 before anything else: long NOPs keep objtool's decoder short. */
#include <linux/linkage.h>
#include <linux/objtool.h>
#include <linux/version.h>
#include <asm/unwind_hints.h>
#include "arena.h"

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 4, 0)
#define UNWIND_HINT_UNDEFINED UNWIND_HINT_EMPTY
#endif

	.text
	.balign 4096
SYM_CODE_START(postern_arena)
	UNWIND_HINT_UNDEFINED
	ANNOTATE_NOENDBR
	.nops ARENA_SIZE
	ANNOTATE_NOENDBR
	ud2
SYM_CODE_END(postern_arena)
