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
	/* With the fill behind it, which may be the end of its last instruction. */
	const u8 *text = extension->text;
	u32 size = extension->layout.text_end - extension->layout.text, *offsets;
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
static struct region *add_data(struct extension *extension, enum region_kind kind, u32 from, u32 to)
{
	const struct postern_layout *layout = &extension->layout;
	struct region *region;
	u32 into = from - layout->data;

	if (from >= to)
		return NULL;
	region = postern_part_add(&extension->part, kind, from, pages_of(to - from));
	if (into < layout->data_size) {
		region->bytes = extension->file + layout->data_file + into;
		region->size = min(layout->data_size - into, to - from);
	}
	return region;
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

/* The shared area's pages: those of the image before, which processes may have mapped, if it is as
 * large as that's. */
static int add_shared(struct extension *extension, const struct postern_load *load,
		      const struct extension *before)
{
	u32 count = pages_of(load->shared_size), i;
	struct page **from = before && before->shared_pages == count ? before->shared : NULL;
	struct region *region;

	extension->shared = postern_allocate(count * sizeof(*extension->shared));
	if (!extension->shared)
		return -ENOMEM;
	extension->shared_pages = count;
	for (i = 0; i < count; i++) {
		extension->shared[i] = from ? from[i] : postern_allocate_page();
		if (!extension->shared[i])
			return -ENOMEM;
		if (from)
			get_page(from[i]);
	}
	region = add_data(extension, REGION_SHARED, load->shared, load->shared + load->shared_size);
	region->page = extension->shared;
	if (!from)
		postern_region_fill(region, region->page);
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

static int place_memory(struct extension *extension, const struct postern_load *load,
			const struct extension *before)
{
	const struct postern_layout *layout = &extension->layout;
	u32 end = layout->heap_start, shared = load->shared_size ? load->shared : end;
	struct part *part = &extension->part;
	struct region *region;
	int error = load->segment ? 0 : add_own(extension, PAGE_ALIGN(load->heap));

	if (error)
		return error;
	region = postern_part_add(part, REGION_READ, layout->rodata, pages_of(layout->rodata_size));
	if (layout->rodata_size) {
		region->bytes = extension->file + layout->rodata_file;
		region->size = layout->rodata_size;
	}
	add_data(extension, REGION_OWN, layout->data, shared);
	if (load->shared_size)
		error = add_shared(extension, load, before);
	if (error)
		return error;
	add_data(extension, REGION_OWN, shared + load->shared_size, end);
	error = postern_part_join(extension->segment, part);
	extension->joined = !error;
	extension->segment_of = load->segment;
	extension->memory = postern_part_bytes(extension->segment, part);
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

/* What is the same in all invocations of a processor and a level. */
static void find_window(struct extension *extension, u32 processor, enum level level)
{
	struct invocation *invocation = per_cpu_ptr(extension->invocations, processor) + level;

	if (level != LEVEL_HARD || postern_is_bounded(extension))
		invocation->window = postern_segment_window(extension->segment, processor, level);
	if (invocation->window)
		invocation->base = invocation->window->base;
	invocation->only = !invocation->window || extension->one_window ? &postern_no_window :
									   invocation->window;
	invocation->counters = per_cpu_ptr(extension->counters, processor);
	invocation->stack_top = extension->segment->stack_top;
	invocation->services = extension->imports;
	invocation->extension = extension;
	invocation->level = level;
}

static int find_windows(struct extension *extension)
{
	enum level level;
	int processor;

	extension->invocations = postern_fails_now() ? NULL :
		(struct invocation __percpu *)__alloc_percpu(LEVELS * sizeof(struct invocation),
							 __alignof__(struct invocation));
	if (!extension->invocations)
		return -ENOMEM;
	for_each_possible_cpu(processor)
		for (level = 0; level < LEVELS; level++)
			find_window(extension, processor, level);
	return 0;
}

/* After a fault, where that ends it. What replaced it meanwhile keeps the hooks. */
static void put_keeping(struct keeping *keeping)
{
	if (!keeping || !refcount_dec_and_test(&keeping->refs))
		return;
	if (keeping->begun)
		postern_kept_end(&keeping->kept);
	free_percpu(keeping->counters);
	kvfree(keeping);
}

void postern_kept_get(struct kept *kept)
{
	refcount_inc(&container_of(kept, struct keeping, kept)->refs);
}

void postern_kept_put(struct kept *kept)
{
	put_keeping(container_of(kept, struct keeping, kept));
}

/* What it keeps: what the one before it does, or something new. */
static int find_keeping(struct extension *extension, const struct extension *before)
{
	struct keeping *keeping;
	int error;

	if (before) {
		refcount_inc(&before->keeping->refs);
		extension->keeping = before->keeping;
		extension->counters = extension->keeping->counters;
		return 0;
	}
	keeping = extension->keeping = postern_allocate(sizeof(*keeping));
	if (!keeping)
		return -ENOMEM;
	refcount_set(&keeping->refs, 1);
	raw_spin_lock_init(&keeping->lock);
	INIT_LIST_HEAD(&keeping->kept.attachments);
	keeping->counters = postern_fails_now() ? NULL : alloc_percpu(struct counters);
	extension->counters = keeping->counters;
	if (!keeping->counters)
		return -ENOMEM;
	error = postern_kept_begin(extension, &keeping->kept);
	keeping->begun = !error;
	return error;
}

/* Everything but the number; whoever fails leaves the rest to postern_unmake. */
static int assemble(struct extension *extension, const struct postern_load *load,
		    const struct extension *before, struct postern_verdict *verdict)
{
	int error = find_services(extension, verdict);

	error = error ?: find_exports(extension);
	error = error ?: find_keeping(extension, before);
	if (error)
		return error;
	mutex_lock(&making);
	error = find_segment(extension, load);
	error = error ?: place_memory(extension, load, before);
	error = error ?: find_windows(extension);
	error = error ?: place_text(extension);
	error = error ?: place_faults(extension);
	error = error ?: postern_tick_begin();
	extension->ticking = !error;
	if (!error)
		extension->ended = 0, extension->doors_open = extension->doors_end;
	mutex_unlock(&making);
	return error;
}

static bool makes_sense(const struct postern_load *load, const struct postern_layout *layout)
{
	u64 end = layout->heap_start + (u64)PAGE_ALIGN(load->heap) + 2 * PAGE_SIZE;

	return shared_fits(load, layout) && end <= LIMIT_END &&
	       pages_of(end - layout->stack) <= MOST_PAGES;
}

static struct extension *begin(const struct postern_load *load, u8 *file,
			       const struct postern_verdict *verdict,
			       const struct postern_layout *layout)
{
	struct extension *extension = postern_allocate(sizeof(*extension));

	if (!extension)
		return NULL;
	kref_init(&extension->refs);
	/* Five lines in five seconds, and then how many there were besides. */
	ratelimit_state_init(&extension->told, 5 * HZ, 5);
	ratelimit_set_flags(&extension->told, RATELIMIT_MSG_ON_RELEASE);
	init_irq_work(&extension->notice, postern_notice);
	extension->ended = 1;
	strscpy(extension->name, load->name, sizeof(extension->name));
	extension->file = file;
	extension->size = load->size;
	extension->verdict = *verdict;
	extension->layout = *layout;
	extension->rights = load->rights;
	extension->on_fault = load->on_fault;
	extension->limit = load->limit ?: clamp(READ_ONCE(milliseconds), 1u, MOST_LIMIT);
	return extension;
}

int postern_make(const struct postern_load *load, u8 *file, struct extension *before,
		 struct postern_verdict *verdict, struct extension **made)
{
	struct extension *extension = NULL;
	struct postern_layout layout;
	int error = 0;

	*made = NULL;
	postern_judge_image(file, load->size, verdict, &layout);
	if (verdict->verdict == POSTERN_ACCEPTED) {
		error = makes_sense(load, &layout) ? -ENOMEM : -E2BIG;
		if (error == -ENOMEM)
			extension = begin(load, file, verdict, &layout);
	}
	if (!extension) {
		kvfree(file);
		return error;
	}
	error = assemble(extension, load, before, verdict);
	if (!error) {
		*made = extension;
		return 0;
	}
	postern_unmake(extension);
	return verdict->verdict == POSTERN_NO_SERVICE ? 0 : error;
}

void postern_unmake(struct extension *extension)
{
	WRITE_ONCE(extension->ended, 1);
	WRITE_ONCE(extension->doors_open, 0);
	/* Calls are under way with preemption off. */
	synchronize_rcu();
	irq_work_sync(&extension->notice);
	mutex_lock(&making);
	if (extension->ticking)
		postern_tick_end();
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
	free_percpu(extension->invocations);
	put_keeping(extension->keeping);
	ratelimit_state_exit(&extension->told);
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
	return &extension->keeping->kept;
}

struct page **postern_shared_pages(struct extension *extension, u32 *count)
{
	*count = extension->shared_pages;
	return extension->shared;
}

void postern_tell(struct extension *extension, struct postern_statistics *statistics)
{
	struct keeping *keeping = extension->keeping;
	int processor, kind;

	*statistics = (struct postern_statistics){
		.id = extension->id,
		.on_fault = extension->on_fault,
		.rights = extension->rights,
		.segment = extension->segment_of,
		.size = extension->size,
		.memory = extension->memory,
		.verdict = extension->verdict,
		.queued = postern_requests_waiting(&keeping->kept),
		.restarts = atomic64_read(&keeping->restarts),
		.hooks = postern_hooks_of(&keeping->kept),
		.shared_size = extension->shared_pages * PAGE_SIZE,
	};
	memcpy(statistics->name, extension->name, sizeof(statistics->name));
	for_each_possible_cpu(processor) {
		struct counters *counters = per_cpu_ptr(keeping->counters, processor);

		for (kind = 0; kind < POSTERN_KINDS; kind++)
			statistics->ended[kind] += READ_ONCE(counters->ended[kind]);
		statistics->lost += READ_ONCE(counters->lost);
		statistics->log_left_out += READ_ONCE(counters->log_left_out);
	}
	raw_spin_lock_irq(&keeping->lock);
	statistics->last = keeping->last;
	raw_spin_unlock_irq(&keeping->lock);
}
