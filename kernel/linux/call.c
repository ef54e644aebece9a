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
#include <linux/version.h>

#include "arena.h"
#include "call.h"
#include "extension.h"

DEFINE_PER_CPU(struct invocation *, postern_current);

struct window postern_no_window = { .busy = 1 };

#define ASSERT_OFFSET(structure, field, offset) \
	static_assert(offsetof(struct structure, field) == (offset))
ASSERT_OFFSET(invocation, stack, INVOCATION_STACK);
ASSERT_OFFSET(invocation, outer, INVOCATION_OUTER);
ASSERT_OFFSET(invocation, services, INVOCATION_SERVICES);
ASSERT_OFFSET(invocation, at, INVOCATION_AT);
ASSERT_OFFSET(invocation, touched, INVOCATION_TOUCHED);
ASSERT_OFFSET(invocation, ended, INVOCATION_ENDED);
ASSERT_OFFSET(invocation, ticks, INVOCATION_ENDED + 4);
ASSERT_OFFSET(invocation, service, INVOCATION_SERVICE);
ASSERT_OFFSET(invocation, stack_top, INVOCATION_STACK_TOP);
ASSERT_OFFSET(invocation, base, INVOCATION_BASE);
ASSERT_OFFSET(invocation, kind, INVOCATION_KIND);
ASSERT_OFFSET(invocation, subject, INVOCATION_SUBJECT);
ASSERT_OFFSET(invocation, counters, INVOCATION_COUNTERS);
ASSERT_OFFSET(invocation, window, INVOCATION_WINDOW);
ASSERT_OFFSET(invocation, only, INVOCATION_ONLY);
static_assert(sizeof(struct invocation) == INVOCATION_SIZE && LEVEL_SOFTIRQ == 1);
ASSERT_OFFSET(window, busy, WINDOW_BUSY);
ASSERT_OFFSET(window, stale, WINDOW_BUSY + 4);
ASSERT_OFFSET(extension, doors_open, EXTENSION_DOORS_OPEN);
ASSERT_OFFSET(extension, doors, EXTENSION_DOORS);
ASSERT_OFFSET(extension, invocations, EXTENSION_INVOCATIONS);
ASSERT_OFFSET(counters, ended[POSTERN_RETURNED], 0);
static_assert(SOFTIRQ_OFFSET == 0x100 && (HARDIRQ_MASK | NMI_MASK) == 0xff0000);
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 2, 0)
ASSERT_OFFSET(pcpu_hot, preempt_count, PREEMPT_COUNT_OFFSET);
#endif
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
	postern_print("%s: %s at %.*s+%#x (%#x)", extension->name, kinds[outcome->kind],
		symbol ? (int)min_t(u32, symbol->length, POSTERN_NAME) : 0,
		symbol ? (const char *)symbol->name : "",
		outcome->offset - (symbol ? symbol->offset : 0), outcome->offset);
}

void postern_notice(struct irq_work *work)
{
	struct extension *extension = container_of(work, struct extension, notice);
	struct postern_outcome last;

	raw_spin_lock(&extension->keeping->lock);
	last = extension->keeping->last;
	raw_spin_unlock(&extension->keeping->lock);
	tell(extension, &last);
}

/* What follows from a call that ended otherwise than by returning. It may be any place of the
 * kernel's that a probe is at: nothing is waited for, and nobody woken. */
static noinline u32 faulted(struct invocation *invocation, struct postern_outcome *outcome)
{
	struct extension *extension = invocation->extension;
	struct keeping *keeping = extension->keeping;
	unsigned long flags;

	describe(invocation, outcome);
	local_irq_save(flags);
	if (raw_spin_trylock(&keeping->lock)) {
		keeping->last = *outcome;
		raw_spin_unlock(&keeping->lock);
	}
	local_irq_restore(flags);
	if (extension->on_fault == POSTERN_FAULT_RESTARTS)
		postern_segment_stale(extension->segment);
	if (extension->on_fault == POSTERN_FAULT_ENDS && !xchg(&extension->ended, 1)) {
		WRITE_ONCE(extension->doors_open, 0);
		postern_leave_hooks_soon(extension);
	}
	irq_work_queue(&extension->notice);
	return outcome->kind;
}

/* Turns preemption on. */
static noinline u32 not_begun(struct extension *extension, u32 kind, struct postern_outcome *outcome)
{
	*outcome = (struct postern_outcome){ .kind = kind };
	this_cpu_inc(extension->counters->ended[kind]);
	preempt_enable();
	return kind;
}

static noinline void make_anew(struct extension *extension, struct window *window)
{
	WRITE_ONCE(window->stale, 0);
	postern_window_reset(extension->segment, window);
	atomic64_inc(&extension->keeping->restarts);
}

/* Why a call cannot begin, where that is not so for a moment only. */
static u32 refusal(const struct extension *extension, u32 door, const struct invocation *invocation)
{
	if (READ_ONCE(extension->ended))
		return POSTERN_ENDED;
	if (door >= extension->doors_end)
		return POSTERN_ABSENT;
	return invocation ? POSTERN_UNSUITABLE : POSTERN_SKIPPED;
}

/* Takes the window; false if it is in use. */
static __always_inline bool take(const struct extension *extension, struct window *window)
{
	if (unlikely(extension->one_window))
		return cmpxchg(&window->busy, 0, 1) == 0;
	/* Nothing of this level, on this processor, comes between. */
	if (unlikely(window->busy))
		return false;
	WRITE_ONCE(window->busy, 1);
	return true;
}

/* With preemption off, which is on again afterwards. `fill`: see postern_invoke_with. */
static __always_inline u32 invoke(struct extension *extension, u32 function, const u64 *arguments,
				  enum subject kind, void *subject, fill_function fill, u32 most,
				  u64 *value, struct postern_outcome *outcome)
{
	u32 door = function - DOOR_SIZE, bytes = fill ? READ_ONCE(extension->segment->bytes) : 0;
	u64 filled[6] __attribute__((uninitialized));
	enum level level = level_now();
	struct invocation *invocation;
	struct window *window;

	if (unlikely(level == LEVELS))
		return not_begun(extension, refusal(extension, door, NULL), outcome);
	invocation = this_cpu_ptr(extension->invocations) + level;
	window = invocation->window;
	if (unlikely(door >= READ_ONCE(extension->doors_open) || !window))
		return not_begun(extension, refusal(extension, door, invocation), outcome);
	/* Who brought the page has gone from the segment, and with it the stack. */
	if (unlikely(fill && !bytes))
		return not_begun(extension, POSTERN_ENDED, outcome);
	if (unlikely(!take(extension, window)))
		return not_begun(extension, POSTERN_SKIPPED, outcome);
	if (unlikely(window->stale))
		make_anew(extension, window);
	if (fill) {
		memcpy(filled, arguments, sizeof(filled));
		filled[0] = bytes;
		filled[1] = fill(subject, window->base + bytes, most);
		arguments = filled;
	}
	invocation->kind = kind;
	invocation->subject = subject;
	return postern_enter(invocation, extension->doors + door, arguments, 0, 0, value, outcome);
}

u32 postern_ended(struct invocation *invocation, struct postern_outcome *outcome)
{
	struct extension *extension = invocation->extension;
	struct window *window = invocation->window;
	u32 kind = faulted(invocation, outcome);

	this_cpu_inc(extension->counters->ended[kind]);
	smp_store_release(&window->busy, 0);
	preempt_enable();
	return kind;
}

u32 postern_schedule(void)
{
	preempt_disable();
	preempt_enable();
	return POSTERN_RETURNED;
}

u32 postern_invoke_slowly(struct extension *extension, u32 function, const u64 arguments[6],
			  enum subject kind, void *subject, u64 *value,
			  struct postern_outcome *outcome)
{
	return invoke(extension, function, arguments, kind, subject, NULL, 0, value, outcome);
}

u32 postern_invoke_with(struct extension *extension, u32 function, const u64 arguments[6],
			enum subject kind, void *subject, fill_function fill, u32 most, u64 *value,
			struct postern_outcome *outcome)
{
	preempt_disable();
	return invoke(extension, function, arguments, kind, subject, fill,
		      min_t(u32, most, PAGE_SIZE), value, outcome);
}

/* Calls for a process. True: it has to be tried once more, for there is another image now. */
static bool call_once(struct extension *extension, struct postern_call *call)
{
	u32 kind;

	call->value = 0;
	call->outcome = (struct postern_outcome){ .kind = POSTERN_RETURNED };
	kind = postern_invoke(extension, postern_function(extension, call->function), call->arguments,
			      SUBJECT_NONE, NULL, &call->value, &call->outcome);
	if (kind != POSTERN_RETURNED)
		call->value = 0;
	return kind == POSTERN_ENDED && READ_ONCE(extension->replaced);
}

static long queue(const struct postern_call *call)
{
	struct extension *extension = postern_get(call->id);
	int error;

	if (!extension)
		return -ENOENT;
	error = postern_request(extension, call->function, call->arguments);
	postern_put(extension);
	return error;
}

long postern_ioctl_call(struct postern_call __user *argument)
{
	struct extension *extension;
	struct postern_call call;
	bool again;

	if (copy_from_user(&call, argument, sizeof(call)))
		return -EFAULT;
	if (call.queued > 1 || strnlen(call.function, POSTERN_NAME) == POSTERN_NAME)
		return -EINVAL;
	if (call.queued)
		return queue(&call);
	do {
		extension = postern_get(call.id);
		if (!extension)
			return -ENOENT;
		again = call_once(extension, &call);
		postern_put(extension);
	} while (again);
	return copy_to_user(argument, &call, sizeof(call)) ? -EFAULT : 0;
}
