/* SPDX-License-Identifier: GPL-2.0 */
/* An extension, as the parts that load it and call it see it. */
#ifndef POSTERN_EXTENSION_H
#define POSTERN_EXTENSION_H
#include <linux/ratelimit.h>
#include <linux/workqueue.h>

#include "module.h"
#include "window.h"

/* Milliseconds that calls may be given at most. */
#define MOST_LIMIT 5000u

/* A door is where indirect calls of the kernel's may come in: one for each export. */
#define DOOR_SIZE 16

struct extension {
	/* What each call reads. */
	u32 refused; /* POSTERN_ENDED: calls end so before they begin */
	u32 doors_end; /* bytes of doors */
	u8 *doors; /* in the arena */
	const service_function *services;
	struct window *__percpu *windows; /* LEVELS of them */
	struct counters __percpu *counters;
	u32 stack_top;
	u32 limit; /* ticks */
	u32 on_fault;
	bool one_window; /* all processors share it */

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
	struct page **shared;
	u32 shared_pages;

	struct kept kept;
	u64 restarts;
	struct postern_outcome last;
	spinlock_t last_lock;
	struct ratelimit_state told;
	struct work_struct leave;
};

/* Loads what was copied from the caller: `file` is taken. *made is NULL if it was not accepted. */
int postern_make(const struct postern_load *load, u8 *file, struct postern_verdict *verdict,
		 struct extension **made);
/* Of one that nobody finds: no call is under way or begins afterwards, and its reference is put. */
void postern_unmake(struct extension *extension);

#endif
