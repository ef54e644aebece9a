/* SPDX-License-Identifier: GPL-2.0 */
/* What the parts of the module know of each other.
 *
 * Words: an extension is an image that was accepted, with its windows. A window is 4 GiB of addresses
 * of the kernel's, of which a few pages are there; each processor has one for each level at which
 * extensions are called. An invocation is one call that is under way on this processor. */
#ifndef POSTERN_MODULE_H
#define POSTERN_MODULE_H

#include <linux/hashtable.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/types.h>

#include "postern.h"

/* main.c: memory, which fails when tests want it to. */
void *postern_allocate(size_t size); /* zeroed, kvfree */
struct page *postern_allocate_page(void); /* zeroed */
bool postern_fails_now(void);

/* The judge (glue/src/lib.rs). Where a file is asked about it must have been accepted. */
struct postern_layout {
	u32 text, text_end; /* offsets in the window */
	u32 rodata, rodata_size, rodata_file; /* offset in the window, bytes, offset in the file */
	u32 stack, stack_size;
	u32 data, data_size, data_file, data_memory; /* data_memory: bytes with bss */
	u32 heap_start;
	u32 gates, imports, exports;
	u32 text_file, text_size; /* offset and bytes in the file */
};
struct postern_symbol {
	const u8 *name; /* in the file, `length` bytes, no NUL */
	u32 length;
	u32 offset; /* of an export, in the window */
};
void postern_judge_image(const u8 *file, size_t size, struct postern_verdict *verdict,
			 struct postern_layout *layout);
void postern_judge_text(const u8 *text, size_t size, u32 imports, struct postern_verdict *verdict);
/* The imports or exports of an accepted file, as many as its layout says; false if there is no memory. */
bool postern_judge_imports(const u8 *file, size_t size, struct postern_symbol *to, u32 most);
bool postern_judge_exports(const u8 *file, size_t size, struct postern_symbol *to, u32 most);
/* The instructions of accepted text that access memory: writes the offsets of at most `most` in
 * ascending order, and returns how many there are. */
u32 postern_judge_accesses(const u8 *text, size_t size, u32 *to, u32 most);

/* Levels: who may interrupt whom. */
enum level { LEVEL_TASK, LEVEL_SOFTIRQ, LEVEL_HARD, LEVELS };

struct window {
	u8 *base; /* of 4 GiB */
	u32 busy; /* gate.S looks at this and the next at once */
	u32 stale; /* its memory is made anew before the next call */
	u32 heap_end; /* offset, 0: where the heap starts */
	struct vm_struct *area;
};

/* How often calls ended in each way; what else is counted. */
struct counters {
	u64 ended[POSTERN_KINDS];
	u64 lost, log_left_out;
};

struct extension;
struct invocation;

/* A function of the module that extensions import. What does not fit is
 * `return postern_bad_argument(invocation)`: the call ends there. It runs on the processor and at
 * the level of the call, and must neither sleep nor take long. */
typedef u64 (*service_function)(struct invocation *invocation, u64 a, u64 b, u64 c, u64 d, u64 e);

struct service {
	const char *name;
	u32 rights; /* all of these */
	service_function function;
};

/* services.c: NULL if there is none of this name. */
const struct service *postern_service(const u8 *name, u32 length);

/* What a hook calls an extension about. */
enum subject { SUBJECT_NONE, SUBJECT_PACKET, SUBJECT_REGISTERS };

struct invocation {
	/* gate.S knows these (gate.h). */
	void *stack; /* the kernel's, to which every way out returns */
	struct invocation *outer; /* the one that this interrupted */
	const service_function *services;
	unsigned long at; /* address of the instruction that ended it; 0: a service did */
	unsigned long touched; /* address, at a page fault */
	u32 ended; /* POSTERN_RETURNED, or how it ended otherwise, or has to */
	u32 ticks; /* that found it under way */
	u32 service; /* the import that is being called */
	u32 stack_top; /* of the data stack */
	u8 *base; /* the window's */
	enum subject kind;
	enum level level;
	void *subject; /* struct sk_buff *, struct pt_regs * */
	struct counters *counters; /* this processor's */
	struct window *window; /* NULL: there are no calls at this level */
	struct window *only; /* the same, if nobody else can take it, or one that is always busy */

	struct extension *extension;
} __aligned(128);

/* call.c: calls a function (postern_function) on this processor, at the level of the caller, whose
 * subject it is. Returns how it ended; `*value` is what it returned, or else `*outcome` says more. */
u32 postern_invoke(struct extension *extension, u32 function, const u64 arguments[6], enum subject kind,
		   void *subject, u64 *value, struct postern_outcome *outcome);

/* As postern_invoke, of a function that first gets `size` bytes copied to a place in the window that
 * only this has (at most 4096): its offset is the first argument. `copy` writes them; it returns how
 * many there are. */
typedef u32 (*fill_function)(void *subject, u8 *to, u32 most);
u32 postern_invoke_with(struct extension *extension, u32 function, const u64 arguments[6],
			enum subject kind, void *subject, fill_function fill, u32 most, u64 *value,
			struct postern_outcome *outcome);

/* call.c, for services: the memory of `size` bytes at an offset of the invocation's window, all of it
 * present (and writable, if asked for); else NULL. Only the low 32 bits of the offset count. */
void *postern_at(struct invocation *invocation, u64 offset, u64 size, bool writable);
u64 postern_bad_argument(struct invocation *invocation);

/* extension.c. Numbers are looked up under RCU; whoever keeps an extension has a reference. */
struct extension *postern_get(u32 id); /* NULL, or a reference */
void postern_put(struct extension *extension); /* may sleep */
/* What postern_invoke knows a function by, 0 if there is none of this name. */
u32 postern_function(const struct extension *extension, const char *name);
/* Whether calls may be made where interrupts are off: no loops, and no long path. */
bool postern_is_bounded(const struct extension *extension);
u32 postern_rights(const struct extension *extension);
struct counters *postern_counters(struct extension *extension); /* this processor's */
u32 postern_id(const struct extension *extension);
const char *postern_name(const struct extension *extension);
/* The pages of the shared area, which stay while the extension has references: NULL and 0 if it has
 * none. */
struct page **postern_shared_pages(struct extension *extension, u32 *count);

/* window.c, for the heap's service: the heap of the invocation's window ends `more` bytes later (or
 * earlier). Its pages are there from the load on. Returns the offset of the end before, 0 if there
 * is no room. */
u64 postern_heap_move(struct invocation *invocation, s64 more);

/* What other parts keep for an extension, from its load to its end. It survives a replacement, and an
 * unload while somebody has it open. */
struct maps; /* map.c */
struct ring; /* ring.c */
struct requests; /* queue.c */
struct kept {
	/* Whose it is: another after a replacement, NULL when it has stopped. */
	struct extension __rcu *extension;
	struct list_head attachments; /* hooks.c */
	u32 hooks; /* attachments */
	bool stopped;
	struct maps *maps;
	struct ring *ring;
	struct requests *requests;
	unsigned long log_since; /* log.c: jiffies */
	u32 log_lines; /* since then */
};
/* extension.c. References for those who have it and no extension. */
struct kept *postern_kept(struct extension *extension);
void postern_kept_get(struct kept *kept);
void postern_kept_put(struct kept *kept);

/* hooks.c. `begin` is for a new extension: with an error nothing is left. `stop` is for one that
 * nobody finds by its number any more: it leaves its hooks, queued requests are dropped, readers see
 * the end; afterwards no call begins but of those that had looked it up before, for which a grace
 * period of RCU waits. `end` frees, with the last reference. All may sleep. */
int postern_kept_begin(struct extension *extension, struct kept *kept);
void postern_kept_stop(struct extension *extension);
void postern_kept_end(struct kept *kept);
/* Of one that faulted: it leaves its hooks soon. At any level. */
void postern_leave_hooks_soon(struct extension *extension);
/* For a replacement, with the lock held until the number is the next one's: 0 if `next` has the
 * functions that are attached, and may have them attached. `move` makes hooks and queued requests
 * call `next`; after a grace period of RCU none is in the one before. */
void postern_hooks_lock(void);
int postern_hooks_may_move(struct kept *kept, struct extension *next);
void postern_hooks_move(struct kept *kept, struct extension *next);
void postern_hooks_unlock(void);
/* For statistics. */
u32 postern_hooks_of(const struct kept *kept);
u64 postern_requests_waiting(const struct kept *kept);
/* When the module comes and goes. */
int postern_hooks_init(void);
void postern_hooks_exit(void);

/* log.c: a line for the kernel's log, at any level, as far as 320 bytes. The module prints in no other
 * way from calls: they may be where the scheduler or the console hold their locks. */
__printf(1, 2) bool postern_print(const char *format, ...);

/* queue.c: has the function called by a worker, at the level of tasks, after those asked for before.
 * May be called at any level. -EBUSY: too many wait; -ENOENT: the extension is going. */
int postern_request(struct extension *extension, const char *function, const u64 arguments[6]);

/* Requests at the device, by the part that does them; the caller may do everything. */
long postern_ioctl_attach(struct postern_attach __user *argument);
long postern_ioctl_detach(u32 __user *argument);
long postern_ioctl_attachment(struct postern_attachment __user *argument);
long postern_ioctl_map_make(struct postern_map __user *argument);
long postern_ioctl_map_access(struct postern_map_access __user *argument);
long postern_ioctl_map_sizes(struct postern_map __user *argument);
long postern_ioctl_open(u32 __user *argument);
long postern_ioctl_call(struct postern_call __user *argument);

#endif
