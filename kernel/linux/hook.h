/* SPDX-License-Identifier: GPL-2.0 */
/* Attachments, and what each kind of hook has to do for them. */
#ifndef POSTERN_HOOK_H
#define POSTERN_HOOK_H

#include <linux/hrtimer.h>
#include <linux/kprobes.h>
#include <linux/netfilter.h>
#include <linux/tracepoint.h>

#include "kept.h"

struct attachment;

/* A kind of hooks. */
struct hook {
	u32 rights; /* that an extension needs */
	bool bounded; /* calls come with interrupts off */
	/* From now on it is called; with an error it is not. */
	int (*join)(struct attachment *attachment);
	/* Afterwards no call is under way, and none begins. */
	void (*leave)(struct attachment *attachment);
};
extern const struct hook postern_netfilter, postern_tracepoint, postern_kprobe, postern_timer;

/* Whom it calls. */
struct target {
	struct extension *extension;
	u32 offset;
};

struct totals {
	u64 calls, passed;
};

/* Lists and all fields but the totals are guarded by the lock of hooks.c; calls read `target` with
 * preemption off. */
struct attachment {
	struct list_head list; /* kept->attachments */
	struct kept *kept; /* of whom it is */
	struct postern_attach how;
	const struct hook *hook;
	struct target __rcu *target; /* one of the two */
	struct target targets[2];
	struct totals __percpu *totals;
	union {
		struct {
			struct nf_hook_ops ops;
			struct net *net;
		};
		struct tracepoint *tracepoint;
		struct kprobe kprobe;
		struct hrtimer timer;
	};
};

/* Calls the function, as postern_invoke does, and counts. In line, since it is part of every event. */
static __always_inline u32 postern_hook_call(struct attachment *attachment, const u64 arguments[6],
					     enum subject kind, void *subject, fill_function fill,
					     u32 most, u64 *value)
{
	struct postern_outcome outcome __attribute__((uninitialized));
	struct totals *totals;
	struct target *target;
	u32 ended;

	preempt_disable_notrace();
	target = rcu_dereference_raw(attachment->target);
	ended = fill ? postern_invoke_with(target->extension, target->offset, arguments, kind, subject,
					   fill, most, value, &outcome) :
		       postern_invoke(target->extension, target->offset, arguments, kind, subject, value,
				      &outcome);
	totals = this_cpu_ptr(attachment->totals);
	totals->calls++;
	totals->passed += ended == POSTERN_RETURNED && *value != 0;
	preempt_enable_notrace();
	return ended;
}

/* hooks.c: detaches what is attached in a network namespace that ends. */
void postern_leave_net(struct net *net);

/* netfilter.c */
int postern_netfilter_init(void);
void postern_netfilter_exit(void);

#endif
