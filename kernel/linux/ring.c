// SPDX-License-Identifier: GPL-2.0
/* The ring of an extension: entries that its calls write at any level, and a process reads.
 *
 * Room for an entry is reserved under a lock, its bytes are copied without, and its length is told
 * last; a service runs to its end, so no reservation stays open. Entries are read in the order of
 * their reservations: one that is not yet told stops the reader. `head` and `tail` count bytes since
 * the beginning, in eights. */
#include <linux/irq_work.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/uaccess.h>
#include <linux/wait.h>

#include "kept.h"

static uint ring = 1 << 16;
module_param(ring, uint, 0400);
MODULE_PARM_DESC(ring, "bytes of an extension's ring buffer, 8192 to 16777216, a power of two");

/* An entry's word before its length is told. */
#define OPEN (1u << 31)

struct ring {
	u32 size;
	bool stopped;
	raw_spinlock_t lock; /* of reservations */
	u64 head, tail;
	struct mutex reading;
	wait_queue_head_t readers;
	struct irq_work wake;
	u8 *bytes;
};

static u32 *word_at(struct ring *ring, u64 at)
{
	return (u32 *)(ring->bytes + (at & (ring->size - 1)));
}

static u32 room_of(u32 size)
{
	return ALIGN(sizeof(u32) + size, 8);
}

/* Where the entry begins; false if there is no room. */
static bool reserve(struct ring *ring, u32 size, u64 *at)
{
	unsigned long flags;
	bool fits;

	if (!postern_exclude(&flags))
		return false;
	raw_spin_lock(&ring->lock);
	*at = ring->head;
	/* Behind the reader's last look at what is freed now. */
	fits = *at + room_of(size) - smp_load_acquire(&ring->tail) <= ring->size;
	if (fits) {
		WRITE_ONCE(*word_at(ring, *at), OPEN);
		smp_store_release(&ring->head, *at + room_of(size));
	}
	raw_spin_unlock(&ring->lock);
	postern_include(flags);
	return fits;
}

bool postern_ring_write(struct ring *ring, const void *bytes, u32 size)
{
	u32 at, first;
	u64 entry;

	if (size > POSTERN_ENTRY || !reserve(ring, size, &entry))
		return false;
	at = (entry + sizeof(u32)) & (ring->size - 1);
	first = min(size, ring->size - at);
	memcpy(ring->bytes + at, bytes, first);
	memcpy(ring->bytes, bytes + first, size - first);
	smp_store_release(word_at(ring, entry), size);
	/* Calls may be where the scheduler holds its locks, so nobody is woken from here. */
	if (wq_has_sleeper(&ring->readers))
		irq_work_queue(&ring->wake);
	return true;
}

static void wake(struct irq_work *work)
{
	wake_up_all(&container_of(work, struct ring, wake)->readers);
}

/* The length of the first entry, if it is told. */
static bool first_entry(struct ring *ring, u32 *size)
{
	u64 tail = READ_ONCE(ring->tail);

	if (tail == smp_load_acquire(&ring->head))
		return false;
	*size = smp_load_acquire(word_at(ring, tail));
	return !(*size & OPEN);
}

/* Whole entries, as many as there are and fit; 0 if there is none. */
static ssize_t read_entries(struct ring *ring, char __user *to, size_t room)
{
	size_t done = 0;
	u32 size;

	while (first_entry(ring, &size)) {
		u32 at = ring->tail & (ring->size - 1), whole = room_of(size);
		u32 first = min(whole, ring->size - at);

		if (whole > room - done)
			return done ? done : -EMSGSIZE;
		if (copy_to_user(to + done, ring->bytes + at, first) ||
		    copy_to_user(to + done + first, ring->bytes, whole - first))
			return done ? done : -EFAULT;
		smp_store_release(&ring->tail, ring->tail + whole);
		done += whole;
	}
	return done;
}

ssize_t postern_ring_read(struct ring *ring, char __user *to, size_t size, bool wait)
{
	ssize_t done;
	u32 unused;

	for (;;) {
		/* Asked before: what was written until then is read. */
		bool stopped = READ_ONCE(ring->stopped);

		if (mutex_lock_interruptible(&ring->reading))
			return -ERESTARTSYS;
		done = read_entries(ring, to, size);
		mutex_unlock(&ring->reading);
		if (done != 0 || stopped)
			return done;
		if (!wait)
			return -EAGAIN;
		if (wait_event_interruptible(ring->readers,
					     first_entry(ring, &unused) || READ_ONCE(ring->stopped)))
			return -ERESTARTSYS;
	}
}

__poll_t postern_ring_poll(struct ring *ring, struct file *file, poll_table *table)
{
	__poll_t events = 0;
	u32 unused;

	poll_wait(file, &ring->readers, table);
	if (first_entry(ring, &unused))
		events |= EPOLLIN | EPOLLRDNORM;
	if (READ_ONCE(ring->stopped))
		events |= EPOLLHUP;
	return events;
}

int postern_ring_begin(struct kept *kept)
{
	struct ring *made = postern_allocate(sizeof(*made));

	if (!made)
		return -ENOMEM;
	made->size = roundup_pow_of_two(clamp(ring, 1u << 13, 1u << 24));
	made->bytes = postern_allocate(made->size);
	if (!made->bytes) {
		kvfree(made);
		return -ENOMEM;
	}
	raw_spin_lock_init(&made->lock);
	mutex_init(&made->reading);
	init_waitqueue_head(&made->readers);
	init_irq_work(&made->wake, wake);
	kept->ring = made;
	return 0;
}

void postern_ring_stop(struct kept *kept)
{
	WRITE_ONCE(kept->ring->stopped, true);
	wake_up_all(&kept->ring->readers);
}

void postern_ring_end(struct kept *kept)
{
	if (!kept->ring)
		return;
	irq_work_sync(&kept->ring->wake);
	kvfree(kept->ring->bytes);
	kvfree(kept->ring);
	kept->ring = NULL;
}
