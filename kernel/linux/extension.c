// SPDX-License-Identifier: GPL-2.0
/* Making an extension of an accepted image, and taking it apart.
 *
 * Invariant: a step that fails leaves everything to postern_unmake, which takes apart what is
 * there, in the order in which it came backward. Text is in the arena before its faults are known,
 * both before a window is; and no call begins before all are. */
#include <linux/err.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "arena.h"
#include "call.h"
#include "extension.h"
#include "faults.h"
#include "tick.h"

/* Bytes of a gate slot, as the verifier knows them. */
#define SLOT_SIZE 32
#define INFO 0x10000
#define ABI_VERSION 1
/* Where interrupts are off nothing runs longer than this, in instructions. */
#define BOUNDED_PATH 16384
#define MOST_HEAP (256 << 20)
#define MOST_PAGES (1 << 16) /* of one window */
#define LIMIT_END 0xffff0000u

/* Guards the arena, the exception table, segments and the tick. */
static DEFINE_MUTEX(making);

static u32 milliseconds = 20;
module_param_named(limit, milliseconds, uint, 0600);
MODULE_PARM_DESC(limit, "milliseconds that a call may take where the extension has no limit of its own");

bool postern_is_bounded(const struct extension *extension)
{
	u32 path = extension->verdict.longest_path;

	return path && path <= BOUNDED_PATH;
}

static u32 pages_of(u64 bytes)
{
	return DIV_ROUND_UP(bytes, PAGE_SIZE);
}

/* The functions that the image imports; *verdict tells the first that there is none for. */
static int find_services(struct extension *extension, struct postern_verdict *verdict)
{
	u32 count = extension->layout.imports, i;
	struct postern_symbol *wanted = postern_allocate((count + 1) * sizeof(*wanted));
	int error = 0;

	extension->imports = postern_allocate((count + 1) * sizeof(*extension->imports));
	if (!wanted || !extension->imports ||
	    !postern_judge_imports(extension->file, extension->size, wanted, count))
		error = -ENOMEM;
	for (i = 0; !error && i < count; i++) {
		const struct service *service = postern_service(wanted[i].name, wanted[i].length);

		if (service && !(service->rights & ~extension->rights)) {
			extension->imports[i] = service->function;
			continue;
		}
		*verdict = (struct postern_verdict){ .verdict = POSTERN_NO_SERVICE,
						     .place = POSTERN_PLACE_IMPORT, .at = i };
		error = -ENOENT;
	}
	extension->services = extension->imports;
	kvfree(wanted);
	return error;
}

static int find_exports(struct extension *extension)
{
	u32 count = extension->layout.exports;

	extension->exports = postern_allocate((count + 1) * sizeof(*extension->exports));
	if (!extension->exports ||
	    !postern_judge_exports(extension->file, extension->size, extension->exports, count))
		return -ENOMEM;
	return 0;
}

/* `jmp` at a place in the arena. */
static void write_jump(u8 *to, const u8 *at, const void *target)
{
	s32 displacement = (s32)((unsigned long)target - (unsigned long)(at + 5));

	to[0] = 0xe9;
	memcpy(to + 1, &displacement, sizeof(displacement));
}

/* endbr64; xor %r11d, %r11d; jmp */
static void write_door(u8 *to, const u8 *at, const u8 *target)
{
	static const u8 begin[] = { 0xf3, 0x0f, 0x1e, 0xfa, 0x45, 0x31, 0xdb };

	memcpy(to, begin, sizeof(begin));
	write_jump(to + sizeof(begin), at + sizeof(begin), target);
}

/* mov $number, %eax; jmp */
static void write_slot(u8 *to, const u8 *at, u32 number)
{
	to[0] = 0xb8;
	memcpy(to + 1, &number, sizeof(number));
	write_jump(to + 5, at + 5, postern_service_gate);
}

/* Doors, slots and text, as they are at `arena`. */
static void write_text(const struct extension *extension, u8 *to)
{
	const struct postern_layout *layout = &extension->layout;
	u32 text = extension->text - extension->arena, slots = text - (layout->text - layout->gates), i;

	for (i = 0; i < layout->exports; i++)
		write_door(to + i * DOOR_SIZE, extension->arena + i * DOOR_SIZE,
			   extension->text + (extension->exports[i].offset - layout->text));
	for (i = 0; i < layout->imports; i++)
		write_slot(to + slots + i * SLOT_SIZE, extension->arena + slots + i * SLOT_SIZE, i);
	memcpy(to + text, extension->file + layout->text_file, layout->text_size);
}

static int place_text(struct extension *extension)
{
	const struct postern_layout *layout = &extension->layout;
	u32 doors = PAGE_ALIGN(layout->exports * DOOR_SIZE), slots = layout->text - layout->gates;
	u32 size = doors + slots + (layout->text_end - layout->text);
	u8 *text;
	int error;

	extension->arena = postern_arena_take(pages_of(size));
	if (!extension->arena)
		return -ENOSPC;
	extension->arena_pages = pages_of(size);
	extension->doors = extension->arena;
	extension->doors_end = layout->exports * DOOR_SIZE;
	extension->text = extension->arena + doors + slots;
	text = postern_allocate(size);
	if (!text)
		return -ENOMEM;
	memset(text, 0xcc, size);
	write_text(extension, text);
	error = postern_arena_write(extension->arena, text, size);
	kvfree(text);
	return error;
}

static int place_faults(struct extension *extension)
{
	const u8 *text = extension->file + extension->layout.text_file;
	u32 size = extension->layout.text_size, *offsets;
	u32 count = postern_judge_accesses(text, size, NULL, 0);
	int error;

	offsets = postern_allocate((count + 1) * sizeof(*offsets));
	if (!offsets)
		return -ENOMEM;
	postern_judge_accesses(text, size, offsets, count);
	extension->accesses = count;
	error = postern_faults_add(extension->text, offsets, count);
	extension->may_fault = !error;
	kvfree(offsets);
	return error;
}

/* What user level finds in the info page, but for the base, which is the kernel's alone. */
static int fill_info(struct extension *extension, struct region *region)
{
	struct info {
		u64 base;
		u32 version, zero, heap_start, heap_end;
		u64 zeros;
		u32 stack_mask;
	} *info = postern_allocate(sizeof(*info));

	if (!info)
		return -ENOMEM;
	info->version = ABI_VERSION;
	info->heap_start = extension->segment->heap_start;
	info->heap_end = extension->segment->heap_limit;
	info->stack_mask = extension->layout.stack_size - 1;
	region->bytes = (u8 *)info;
	region->size = sizeof(*info);
	return 0;
}

/* Part of data and bss, from one offset in the window to another. */
static void add_data(struct extension *extension, enum region_kind kind, u32 from, u32 to)
{
	const struct postern_layout *layout = &extension->layout;
	struct region *region;
	u32 into = from - layout->data;

	if (from >= to)
		return;
	region = postern_part_add(&extension->part, kind, from, pages_of(to - from));
	if (into < layout->data_size) {
		region->bytes = extension->file + layout->data_file + into;
		region->size = min(layout->data_size - into, to - from);
	}
}

static bool shared_fits(const struct postern_load *load, const struct postern_layout *layout)
{
	if (!load->shared && !load->shared_size)
		return true;
	return load->shared_size && !offset_in_page(load->shared) &&
	       !offset_in_page(load->shared_size) && load->shared >= layout->data &&
	       load->shared <= layout->heap_start &&
	       load->shared_size <= layout->heap_start - load->shared;
}

static int make_shared(struct extension *extension, u32 size)
{
	u32 i;

	if (!size)
		return 0;
	extension->shared = postern_allocate(pages_of(size) * sizeof(*extension->shared));
	if (!extension->shared)
		return -ENOMEM;
	extension->shared_pages = pages_of(size);
	for (i = 0; i < extension->shared_pages; i++) {
		extension->shared[i] = postern_allocate_page();
		if (!extension->shared[i])
			return -ENOMEM;
	}
	return 0;
}

/* What it has of a segment that is its own: the info page, stack, heap, and the page of bytes. */
static int add_own(struct extension *extension, u32 heap)
{
	const struct postern_layout *layout = &extension->layout;
	struct segment *segment = extension->segment;
	struct part *part = &extension->part;

	segment->stack_top = layout->stack + layout->stack_size;
	segment->heap_start = layout->heap_start;
	segment->heap_limit = layout->heap_start + heap;
	/* A page that is not there lies between the heap and this. */
	segment->bytes = segment->heap_limit + PAGE_SIZE;
	postern_part_add(part, REGION_OWN, layout->stack, pages_of(layout->stack_size));
	postern_part_add(part, REGION_OWN, layout->heap_start, pages_of(heap));
	postern_part_add(part, REGION_OWN, segment->bytes, 1);
	return fill_info(extension, postern_part_add(part, REGION_READ, INFO, 1));
}

static int place_memory(struct extension *extension, const struct postern_load *load)
{
	const struct postern_layout *layout = &extension->layout;
	u32 end = layout->heap_start, shared_end = load->shared + load->shared_size;
	struct part *part = &extension->part;
	struct region *region;
	int error = make_shared(extension, load->shared_size);

	if (!error && !load->segment)
		error = add_own(extension, PAGE_ALIGN(load->heap));
	if (error)
		return error;
	region = postern_part_add(part, REGION_READ, layout->rodata, pages_of(layout->rodata_size));
	if (layout->rodata_size) {
		region->bytes = extension->file + layout->rodata_file;
		region->size = layout->rodata_size;
	}
	if (load->shared_size) {
		add_data(extension, REGION_OWN, layout->data, load->shared);
		add_data(extension, REGION_SHARED, load->shared, shared_end);
		part->regions[part->count - 1].page = extension->shared;
		add_data(extension, REGION_OWN, shared_end, end);
	} else {
		add_data(extension, REGION_OWN, layout->data, end);
	}
	error = postern_part_join(extension->segment, part);
	extension->joined = !error;
	extension->stack_top = extension->segment->stack_top;
	return error;
}

/* A segment of its own, or that of the extension that it shares one with. */
static int find_segment(struct extension *extension, const struct postern_load *load)
{
	struct extension *other;

	if (load->segment) {
		other = postern_get(load->segment);
		if (!other)
			return -ENOENT;
		postern_segment_get(other->segment);
		extension->segment = other->segment;
		extension->one_window = other->one_window;
		postern_put(other);
		return 0;
	}
	extension->one_window = load->flags & POSTERN_ONE_WINDOW;
	extension->segment = postern_segment_make(extension->one_window			? 0 :
						  postern_is_bounded(extension) ? LEVELS :
										  LEVEL_HARD);
	return extension->segment ? 0 : -ENOMEM;
}

/* Which window each processor calls it in at each level. */
static int find_windows(struct extension *extension)
{
	enum level levels = postern_is_bounded(extension) ? LEVELS : LEVEL_HARD, level;
	int processor;

	extension->windows = postern_fails_now() ? NULL :
		(struct window *__percpu *)__alloc_percpu(LEVELS * sizeof(struct window *),
							  sizeof(struct window *));
	extension->counters = postern_fails_now() ? NULL : alloc_percpu(struct counters);
	if (!extension->windows || !extension->counters)
		return -ENOMEM;
	for_each_possible_cpu(processor)
		for (level = 0; level < levels; level++)
			per_cpu_ptr(extension->windows, processor)[level] =
				postern_segment_window(extension->segment, processor, level);
	return 0;
}

static void leave_hooks(struct work_struct *work)
{
	postern_put(container_of(work, struct extension, leave));
}

/* Everything but the number; whoever fails leaves the rest to postern_unmake. */
static int assemble(struct extension *extension, const struct postern_load *load,
		    struct postern_verdict *verdict)
{
	int error = find_services(extension, verdict);

	error = error ?: find_exports(extension);
	if (error)
		return error;
	mutex_lock(&making);
	error = find_segment(extension, load);
	error = error ?: find_windows(extension);
	error = error ?: place_memory(extension, load);
	error = error ?: place_text(extension);
	error = error ?: place_faults(extension);
	error = error ?: postern_tick_begin();
	extension->ticking = !error;
	extension->refused = error ? POSTERN_ENDED : 0;
	mutex_unlock(&making);
	return error;
}

static bool makes_sense(const struct postern_load *load, const struct postern_layout *layout)
{
	u64 end = layout->heap_start + (u64)PAGE_ALIGN(load->heap) + 2 * PAGE_SIZE;

	return shared_fits(load, layout) && end <= LIMIT_END &&
	       pages_of(end - layout->stack) <= MOST_PAGES && !(load->segment && load->heap);
}

int postern_make(const struct postern_load *load, u8 *file, struct postern_verdict *verdict,
		 struct extension **made)
{
	struct postern_layout layout = {};
	struct extension *extension;
	int error;

	*made = NULL;
	postern_judge_image(file, load->size, verdict, &layout);
	error = verdict->verdict != POSTERN_ACCEPTED ? 0 :
		!makes_sense(load, &layout)	     ? -E2BIG :
						       -ENOMEM;
	extension = error == -ENOMEM ? postern_allocate(sizeof(*extension)) : NULL;
	if (!extension) {
		kvfree(file);
		return error;
	}
	kref_init(&extension->refs);
	spin_lock_init(&extension->last_lock);
	ratelimit_state_init(&extension->told, 5 * HZ, 5);
	ratelimit_set_flags(&extension->told, RATELIMIT_MSG_ON_RELEASE);
	INIT_WORK(&extension->leave, leave_hooks);
	INIT_LIST_HEAD(&extension->kept.attachments);
	extension->refused = POSTERN_ENDED;
	strscpy(extension->name, load->name, sizeof(extension->name));
	extension->file = file;
	extension->size = load->size;
	extension->verdict = *verdict;
	extension->layout = layout;
	extension->rights = load->rights;
	extension->on_fault = load->on_fault;
	extension->limit = load->limit ?: clamp(READ_ONCE(milliseconds), 1u, MOST_LIMIT);
	error = assemble(extension, load, verdict);
	if (error) {
		extension->verdict.verdict = verdict->verdict;
		postern_unmake(extension);
		return verdict->verdict == POSTERN_NO_SERVICE ? 0 : error;
	}
	*made = extension;
	return 0;
}

void postern_unmake(struct extension *extension)
{
	mutex_lock(&making);
	if (extension->ticking)
		postern_tick_end();
	WRITE_ONCE(extension->refused, POSTERN_ENDED);
	/* Calls are under way with preemption off. */
	synchronize_rcu();
	if (extension->may_fault)
		postern_faults_remove(extension->text, extension->accesses);
	if (extension->arena)
		postern_arena_give_back(extension->arena, extension->arena_pages);
	if (extension->joined)
		postern_part_leave(extension->segment, &extension->part);
	if (extension->segment)
		postern_segment_put(extension->segment);
	mutex_unlock(&making);
	postern_put(extension);
}

static void release(struct kref *refs)
{
	struct extension *extension = container_of(refs, struct extension, refs);
	u32 i;

	for (i = 0; i < extension->shared_pages && extension->shared[i]; i++)
		put_page(extension->shared[i]);
	for (i = 0; i < extension->part.count; i++)
		if (extension->part.regions[i].at == INFO)
			kvfree(extension->part.regions[i].bytes);
	kvfree(extension->shared);
	free_percpu(extension->windows);
	free_percpu(extension->counters);
	kvfree(extension->imports);
	kvfree(extension->exports);
	kvfree(extension->file);
	kvfree(extension);
}

void postern_put(struct extension *extension)
{
	kref_put(&extension->refs, release);
}

u32 postern_function(const struct extension *extension, const char *name)
{
	size_t length = strlen(name);
	u32 i;

	for (i = 0; i < extension->layout.exports; i++)
		if (extension->exports[i].length == length &&
		    !memcmp(extension->exports[i].name, name, length))
			return (i + 1) * DOOR_SIZE;
	return 0;
}

u32 postern_rights(const struct extension *extension)
{
	return extension->rights;
}

u32 postern_id(const struct extension *extension)
{
	return extension->id;
}

const char *postern_name(const struct extension *extension)
{
	return extension->name;
}

struct counters *postern_counters(struct extension *extension)
{
	return this_cpu_ptr(extension->counters);
}

struct kept *postern_kept(struct extension *extension)
{
	return &extension->kept;
}

struct page **postern_shared_pages(struct extension *extension, u32 *count)
{
	*count = extension->shared_pages;
	return extension->shared;
}
