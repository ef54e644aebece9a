/* SPDX-License-Identifier: GPL-2.0 */
/* What maps, ring, queue and log have for services, for descriptors and for hooks.c. */
#ifndef POSTERN_KEPT_H
#define POSTERN_KEPT_H

#include <linux/irqflags.h>
#include <linux/percpu.h>
#include <linux/poll.h>

#include "module.h"

/* Services run at any level, and a probe can begin a call in the middle of another's service, on the
 * same processor. So whoever takes one of the locks of these parts says so first; while it is said,
 * interrupts are off and nobody else on this processor takes any of them, but fails. Whoever holds
 * one waits for nothing but the lock of a map's free entries, so all are free again soon. */
DECLARE_PER_CPU(bool, postern_excluded);

static inline bool postern_exclude(unsigned long *flags)
{
	raw_local_irq_save(*flags);
	if (__this_cpu_read(postern_excluded)) {
		raw_local_irq_restore(*flags);
		return false;
	}
	__this_cpu_write(postern_excluded, true);
	return true;
}

static inline void postern_include(unsigned long flags)
{
	__this_cpu_write(postern_excluded, false);
	raw_local_irq_restore(flags);
}

/* map.c. Keys and values have the map's sizes. Find and remove tell 1, or 0 if there is no such key;
 * set 1, or 0 if there is no room; all of them -EBUSY within another's lock. */
struct map;
int postern_maps_begin(struct kept *kept);
void postern_maps_end(struct kept *kept);
struct map *postern_map(struct kept *kept, u64 number);
u32 postern_map_key_size(const struct map *map);
u32 postern_map_value_size(const struct map *map);
int postern_map_find(struct map *map, const void *key, void *value);
int postern_map_set(struct map *map, const void *key, const void *value);
int postern_map_remove(struct map *map, const void *key);

/* ring.c */
#define POSTERN_ENTRY 4096 /* bytes of one, at most */
int postern_ring_begin(struct kept *kept);
void postern_ring_stop(struct kept *kept);
void postern_ring_end(struct kept *kept);
bool postern_ring_write(struct ring *ring, const void *bytes, u32 size); /* at any level */
ssize_t postern_ring_read(struct ring *ring, char __user *to, size_t size, bool wait);
__poll_t postern_ring_poll(struct ring *ring, struct file *file, poll_table *table);

/* queue.c. `leave` has the worker detach everything. */
int postern_requests_begin(struct kept *kept);
void postern_requests_stop(struct kept *kept);
void postern_requests_leave(struct kept *kept, struct extension *leaving); /* at any level */
void postern_requests_end(struct kept *kept);
int postern_queue_init(void);
void postern_queue_exit(void);

/* hooks.c: detaches what is attached, if the extension is (still) this. */
void postern_leave_hooks(struct kept *kept, const struct extension *extension);

/* log.c: a line of the kernel's log, at any level; false if it is left out. */
#define POSTERN_LINE 160 /* bytes of a text, at most */
bool postern_log_line(struct extension *extension, const char *text, u32 size);
void postern_log_exit(void);

/* packet.c: with an offset from the network header on. All or nothing. */
struct sk_buff;
u32 postern_packet_length(const struct sk_buff *skb);
bool postern_packet_read(const struct sk_buff *skb, u64 offset, void *to, u32 size);
bool postern_packet_write(struct sk_buff *skb, u64 offset, const void *from, u32 size);

#endif
