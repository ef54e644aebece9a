/* SPDX-License-Identifier: GPL-2.0 */
/* Invocations: what gate.S, the handlers of faults and the tick know of them. */
#ifndef POSTERN_CALL_H
#define POSTERN_CALL_H
#include <linux/percpu.h>
#include <asm/ptrace.h>

#include "gate.h"
#include "module.h"

/* gate.S */
u32 postern_enter(struct invocation *invocation, const void *door, const u64 arguments[6], u64 unused,
		  u64 either, u64 *value, struct postern_outcome *outcome);
void postern_leave(void);
void postern_service_gate(void);
extern u8 postern_landings[];
u64 postern_call_found(void *function, u64 a, u64 b, u64 c, u64 d, u64 e);

/* The one that is under way on this processor, on top of those that it interrupted. */
DECLARE_PER_CPU(struct invocation *, postern_current);

/* What gate.S leaves to C: calls that are not of the common kind, with preemption off already; those
 * that did not return; and what has waited for preemption. Both turn that on again. */
u32 postern_invoke_slowly(struct extension *extension, u32 function, const u64 arguments[6],
			  enum subject kind, void *subject, u64 *value,
			  struct postern_outcome *outcome);
u32 postern_ended(struct invocation *invocation, struct postern_outcome *outcome);
u32 postern_schedule(void);

/* A window that is always in use. */
extern struct window postern_no_window;

/* From an exception or an interrupt whose registers these are, with the instruction pointer in the
 * arena: it returns to the way out. */
void postern_end_current(struct pt_regs *regs, u32 kind, unsigned long at);

#endif
