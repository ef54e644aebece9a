// SPDX-License-Identifier: GPL-2.0
/* The tick: a timer of each processor's that runs while extensions are loaded, every millisecond, so
 * that no call has to arm one.
 *
 * Invariant: a call whose text runs in so many ticks as its limit is ended in the last of them. One
 * that is in a service then is marked, and ends when the service returns. */
#include <linux/cpuhotplug.h>
#include <linux/hardirq.h>
#include <linux/hrtimer.h>
#include <linux/percpu.h>
#include <asm/irq_regs.h>

#include "arena.h"
#include "call.h"
#include "extension.h"
#include "tick.h"

#define PERIOD (NSEC_PER_MSEC)

static DEFINE_PER_CPU(struct hrtimer, timer);
/* What cpuhp_setup_state gave; guarded by the lock of loads. */
static int state;
static u32 wanted;

static void look(struct pt_regs *regs)
{
	struct invocation *invocation = __this_cpu_read(postern_current);
	bool inside;

	if (!invocation || !regs || user_mode(regs))
		return;
	inside = postern_in_arena(regs->ip);
	/* Time of a softirq that interrupted a task's call is not the call's. */
	if (!inside && invocation->level == LEVEL_TASK && in_serving_softirq())
		return;
	if (++invocation->ticks < invocation->extension->limit)
		return;
	if (inside)
		postern_end_current(regs, POSTERN_TIMEOUT, regs->ip);
	else if (!invocation->ended)
		invocation->ended = POSTERN_TIMEOUT, invocation->at = 0;
}

static enum hrtimer_restart ticked(struct hrtimer *timer)
{
	look(get_irq_regs());
	hrtimer_forward_now(timer, ns_to_ktime(PERIOD));
	return HRTIMER_RESTART;
}

/* On the processor itself. */
static int begin(unsigned int processor)
{
	struct hrtimer *mine = per_cpu_ptr(&timer, processor);

	hrtimer_init(mine, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
	mine->function = ticked;
	hrtimer_start(mine, ns_to_ktime(PERIOD), HRTIMER_MODE_REL_PINNED_HARD);
	return 0;
}

static int end(unsigned int processor)
{
	hrtimer_cancel(per_cpu_ptr(&timer, processor));
	return 0;
}

int postern_tick_begin(void)
{
	int given;

	if (wanted++)
		return 0;
	given = postern_fails_now() ? -ENOMEM :
		cpuhp_setup_state(CPUHP_AP_ONLINE_DYN, "postern:tick", begin, end);
	if (given < 0) {
		wanted--;
		return given;
	}
	state = given;
	return 0;
}

void postern_tick_end(void)
{
	if (!--wanted)
		cpuhp_remove_state(state);
}
