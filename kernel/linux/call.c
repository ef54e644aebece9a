// SPDX-License-Identifier: GPL-2.0
/* Calls of extensions.
 *
 * Invariant: an invocation lives on the stack of its caller, with preemption off, from the way in to
 * the way out; this processor's are linked from the innermost outward. Each has a window of its own,
 * so that what it finds there is as it was left, whatever it interrupts or is interrupted by. */
#include <linux/hardirq.h>
#include <linux/irqflags.h>
#include <linux/kernel.h>
#include <linux/preempt.h>
#include <linux/printk.h>
#include <linux/uaccess.h>

#include "arena.h"
#include "call.h"
#include "extension.h"

DEFINE_PER_CPU(struct invocation *, postern_current);

#define ASSERT_OFFSET(field, offset) static_assert(offsetof(struct invocation, field) == (offset))
ASSERT_OFFSET(stack, INVOCATION_STACK);
ASSERT_OFFSET(outer, INVOCATION_OUTER);
ASSERT_OFFSET(services, INVOCATION_SERVICES);
ASSERT_OFFSET(at, INVOCATION_AT);
ASSERT_OFFSET(touched, INVOCATION_TOUCHED);
ASSERT_OFFSET(ended, INVOCATION_ENDED);
ASSERT_OFFSET(service, INVOCATION_SERVICE);
static_assert(POSTERN_PAGE_FAULT == 1 && LANDINGS << LANDING_SHARE == ARENA_SIZE);

static const char *const kinds[POSTERN_KINDS] = {
	"returned", "page fault", "division", "trap", "time limit", "bad argument of a service",
	"window in use", "ended before", "no such function", "interrupts are off",
};

void postern_end_current(struct pt_regs *regs, u32 kind, unsigned long at)
{
	struct invocation *invocation = __this_cpu_read(postern_current);

	invocation->ended = kind;
	invocation->at = at;
	regs->ip = (unsigned long)postern_leave;
}

u64 postern_bad_argument(struct invocation *invocation)
{
	invocation->ended = POSTERN_BAD_ARGUMENT;
	invocation->at = 0;
	return 0;
}

void *postern_at(struct invocation *invocation, u64 offset, u64 size, bool writable)
{
	return postern_in_window(invocation->extension->segment, invocation->window, offset, size,
				 writable);
}

/* The level of who calls; LEVELS: none, for nothing may be called. */
static __always_inline enum level level_now(void)
{
	unsigned int count = preempt_count();

	if (unlikely(count & NMI_MASK))
		return LEVELS;
	if (unlikely(irqs_disabled() || count & HARDIRQ_MASK))
		return LEVEL_HARD;
	return count & SOFTIRQ_OFFSET ? LEVEL_SOFTIRQ : LEVEL_TASK;
}

/* The offset in the window that an address in the arena stands for. */
static u32 offset_of(const struct extension *extension, unsigned long at)
{
	unsigned long door = at - (unsigned long)extension->doors;

	if (door < extension->doors_end)
		return extension->exports[door / DOOR_SIZE].offset;
	return (u32)(at - (unsigned long)extension->text) + extension->layout.text;
}

static void describe(const struct invocation *invocation, struct postern_outcome *outcome)
{
	const struct extension *extension = invocation->extension;
	unsigned long into = invocation->touched - (unsigned long)invocation->window->base;
	bool known = invocation->ended == POSTERN_PAGE_FAULT && into <= U32_MAX;

	*outcome = (struct postern_outcome){
		.kind = invocation->ended,
		.offset = invocation->at ? offset_of(extension, invocation->at) :
					   extension->layout.gates + invocation->service * 32,
		.address = known ? (u32)into : 0,
		.service = invocation->at ? 0 : invocation->service,
	};
}

/* The export that begins last at or before an offset. */
static const struct postern_symbol *nearest(const struct extension *extension, u32 offset)
{
	const struct postern_symbol *best = NULL;
	u32 i;

	for (i = 0; i < extension->layout.exports; i++) {
		const struct postern_symbol *export = &extension->exports[i];

		if (export->offset <= offset && (!best || export->offset > best->offset))
			best = export;
	}
	return best;
}

static void tell(struct extension *extension, const struct postern_outcome *outcome)
{
	const struct postern_symbol *symbol;

	if (!__ratelimit(&extension->told))
		return;
	symbol = nearest(extension, outcome->offset);
	pr_warn("postern: %s: %s at %.*s+%#x (%#x)\n", extension->name, kinds[outcome->kind],
		symbol ? (int)min_t(u32, symbol->length, POSTERN_NAME) : 0,
		symbol ? (const char *)symbol->name : "",
		outcome->offset - (symbol ? symbol->offset : 0), outcome->offset);
}

/* What follows from a call that ended otherwise than by returning. */
static noinline u32 faulted(struct invocation *invocation, struct postern_outcome *outcome)
{
	struct extension *extension = invocation->extension;
	unsigned long flags;

	describe(invocation, outcome);
	spin_lock_irqsave(&extension->last_lock, flags);
	extension->last = *outcome;
	spin_unlock_irqrestore(&extension->last_lock, flags);
	if (extension->on_fault == POSTERN_FAULT_RESTARTS)
		postern_segment_stale(extension->segment);
	if (extension->on_fault == POSTERN_FAULT_ENDS && !xchg(&extension->refused, POSTERN_ENDED)) {
		kref_get(&extension->refs);
		schedule_work(&extension->leave);
	}
	tell(extension, outcome);
	return outcome->kind;
}

static noinline u32 not_begun(struct extension *extension, u32 kind, struct postern_outcome *outcome)
{
	*outcome = (struct postern_outcome){ .kind = kind };
	this_cpu_inc(extension->counters->ended[kind]);
	return kind;
}

static noinline void make_anew(struct extension *extension, struct window *window)
{
	WRITE_ONCE(window->stale, 0);
	postern_window_reset(extension->segment, window);
	WRITE_ONCE(extension->restarts, READ_ONCE(extension->restarts) + 1);
}

/* Why there is no window. */
static u32 unsuitable(enum level level)
{
	return level == LEVELS ? POSTERN_SKIPPED : POSTERN_UNSUITABLE;
}

static __always_inline u32 invoke(struct extension *extension, u32 function, const u64 *arguments,
				  enum subject kind, void *subject, fill_function fill, u32 most,
				  u64 *value, struct postern_outcome *outcome)
{
	enum level level = level_now();
	u32 door = function - DOOR_SIZE, ended;
	struct invocation invocation;
	struct window *window;
	u64 filled[6];

	/* Numbers of functions are multiples of the doors' size. */
	if (unlikely(extension->refused))
		return not_begun(extension, extension->refused, outcome);
	if (unlikely(door >= extension->doors_end))
		return not_begun(extension, POSTERN_ABSENT, outcome);
	window = level < LEVELS ? this_cpu_ptr(extension->windows)[level] : NULL;
	if (unlikely(!window))
		return not_begun(extension, unsuitable(level), outcome);
	if (unlikely(extension->one_window)) {
		if (cmpxchg(&window->busy, 0, 1))
			return not_begun(extension, POSTERN_SKIPPED, outcome);
	} else {
		/* Nothing of this level, on this processor, comes between. */
		if (unlikely(window->busy))
			return not_begun(extension, POSTERN_SKIPPED, outcome);
		WRITE_ONCE(window->busy, 1);
	}
	if (unlikely(window->stale))
		make_anew(extension, window);
	if (fill) {
		u32 bytes = extension->segment->bytes;

		memcpy(filled, arguments, sizeof(filled));
		filled[0] = bytes;
		filled[1] = fill(subject, window->base + bytes, most);
		arguments = filled;
	}
	invocation.services = extension->services;
	invocation.ended = POSTERN_RETURNED;
	invocation.ticks = 0;
	invocation.level = level;
	invocation.kind = kind;
	invocation.subject = subject;
	invocation.extension = extension;
	invocation.window = window;
	*value = postern_gate(&invocation, extension->doors + door, arguments, window->base,
			      extension->stack_top);
	ended = READ_ONCE(invocation.ended);
	if (unlikely(ended))
		faulted(&invocation, outcome);
	smp_store_release(&window->busy, 0);
	this_cpu_inc(extension->counters->ended[ended]);
	return ended;
}

u32 postern_invoke(struct extension *extension, u32 function, const u64 arguments[6], enum subject kind,
		   void *subject, u64 *value, struct postern_outcome *outcome)
{
	u32 ended;

	preempt_disable();
	ended = invoke(extension, function, arguments, kind, subject, NULL, 0, value, outcome);
	preempt_enable();
	return ended;
}

u32 postern_invoke_with(struct extension *extension, u32 function, const u64 arguments[6],
			enum subject kind, void *subject, fill_function fill, u32 most, u64 *value,
			struct postern_outcome *outcome)
{
	u32 ended;

	preempt_disable();
	ended = invoke(extension, function, arguments, kind, subject, fill,
		       min_t(u32, most, PAGE_SIZE), value, outcome);
	preempt_enable();
	return ended;
}

long postern_ioctl_call(struct postern_call __user *argument)
{
	struct extension *extension;
	struct postern_call call;

	if (copy_from_user(&call, argument, sizeof(call)))
		return -EFAULT;
	if (call.queued || strnlen(call.function, POSTERN_NAME) == POSTERN_NAME)
		return -EINVAL;
	extension = postern_get(call.id);
	if (!extension)
		return -ENOENT;
	call.value = 0;
	call.outcome = (struct postern_outcome){ .kind = POSTERN_RETURNED };
	if (postern_invoke(extension, postern_function(extension, call.function), call.arguments,
			   SUBJECT_NONE, NULL, &call.value, &call.outcome) != POSTERN_RETURNED)
		call.value = 0;
	postern_put(extension);
	return copy_to_user(argument, &call, sizeof(call)) ? -EFAULT : 0;
}
