// SPDX-License-Identifier: GPL-2.0
/* Who has which pages of the arena, and writing to them.
 *
 * Invariant: no page of the arena can be written at its own address, and the alias through which it
 * is written cannot be executed and is gone before any of it runs. What nobody has is int3. */
#include <linux/bitmap.h>
#include <linux/mm.h>
#include <linux/smp.h>
#include <linux/string.h>
#include <linux/vmalloc.h>
#include <asm/sync_core.h>

#include "arena.h"
#include "module.h"

#define PAGES (ARENA_SIZE / PAGE_SIZE)
#define TRAP 0xcc

/* Pages that somebody has, and those of them that nobody wants but that are not filled yet, because
 * there was no memory for the alias. */
static DECLARE_BITMAP(taken, PAGES);
static DECLARE_BITMAP(unfilled, PAGES);

static void serialise(void *unused)
{
	sync_core();
}

/* Writes `size` bytes, or as many traps if `bytes` is NULL. */
static int write_pages(u8 *at, const u8 *bytes, u32 size)
{
	u32 into = offset_in_page(at), count = DIV_ROUND_UP(into + size, PAGE_SIZE), i;
	struct page **pages = postern_allocate(count * sizeof(*pages));
	u8 *alias;

	if (!pages)
		return -ENOMEM;
	for (i = 0; i < count; i++)
		pages[i] = vmalloc_to_page(at - into + i * PAGE_SIZE);
	alias = postern_fails_now() ? NULL : vmap(pages, count, VM_MAP, PAGE_KERNEL);
	kvfree(pages);
	if (!alias)
		return -ENOMEM;
	if (bytes)
		memcpy(alias + into, bytes, size);
	else
		memset(alias + into, TRAP, size);
	vunmap(alias);
	/* Processors may have fetched what was there before. */
	on_each_cpu(serialise, NULL, 1);
	return 0;
}

int postern_arena_init(void)
{
	return write_pages(postern_arena, NULL, ARENA_SIZE);
}

static void fill(unsigned long page, unsigned long pages)
{
	if (write_pages(postern_arena + page * PAGE_SIZE, NULL, pages * PAGE_SIZE)) {
		bitmap_set(unfilled, page, pages);
		return;
	}
	bitmap_clear(unfilled, page, pages);
	bitmap_clear(taken, page, pages);
}

u8 *postern_arena_take(u32 pages)
{
	unsigned long at;

	for_each_set_bit(at, unfilled, PAGES)
		fill(at, 1);
	at = bitmap_find_next_zero_area(taken, PAGES, 0, pages, 0);
	if (at >= PAGES)
		return NULL;
	bitmap_set(taken, at, pages);
	return postern_arena + at * PAGE_SIZE;
}

int postern_arena_write(u8 *at, const u8 *bytes, u32 size)
{
	return write_pages(at, bytes, size);
}

void postern_arena_give_back(u8 *at, u32 pages)
{
	fill((at - postern_arena) / PAGE_SIZE, pages);
}

void postern_arena_rights(u32 *writable, u32 *executable)
{
	unsigned long at = (unsigned long)postern_arena, end = at + ARENA_SIZE;
	unsigned int level;

	for (; at < end; at += PAGE_SIZE) {
		pte_t *entry = lookup_address(at, &level);

		*writable += !entry || pte_write(*entry);
		*executable += entry && pte_exec(*entry);
	}
}
