// SPDX-License-Identifier: GPL-2.0
/* Timers: functions that are called again and again, at the level of softirqs, where they may loop
 * and interrupts are on. Periods that a call overruns are left out. */
#include <linux/hrtimer.h>
#include <linux/ktime.h>

#include "hook.h"

/* Microseconds. */
#define SHORTEST 100

static enum hrtimer_restart fire(struct hrtimer *timer)
{
	struct attachment *attachment = container_of(timer, struct attachment, timer);
	const u64 arguments[6] = { ktime_get_ns() };
	u64 value = 0;
	u32 ended = postern_hook_call(attachment, arguments, SUBJECT_NONE, NULL, NULL, 0, &value);

	if (ended == POSTERN_ENDED || (ended == POSTERN_RETURNED && value == 0))
		return HRTIMER_NORESTART;
	hrtimer_forward_now(timer, ns_to_ktime(attachment->how.number * 1000ull));
	return HRTIMER_RESTART;
}

static int join(struct attachment *attachment)
{
	const struct postern_attach *how = &attachment->how;

	if (how->number < SHORTEST || how->target[0] || how->priority || how->family || how->capture ||
	    how->otherwise)
		return -EINVAL;
	hrtimer_init(&attachment->timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_SOFT);
	attachment->timer.function = fire;
	hrtimer_start(&attachment->timer, ns_to_ktime(how->number * 1000ull), HRTIMER_MODE_REL_SOFT);
	return 0;
}

/* Waits for the one that is under way. */
static void leave(struct attachment *attachment)
{
	hrtimer_cancel(&attachment->timer);
}

const struct hook postern_timer = { .join = join, .leave = leave };
