// SPDX-License-Identifier: GPL-2.0
/* Tracepoints and kprobes: extensions that observe the kernel.
 *
 * Both may come with interrupts off and from anywhere, so only images without loops are attached.
 * What an extension's call does itself, in services or in whatever interrupts it, is not observed
 * on its processor: such events are counted as skipped. */
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/rcupdate.h>
#include <linux/string.h>
#include <linux/tracepoint.h>

#include "hook.h"

static DEFINE_PER_CPU(int, probing);

static __always_inline void observe(struct attachment *attachment, const u64 arguments[6],
				    enum subject kind, void *subject)
{
	u64 value __attribute__((uninitialized));

	preempt_disable_notrace();
	if (likely(this_cpu_inc_return(probing) == 1)) {
		postern_hook_call(attachment, arguments, kind, subject, NULL, 0, &value);
	} else {
		struct target *target = rcu_dereference_raw(attachment->target);

		postern_counters(target->extension)->ended[POSTERN_SKIPPED]++;
	}
	this_cpu_dec(probing);
	preempt_enable_notrace();
}

/* A tracepoint calls with its own arguments, however many it has. Those behind them are whatever
 * was in the registers, and for the sixth a word of the stack: who may attach here may read both. RCU
 * watches: the kernel sees to that before it calls. */
static void at_tracepoint(void *data, u64 a, u64 b, u64 c, u64 d, u64 e, u64 f)
{
	const u64 arguments[6] = { a, b, c, d, e, f };

	observe(data, arguments, SUBJECT_NONE, NULL);
}

struct search {
	const char *name;
	struct tracepoint *found;
};

static void compare(struct tracepoint *tracepoint, void *priv)
{
	struct search *search = priv;

	if (strcmp(tracepoint->name, search->name) == 0)
		search->found = tracepoint;
}

static bool asks_for_more(const struct postern_attach *how)
{
	return how->priority || how->family || how->capture || how->otherwise;
}

static int join_tracepoint(struct attachment *attachment)
{
	struct search search = { .name = attachment->how.target };

	if (asks_for_more(&attachment->how) || attachment->how.number)
		return -EINVAL;
	for_each_kernel_tracepoint(compare, &search);
	if (!search.found)
		return -ENOENT;
	attachment->tracepoint = search.found;
	if (postern_fails_now())
		return -ENOMEM;
	return tracepoint_probe_register(search.found, at_tracepoint, attachment);
}

static void leave_tracepoint(struct attachment *attachment)
{
	tracepoint_probe_unregister(attachment->tracepoint, at_tracepoint, attachment);
	tracepoint_synchronize_unregister();
}

static int at_kprobe(struct kprobe *kprobe, struct pt_regs *regs)
{
	/* The arguments of a function, at its first instruction. */
	const u64 arguments[6] = { regs->di, regs->si, regs->dx, regs->cx, regs->r8, regs->r9 };

	/* Where RCU does not watch, nobody would wait for the call. */
	if (rcu_is_watching())
		observe(container_of(kprobe, struct attachment, kprobe), arguments, SUBJECT_REGISTERS, regs);
	return 0;
}
NOKPROBE_SYMBOL(at_kprobe);

static int join_kprobe(struct attachment *attachment)
{
	int error;

	if (asks_for_more(&attachment->how) || !attachment->how.target[0])
		return -EINVAL;
	if (postern_fails_now())
		return -ENOMEM;
	attachment->kprobe = (struct kprobe){
		.symbol_name = attachment->how.target,
		.offset = attachment->how.number,
		.pre_handler = at_kprobe,
		.flags = KPROBE_FLAG_DISABLED,
	};
	error = register_kprobe(&attachment->kprobe);
	if (error)
		return error;
	/* Not this module: it would be called in the middle of calling it. */
	error = within_module((unsigned long)attachment->kprobe.addr, THIS_MODULE) ?
			-EINVAL :
			enable_kprobe(&attachment->kprobe);
	if (error)
		unregister_kprobe(&attachment->kprobe);
	return error;
}

/* Waits for those that are at it. */
static void leave_kprobe(struct attachment *attachment)
{
	unregister_kprobe(&attachment->kprobe);
}

const struct hook postern_tracepoint = {
	.rights = POSTERN_MAY_OBSERVE,
	.bounded = true,
	.join = join_tracepoint,
	.leave = leave_tracepoint,
};

const struct hook postern_kprobe = {
	.rights = POSTERN_MAY_OBSERVE,
	.bounded = true,
	.join = join_kprobe,
	.leave = leave_kprobe,
};
