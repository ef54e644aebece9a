// SPDX-License-Identifier: GPL-2.0
/* Windows: 4 GiB of the kernel's addresses each, of which the pages of extensions are mapped.
 *
 * Invariant: a window has 64 KiB behind it in which nothing is mapped, and no page of it can be
 * executed. All pages are mapped while an extension is loaded: a page fault ends a call and never
 * allocates. */
#include <linux/cpumask.h>
#include <linux/io.h>
#include <linux/kprobes.h>
#include <linux/mm.h>
#include <linux/rculist.h>
#include <linux/slab.h>
#include <linux/version.h>
#include <linux/vmalloc.h>

#include "call.h"
#include "extension.h"
#include "window.h"

#define WINDOW_SIZE (4UL << 30)
#define WINDOW_GUARD (64UL << 10)

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 9, 0)
#define AREA_FLAGS VM_SPARSE
#define MAPPER "vm_area_map_pages"
#define UNMAPPER "vm_area_unmap_pages"
#else
#define AREA_FLAGS VM_MAP
#define MAPPER "ioremap_page_range"
#define UNMAPPER "vunmap_range"
#endif

/* What the kernel has for this and modules are not given. */
static void *get_area, *mapper, *unmapper;

static void *found(const char *name)
{
	struct kprobe probe = { .symbol_name = name };
	void *at;

	if (register_kprobe(&probe))
		return NULL;
	at = probe.addr;
	unregister_kprobe(&probe);
	return at;
}

int postern_windows_init(void)
{
	get_area = found("get_vm_area");
	mapper = found(MAPPER);
	unmapper = found(UNMAPPER);
	if (get_area && mapper && unmapper)
		return 0;
	pr_err("postern: this kernel has no get_vm_area, " MAPPER " or " UNMAPPER "\n");
	return -EOPNOTSUPP;
}

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 9, 0)
static int map(struct window *window, unsigned long at, struct page *page, bool writable)
{
	unsigned int level;
	pte_t *entry;
	int error = (int)postern_call_found(mapper, (u64)window->area, at, at + PAGE_SIZE,
					    (u64)&page, 0);

	if (error || writable)
		return error;
	/* Nothing has used it yet, so no processor remembers that it could be written. */
	entry = lookup_address(at, &level);
	set_pte(entry, pte_wrprotect(*entry));
	return 0;
}

static void unmap(struct window *window, unsigned long from, unsigned long to)
{
	postern_call_found(unmapper, (u64)window->area, from, to, 0, 0);
}
#else
static int map(struct window *window, unsigned long at, struct page *page, bool writable)
{
	pgprot_t rights = writable ? PAGE_KERNEL : PAGE_KERNEL_RO;

	return (int)postern_call_found(mapper, at, at + PAGE_SIZE, page_to_phys(page),
				       pgprot_val(rights), 0);
}

static void unmap(struct window *window, unsigned long from, unsigned long to)
{
	postern_call_found(unmapper, from, to, 0, 0, 0);
}
#endif

static bool reserve(struct window *window)
{
	if (postern_fails_now())
		return false;
	window->area = (struct vm_struct *)postern_call_found(
		get_area, WINDOW_SIZE + WINDOW_GUARD, AREA_FLAGS, 0, 0, 0);
	if (!window->area)
		return false;
	window->base = window->area->addr;
	return true;
}

static void free_segment(struct segment *segment)
{
	u32 i;

	for (i = 0; segment->windows && i < segment->count; i++)
		if (segment->windows[i].area)
			free_vm_area(segment->windows[i].area);
	kvfree(segment->windows);
	kvfree(segment);
}

struct segment *postern_segment_make(u32 levels)
{
	struct segment *segment = postern_allocate(sizeof(*segment));
	u32 i;

	if (!segment)
		return NULL;
	refcount_set(&segment->refs, 1);
	INIT_LIST_HEAD(&segment->parts);
	segment->levels = levels;
	segment->count = levels ? nr_cpu_ids * levels : 1;
	segment->windows = postern_allocate(segment->count * sizeof(*segment->windows));
	for (i = 0; segment->windows && i < segment->count; i++)
		if ((!levels || cpu_possible(i / levels)) && !reserve(&segment->windows[i]))
			break;
	if (!segment->windows || i < segment->count) {
		free_segment(segment);
		return NULL;
	}
	return segment;
}

void postern_segment_get(struct segment *segment)
{
	refcount_inc(&segment->refs);
}

void postern_segment_put(struct segment *segment)
{
	if (refcount_dec_and_test(&segment->refs))
		free_segment(segment);
}

struct window *postern_segment_window(struct segment *segment, u32 processor, enum level level)
{
	if (!segment->levels)
		return &segment->windows[0];
	if (level >= segment->levels)
		return NULL;
	return &segment->windows[processor * segment->levels + level];
}

struct region *postern_part_add(struct part *part, enum region_kind kind, u32 at, u32 pages)
{
	struct region *region = &part->regions[part->count];

	if (WARN_ON(part->count == MOST_REGIONS))
		return region - 1;
	*region = (struct region){ .kind = kind, .at = at, .pages = pages };
	part->count += pages != 0;
	return region;
}

/* The pages of a region in a window. */
static struct page **pages_in(const struct segment *segment, const struct region *region,
			      const struct window *window)
{
	u32 index = region->kind == REGION_OWN ? window - segment->windows : 0;

	return region->page + (size_t)index * region->pages;
}

static u32 copies(const struct segment *segment, const struct region *region)
{
	return region->kind == REGION_OWN ? segment->count : 1;
}

void postern_region_fill(const struct region *region, struct page **pages)
{
	u32 i, left = region->size;

	for (i = 0; i < region->pages; i++) {
		u32 here = min_t(u32, left, PAGE_SIZE);
		u8 *to = page_address(pages[i]);

		if (here)
			memcpy(to, region->bytes + (size_t)i * PAGE_SIZE, here);
		memset(to + here, 0, PAGE_SIZE - here);
		left -= here;
	}
}

static void free_pages_of(const struct segment *segment, struct region *region)
{
	size_t i, count = (size_t)copies(segment, region) * region->pages;

	/* Whoever gave the shared area's has them. */
	if (region->kind == REGION_SHARED)
		return;
	for (i = 0; region->page && i < count; i++)
		if (region->page[i])
			__free_page(region->page[i]);
	kvfree(region->page);
	region->page = NULL;
}

static bool absent(const struct segment *segment, u32 index)
{
	return !segment->windows[index].base;
}

static int allocate_pages(const struct segment *segment, struct region *region)
{
	u32 copy, i, count = copies(segment, region);

	if (region->kind == REGION_SHARED)
		return 0;
	region->page = postern_allocate((size_t)count * region->pages * sizeof(*region->page));
	if (!region->page)
		return -ENOMEM;
	for (copy = 0; copy < count; copy++) {
		struct page **pages = region->page + (size_t)copy * region->pages;

		if (region->kind == REGION_OWN && absent(segment, copy))
			continue;
		for (i = 0; i < region->pages; i++) {
			pages[i] = postern_allocate_page();
			if (!pages[i])
				return -ENOMEM;
		}
		if (region->size)
			postern_region_fill(region, pages);
		cond_resched();
	}
	return 0;
}

static int map_region(const struct segment *segment, const struct region *region)
{
	u32 i, k;

	for (i = 0; i < segment->count; i++) {
		struct window *window = &segment->windows[i];
		struct page **pages = pages_in(segment, region, window);
		unsigned long at = (unsigned long)window->base + region->at;

		for (k = 0; !absent(segment, i) && k < region->pages; k++, at += PAGE_SIZE) {
			int error = postern_fails_now() ? -ENOMEM :
				    map(window, at, pages[k], region->kind != REGION_READ);
			if (error)
				return error;
		}
	}
	return 0;
}

static u64 end_of(const struct region *region)
{
	return region->at + (u64)region->pages * PAGE_SIZE;
}

static bool overlaps(const struct segment *segment, const struct part *part)
{
	const struct part *other;
	u32 i, k;

	list_for_each_entry(other, &segment->parts, parts)
		for (i = 0; i < other->count; i++)
			for (k = 0; k < part->count; k++)
				if (other->regions[i].at < end_of(&part->regions[k]) &&
				    part->regions[k].at < end_of(&other->regions[i]))
					return true;
	return false;
}

static void drop(struct segment *segment, struct part *part, bool mapped)
{
	u32 i, k;

	for (i = 0; i < part->count; i++) {
		struct region *region = &part->regions[i];

		for (k = 0; mapped && k < segment->count; k++) {
			unsigned long at = (unsigned long)segment->windows[k].base + region->at;

			if (!absent(segment, k))
				unmap(&segment->windows[k], at,
				      at + (unsigned long)region->pages * PAGE_SIZE);
		}
		free_pages_of(segment, region);
	}
}

int postern_part_join(struct segment *segment, struct part *part)
{
	int error = 0;
	u32 i;

	if (overlaps(segment, part))
		return -EADDRINUSE;
	for (i = 0; !error && i < part->count; i++)
		error = allocate_pages(segment, &part->regions[i]);
	if (error) {
		drop(segment, part, false);
		return error;
	}
	for (i = 0; !error && i < part->count; i++)
		error = map_region(segment, &part->regions[i]);
	if (error) {
		drop(segment, part, true);
		return error;
	}
	list_add_tail_rcu(&part->parts, &segment->parts);
	return 0;
}

/* Whether `offset` lies in a region of the part; then *end is behind it. */
static bool covered(const struct part *part, u64 offset, bool writable, u64 *end)
{
	u32 i;

	for (i = 0; i < part->count; i++) {
		const struct region *region = &part->regions[i];

		if (offset >= region->at && offset < end_of(region) &&
		    !(writable && region->kind == REGION_READ)) {
			*end = end_of(region);
			return true;
		}
	}
	return false;
}

void postern_part_leave(struct segment *segment, struct part *part)
{
	u64 end;

	/* Nobody copies to the page for hooks' bytes any more when it goes. */
	if (covered(part, segment->bytes, true, &end))
		WRITE_ONCE(segment->bytes, 0);
	list_del_rcu(&part->parts);
	/* A reset may be at it, and so may a call be. */
	synchronize_rcu();
	drop(segment, part, true);
}

u64 postern_part_bytes(const struct segment *segment, const struct part *part)
{
	u64 bytes = 0;
	u32 i, windows = segment->levels ? num_possible_cpus() * segment->levels : 1;

	for (i = 0; i < part->count; i++)
		bytes += (u64)part->regions[i].pages * PAGE_SIZE *
			 (part->regions[i].kind == REGION_OWN ? windows : 1);
	return bytes;
}

void postern_part_rights(const struct segment *segment, const struct part *part, u32 *wrong, u32 *all)
{
	unsigned int level;
	u32 i, k, page;

	for (i = 0; i < segment->count; i++)
		for (k = 0; !absent(segment, i) && k < part->count; k++)
			for (page = 0; page < part->regions[k].pages; page++) {
				const struct region *region = &part->regions[k];
				pte_t *entry = lookup_address((unsigned long)segment->windows[i].base +
							      region->at + page * PAGE_SIZE, &level);

				*all += entry != NULL;
				*wrong += entry && (pte_exec(*entry) ||
						    (pte_write(*entry) && region->kind == REGION_READ));
			}
}

void postern_window_reset(struct segment *segment, struct window *window)
{
	struct part *part;
	u32 i;

	list_for_each_entry_rcu(part, &segment->parts, parts, preemptible() == 0)
		for (i = 0; i < part->count; i++)
			if (part->regions[i].kind == REGION_OWN)
				postern_region_fill(&part->regions[i],
						    pages_in(segment, &part->regions[i], window));
	window->heap_end = 0;
}

void postern_segment_stale(struct segment *segment)
{
	u32 i;

	for (i = 0; i < segment->count; i++)
		WRITE_ONCE(segment->windows[i].stale, 1);
}

void *postern_in_window(struct segment *segment, struct window *window, u64 offset, u64 size,
			bool writable)
{
	u64 at = (u32)offset, end = at + size;
	struct part *part;

	/* A range may go over several regions; each turn of the outer loop leaves one of them. */
	if (size > WINDOW_SIZE)
		return NULL;
	while (at < end || size == 0) {
		bool found = false;

		list_for_each_entry_rcu(part, &segment->parts, parts, preemptible() == 0)
			if (covered(part, at, writable, &at)) {
				found = true;
				break;
			}
		if (!found)
			return NULL;
		if (size == 0)
			break;
	}
	return window->base + (u32)offset;
}

u64 postern_heap_move(struct invocation *invocation, s64 more)
{
	const struct segment *segment = invocation->extension->segment;
	struct window *window = invocation->window;
	s64 before = window->heap_end ?: segment->heap_start;

	if (more < -(s64)U32_MAX || more > (s64)U32_MAX ||
	    before + more < segment->heap_start || before + more > segment->heap_limit)
		return 0;
	window->heap_end = before + more;
	return before;
}
