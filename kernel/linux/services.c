// SPDX-License-Identifier: GPL-2.0
/* The functions that extensions import: one table of names, rights and functions, which
 * docs/src/reference/kernel-services.md and the header postern/kernel.h repeat, and a test compares.
 *
 * Every argument is the extension's and may be anything. Memory is reached through postern_at alone,
 * which finds it in the window or does not; what it finds stays there during the service. What can
 * never be right ends the call; what depends on the day is told by a value. All run at any level:
 * nothing sleeps, and locks are those of kept.h. */
#include <linux/smp.h>
#include <linux/string.h>
#include <linux/ktime.h>
#include <linux/uaccess.h>

#include <asm/ptrace.h>

#include "kept.h"

/* Bytes that a service copies at most. */
#define MOST_COPIED 4096

static u64 time_now(struct invocation *invocation, u64 a, u64 b, u64 c, u64 d, u64 e)
{
	return ktime_get_mono_fast_ns();
}

static u64 processor(struct invocation *invocation, u64 a, u64 b, u64 c, u64 d, u64 e)
{
	return raw_smp_processor_id();
}

static u64 heap(struct invocation *invocation, u64 more, u64 b, u64 c, u64 d, u64 e)
{
	return postern_heap_move(invocation, more);
}

static struct sk_buff *packet_of(struct invocation *invocation)
{
	return invocation->kind == SUBJECT_PACKET ? invocation->subject : NULL;
}

static u64 packet_length(struct invocation *invocation, u64 a, u64 b, u64 c, u64 d, u64 e)
{
	struct sk_buff *skb = packet_of(invocation);

	return skb ? postern_packet_length(skb) : 0;
}

static u64 packet_read(struct invocation *invocation, u64 offset, u64 to, u64 size, u64 d, u64 e)
{
	struct sk_buff *skb = packet_of(invocation);
	void *at = size <= MOST_COPIED ? postern_at(invocation, to, size, true) : NULL;

	if (!at)
		return postern_bad_argument(invocation);
	return skb && postern_packet_read(skb, offset, at, size);
}

static u64 packet_write(struct invocation *invocation, u64 offset, u64 from, u64 size, u64 d, u64 e)
{
	struct sk_buff *skb = packet_of(invocation);
	void *at = size <= MOST_COPIED ? postern_at(invocation, from, size, false) : NULL;

	if (!at)
		return postern_bad_argument(invocation);
	return skb && postern_packet_write(skb, offset, at, size);
}

/* What the map tells; within a lock of another's, that there is nothing. */
static u64 told(int done)
{
	return done > 0;
}

/* A key as it was when it was looked at: the window may be another processor's, too. */
struct map_key {
	u8 bytes[64];
};

/* A copy of the key; false if it is none of this map's. */
static bool key_of(struct invocation *invocation, const struct map *map, u64 key, u64 key_size,
		   struct map_key *copy)
{
	void *at = postern_at(invocation, key, key_size, false);

	if (!at || key_size != postern_map_key_size(map))
		return false;
	memcpy(copy->bytes, at, key_size);
	return true;
}

/* Finds or sets. */
static u64 map_value(struct invocation *invocation, u64 number, u64 key, u64 key_size, u64 value,
		     u64 value_size, bool set)
{
	struct map *map = postern_map(postern_kept(invocation->extension), number);
	void *at = postern_at(invocation, value, value_size, !set);
	struct map_key copy;

	if (!map)
		return 0;
	if (!at || value_size != postern_map_value_size(map) ||
	    !key_of(invocation, map, key, key_size, &copy))
		return postern_bad_argument(invocation);
	return told(set ? postern_map_set(map, copy.bytes, at) :
			  postern_map_find(map, copy.bytes, at));
}

static u64 map_find(struct invocation *invocation, u64 number, u64 key, u64 key_size, u64 value,
		    u64 value_size)
{
	return map_value(invocation, number, key, key_size, value, value_size, false);
}

static u64 map_set(struct invocation *invocation, u64 number, u64 key, u64 key_size, u64 value,
		   u64 value_size)
{
	return map_value(invocation, number, key, key_size, value, value_size, true);
}

static u64 map_remove(struct invocation *invocation, u64 number, u64 key, u64 key_size, u64 d, u64 e)
{
	struct map *map = postern_map(postern_kept(invocation->extension), number);
	struct map_key copy;

	if (!map)
		return 0;
	if (!key_of(invocation, map, key, key_size, &copy))
		return postern_bad_argument(invocation);
	return told(postern_map_remove(map, copy.bytes));
}

static u64 ring_write(struct invocation *invocation, u64 bytes, u64 size, u64 c, u64 d, u64 e)
{
	struct extension *extension = invocation->extension;
	void *at = size <= POSTERN_ENTRY ? postern_at(invocation, bytes, size, false) : NULL;

	if (!at)
		return postern_bad_argument(invocation);
	if (postern_ring_write(postern_kept(extension)->ring, at, size))
		return 1;
	postern_counters(extension)->lost++;
	return 0;
}

static u64 request(struct invocation *invocation, u64 name, u64 size, u64 a, u64 b, u64 c)
{
	const u64 arguments[6] = { a, b, c };
	char function[POSTERN_NAME] = {};
	void *at = size < POSTERN_NAME ? postern_at(invocation, name, size, false) : NULL;

	if (!at)
		return postern_bad_argument(invocation);
	memcpy(function, at, size);
	return postern_request(invocation->extension, function, arguments) == 0;
}

static u64 log_line(struct invocation *invocation, u64 text, u64 size, u64 c, u64 d, u64 e)
{
	struct extension *extension = invocation->extension;
	void *at = size <= MOST_COPIED ? postern_at(invocation, text, size, false) : NULL;

	if (!at)
		return postern_bad_argument(invocation);
	if (postern_log_line(extension, at, size))
		return 1;
	postern_counters(extension)->log_left_out++;
	return 0;
}

static u64 memory_read(struct invocation *invocation, u64 address, u64 to, u64 size, u64 d, u64 e)
{
	void *at = size <= MOST_COPIED ? postern_at(invocation, to, size, true) : NULL;

	if (!at)
		return postern_bad_argument(invocation);
	return copy_from_kernel_nofault(at, (void *)address, size) == 0;
}

/* In the order of struct postern_registers of postern/kernel.h. */
static u64 registers(struct invocation *invocation, u64 to, u64 b, u64 c, u64 d, u64 e)
{
	const struct pt_regs *r = invocation->kind == SUBJECT_REGISTERS ? invocation->subject : NULL;
	u64 *at = postern_at(invocation, to, 18 * sizeof(u64), true);

	if (!at)
		return postern_bad_argument(invocation);
	if (r) {
		const u64 values[] = { r->ax,  r->bx,  r->cx,  r->dx,  r->si,  r->di,
				       r->bp,  r->sp,  r->r8,  r->r9,  r->r10, r->r11,
				       r->r12, r->r13, r->r14, r->r15, r->ip,  r->flags };

		memcpy(at, values, sizeof(values));
	}
	return r != NULL;
}

#define SEE POSTERN_MAY_SEE_PACKETS
#define CHANGE POSTERN_MAY_CHANGE_PACKETS
#define OBSERVE POSTERN_MAY_OBSERVE
#define LOG POSTERN_MAY_LOG

static const struct service services[] = {
	{ "postern_time", 0, time_now },
	{ "postern_processor", 0, processor },
	{ "postern_heap", 0, heap },
	{ "postern_packet_length", SEE, packet_length },
	{ "postern_packet_read", SEE, packet_read },
	{ "postern_packet_write", SEE | CHANGE, packet_write },
	{ "postern_map_find", 0, map_find },
	{ "postern_map_set", 0, map_set },
	{ "postern_map_remove", 0, map_remove },
	{ "postern_ring_write", 0, ring_write },
	{ "postern_request", 0, request },
	{ "postern_log", LOG, log_line },
	{ "postern_kernel_read", OBSERVE, memory_read },
	{ "postern_registers", OBSERVE, registers },
};

const struct service *postern_service(const u8 *name, u32 length)
{
	u32 k;

	for (k = 0; k < ARRAY_SIZE(services); k++)
		if (strlen(services[k].name) == length && memcmp(services[k].name, name, length) == 0)
			return &services[k];
	return NULL;
}
