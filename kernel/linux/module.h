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
};
struct postern_symbol {
	const u8 *name; /* in the file, `length` bytes, no NUL */
	u32 length;
	u32 offset; /* of an export, in the window */
};
void postern_judge_image(const u8 *file, size_t size, struct postern_verdict *verdict,
			 struct postern_layout *layout);
void postern_judge_text(const u8 *text, size_t size, u32 imports, struct postern_verdict *verdict);

/* Levels: who may interrupt whom. */
enum level { LEVEL_TASK, LEVEL_SOFTIRQ, LEVEL_HARD, LEVELS };

struct window {
	u8 *base; /* of 4 GiB */
	u32 busy;
	u32 stale; /* its memory is made anew before the next call */
	/* … window.c's */
};

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
	struct extension *extension;
	struct window *window;
	enum subject kind;
	void *subject; /* struct sk_buff *, struct pt_regs * */
	u32 service; /* the import that is being called */
	/* … call.c's */
};

/* call.c: calls the function at `offset` (an export's) on this processor, at the level of the caller,
 * whose subject it is. Returns how it ended, as outcome->kind says; `*value` is what it returned. */
u32 postern_invoke(struct extension *extension, u32 offset, const u64 arguments[6], enum subject kind,
		   void *subject, u64 *value, struct postern_outcome *outcome);

/* As postern_invoke, of a function that first gets `size` bytes copied to a place in the window that
 * only this has (at most 4096): its offset is the first argument. `copy` writes them; it returns how
 * many there are. */
typedef u32 (*fill_function)(void *subject, u8 *to, u32 most);
u32 postern_invoke_with(struct extension *extension, u32 offset, const u64 arguments[6],
			enum subject kind, void *subject, fill_function fill, u32 most, u64 *value,
			struct postern_outcome *outcome);

/* call.c, for services: the memory of `size` bytes at an offset of the invocation's window, all of it
 * present (and writable, if asked for); else NULL. Only the low 32 bits of the offset count. */
void *postern_at(struct invocation *invocation, u64 offset, u64 size, bool writable);
u64 postern_bad_argument(struct invocation *invocation);

/* extension.c. Numbers are looked up under RCU; whoever keeps an extension has a reference. */
struct extension *postern_get(u32 id); /* NULL, or a reference */
void postern_put(struct extension *extension);
/* Offset of a function, 0 if there is none. */
u32 postern_function(const struct extension *extension, const char *name);
/* Whether calls may be made where interrupts are off: no loops, and no long path. */
bool postern_is_bounded(const struct extension *extension);
u32 postern_rights(const struct extension *extension);
struct counters *postern_counters(struct extension *extension); /* this processor's */

/* What other parts keep for an extension, from its load to its end; they survive a replacement. */
struct attachments; /* hooks.c */
struct maps; /* map.c */
struct ring; /* ring.c */
struct requests; /* queue.c */
struct kept {
	struct attachments *attachments;
	struct maps *maps;
	struct ring *ring;
	struct requests *requests;
};
struct kept *postern_kept(struct extension *extension);

/* Each part has these two: with an error nothing is left, and the end takes NULL. No call of the
 * extension is under way or begins when the end is called; hooks are left before. */
int postern_maps_begin(struct kept *kept);
void postern_maps_end(struct kept *kept);
int postern_ring_begin(struct kept *kept);
void postern_ring_end(struct kept *kept);
int postern_requests_begin(struct kept *kept);
void postern_requests_end(struct kept *kept);
void postern_leave_hooks(struct extension *extension);

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
