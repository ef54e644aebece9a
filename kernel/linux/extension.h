/* SPDX-License-Identifier: GPL-2.0 */
/* An extension, as the parts that load it and call it see it. */
#ifndef POSTERN_EXTENSION_H
#define POSTERN_EXTENSION_H
#include <linux/irq_work.h>
#include <linux/ratelimit.h>

#include "gate.h"
#include "module.h"
#include "window.h"

/* Milliseconds that calls may be given at most. */
#define MOST_LIMIT 5000u

/* What stays when an image is replaced by another. */
struct keeping {
	refcount_t refs;
	struct kept kept;
	bool begun; /* postern_kept_begin was called */
	struct counters __percpu *counters;
	atomic64_t restarts;
	raw_spinlock_t lock; /* of `last` */
	struct postern_outcome last;
};

struct extension {
	/* What each call reads; gate.S knows these (gate.h). A door is where indirect calls of the
	 * kernel's may come in: one for each export. */
	u32 doors_open; /* bytes of doors that may be called: all of them or, if it is called no more, 0 */
	bool one_window; /* all processors share it */
	u8 *doors; /* in the arena */
	struct invocation __percpu *invocations; /* one for each level, with what is always the same */
	struct counters __percpu *counters;

	u32 ended; /* 1: it is called no more */
	u32 doors_end; /* bytes of doors */
	u32 limit; /* ticks */
	u32 on_fault;

	struct kref refs;
	u32 id, rights;
	char name[POSTERN_NAME];
	u8 *file;
	size_t size;
	struct postern_verdict verdict;
	struct postern_layout layout;
	service_function *imports;
	struct postern_symbol *exports;

	u8 *arena; /* first page: doors, slots and text follow each other */
	u32 arena_pages;
	u8 *text; /* its first byte, which is at layout.text in the window */
	u32 accesses; /* entries of the exception table */
	bool may_fault; /* they are in the table */
	bool ticking; /* the tick goes for it */

	struct segment *segment;
	struct part part;
	bool joined;
	u32 segment_of; /* the number of the extension whose windows it shares */
	u64 memory; /* bytes of its pages, of all windows */
	struct page **shared;
	u32 shared_pages;

	struct keeping *keeping;
	bool replaced; /* there is another under its number */
	/* The line of the log after a fault, which may have been anywhere, even under a lock of the
	 * scheduler's: from an interrupt of its own. */
	struct irq_work notice;
	struct ratelimit_state told;
};

/* Loads what was copied from the caller: `file` is taken. *made is NULL if it was not accepted. What
 * `before` keeps it keeps, too; NULL: there is none before it. */
int postern_make(const struct postern_load *load, u8 *file, struct extension *before,
		 struct postern_verdict *verdict, struct extension **made);
/* Of one that nobody finds: no call is under way or begins afterwards, and its reference is put. */
void postern_unmake(struct extension *extension);
/* call.c: `notice` of an extension. */
void postern_notice(struct irq_work *work);
void postern_tell(struct extension *extension, struct postern_statistics *statistics);

#endif
