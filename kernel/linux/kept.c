// SPDX-License-Identifier: GPL-2.0
/* What takes the place of the parts that keep something for extensions, where they are not built. */
#include "module.h"

int __weak postern_kept_begin(struct extension *extension, struct kept *kept)
{
	return 0;
}

void __weak postern_kept_stop(struct extension *extension)
{
}

void __weak postern_kept_end(struct kept *kept)
{
}

void __weak postern_leave_hooks(struct extension *extension)
{
}

void __weak postern_hooks_lock(void)
{
}

int __weak postern_hooks_may_move(struct kept *kept, struct extension *next)
{
	return 0;
}

void __weak postern_hooks_move(struct kept *kept, struct extension *next)
{
}

void __weak postern_hooks_unlock(void)
{
}

u32 __weak postern_hooks_of(struct kept *kept)
{
	return 0;
}

u64 __weak postern_requests_waiting(struct kept *kept)
{
	return 0;
}
