/* SPDX-License-Identifier: GPL-2.0 */
/* Segments: the windows that one extension, or several that share a stack, are called in. */
#ifndef POSTERN_WINDOW_H
#define POSTERN_WINDOW_H
#include "module.h"

/* A range of pages of a window. */
enum region_kind {
	REGION_READ, /* read only, the same pages in all windows */
	REGION_SHARED, /* the same pages in all windows, which are given and filled */
	REGION_OWN, /* pages of the window's */
};
struct region {
	enum region_kind kind;
	u32 at; /* offset in the window */
	u32 pages;
	/* What they hold at first; zeros behind it. */
	const u8 *bytes;
	u32 size;
	struct page **page; /* `pages` of them; for REGION_OWN, as many for each window */
};

#define MOST_REGIONS 8
/* What one extension has in the windows of its segment. */
struct part {
	struct list_head parts;
	struct region regions[MOST_REGIONS];
	u32 count;
};

struct segment {
	refcount_t refs;
	struct list_head parts; /* RCU; changed by who holds the lock of loads */
	struct window *windows;
	u32 count; /* of windows */
	u32 levels; /* windows of each processor, or 0 where one is for all */
	u32 stack_top;
	u32 bytes; /* offset of the page for what hooks copy; 0: it is gone */
	u32 heap_start, heap_limit;
};

int postern_windows_init(void);

/* A segment with windows for so many levels of each processor (0: one window for all), in which
 * nothing is; NULL if there is no memory. */
struct segment *postern_segment_make(u32 levels);
void postern_segment_get(struct segment *segment);
void postern_segment_put(struct segment *segment);
/* Its window for a processor and a level, NULL if it has none. */
struct window *postern_segment_window(struct segment *segment, u32 processor, enum level level);

/* Adds pages at `at`, of zeros unless the caller says more; no pages add nothing. */
struct region *postern_part_add(struct part *part, enum region_kind kind, u32 at, u32 pages);
/* Writes to its pages what they hold at first. */
void postern_region_fill(const struct region *region, struct page **pages);
/* Maps a part into all windows. -EADDRINUSE: something is there already. */
int postern_part_join(struct segment *segment, struct part *part);
/* The part's pages are no longer in the windows; no call uses them. */
void postern_part_leave(struct segment *segment, struct part *part);
u64 postern_part_bytes(const struct segment *segment, const struct part *part);

/* Counts its pages in all windows, and those that can be executed or that can be written and should
 * not. */
void postern_part_rights(const struct segment *segment, const struct part *part, u32 *wrong, u32 *all);

/* Its memory as at first, by who has it. */
void postern_window_reset(struct segment *segment, struct window *window);
/* The memory of `size` bytes at an offset, if all of it is there (and can be written, if asked for);
 * else NULL. With preemption off. */
void *postern_in_window(struct segment *segment, struct window *window, u64 offset, u64 size,
			bool writable);
/* All windows before the next call in each. */
void postern_segment_stale(struct segment *segment);

#endif
