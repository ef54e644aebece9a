// SPDX-License-Identifier: GPL-2.0
/* Requests that are queued: Palladium's asynchronous extensions. Whoever asks, from any level, goes
 * on at once; a worker calls the functions one after the other, each to its end, at the level of
 * tasks. So a function that is not reentrant can be asked for from many places, and work that a hook
 * has no time for is done later.
 *
 * A request is in the queue until its call has ended, however that was: its place is free again
 * after a fault as after a return. While there are any, the extension is busy. */
#include <linux/delay.h>
#include <linux/irq_work.h>
#include <linux/mm.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/workqueue.h>

#include "kept.h"

/* Requests of an extension at once. */
#define MOST_REQUESTS 64

struct request {
	char function[POSTERN_NAME];
	u64 arguments[6];
};

struct requests {
	raw_spinlock_t lock; /* of all below but the works */
	bool stopped;
	u32 first, count;
	struct request list[MOST_REQUESTS];
	struct kept *kept;
	struct extension *leaving; /* the worker is to detach what this has attached */
	struct irq_work kick;
	struct work_struct work;
};

static struct workqueue_struct *workers;

int postern_request(struct extension *extension, const char *function, const u64 arguments[6])
{
	struct requests *requests = postern_kept(extension)->requests;
	struct request *request;
	unsigned long flags;
	int error = 0;

	if (!postern_exclude(&flags))
		return -EBUSY;
	raw_spin_lock(&requests->lock);
	if (requests->stopped) {
		error = -ENOENT;
	} else if (requests->count == MOST_REQUESTS) {
		error = -EBUSY;
	} else {
		request = &requests->list[(requests->first + requests->count) % MOST_REQUESTS];
		strscpy(request->function, function, sizeof(request->function));
		memcpy(request->arguments, arguments, sizeof(request->arguments));
		requests->count++;
		/* The scheduler may hold its locks here: the worker is woken from an interrupt. */
		irq_work_queue(&requests->kick);
	}
	raw_spin_unlock(&requests->lock);
	postern_include(flags);
	return error;
}

static void kick(struct irq_work *kick)
{
	queue_work(workers, &container_of(kick, struct requests, kick)->work);
}

/* The first request, which stays where it is; false if there is none. */
static bool first_request(struct requests *requests, struct request *request)
{
	unsigned long flags;
	bool found = false;

	/* Only a probe can be excluded, and a worker is none. */
	if (!postern_exclude(&flags))
		return false;
	raw_spin_lock(&requests->lock);
	if (!requests->stopped && requests->count > 0) {
		*request = requests->list[requests->first];
		found = true;
	}
	raw_spin_unlock(&requests->lock);
	postern_include(flags);
	return found;
}

static void done(struct requests *requests)
{
	unsigned long flags;

	if (!postern_exclude(&flags))
		return;
	raw_spin_lock(&requests->lock);
	requests->first = (requests->first + 1) % MOST_REQUESTS;
	requests->count--;
	raw_spin_unlock(&requests->lock);
	postern_include(flags);
}

/* Calls once. The extension may be replaced meanwhile, which waits until this has ended. */
static u32 call(struct requests *requests, const struct request *request)
{
	u32 kind = POSTERN_ABSENT, offset;
	struct postern_outcome outcome;
	struct extension *extension;
	u64 value;

	preempt_disable();
	extension = rcu_dereference_sched(requests->kept->extension);
	offset = extension ? postern_function(extension, request->function) : 0;
	if (offset)
		kind = postern_invoke(extension, offset, request->arguments, SUBJECT_NONE, NULL, &value,
				      &outcome);
	else if (extension)
		postern_counters(extension)->ended[POSTERN_ABSENT]++;
	preempt_enable();
	return kind;
}

static void work(struct work_struct *work)
{
	struct requests *requests = container_of(work, struct requests, work);
	struct extension *leaving = xchg(&requests->leaving, NULL);
	struct request request;

	if (leaving)
		postern_leave_hooks(requests->kept, leaving);
	while (first_request(requests, &request)) {
		/* An only window may be in use on another processor. */
		while (call(requests, &request) == POSTERN_SKIPPED && !READ_ONCE(requests->stopped))
			usleep_range(100, 200);
		done(requests);
		cond_resched();
	}
}

u64 postern_requests_waiting(const struct kept *kept)
{
	return READ_ONCE(kept->requests->count);
}

int postern_requests_begin(struct kept *kept)
{
	struct requests *requests = postern_allocate(sizeof(*requests));

	if (!requests)
		return -ENOMEM;
	raw_spin_lock_init(&requests->lock);
	requests->kept = kept;
	init_irq_work(&requests->kick, kick);
	INIT_WORK(&requests->work, work);
	kept->requests = requests;
	return 0;
}

void postern_requests_leave(struct kept *kept, struct extension *leaving)
{
	WRITE_ONCE(kept->requests->leaving, leaving);
	irq_work_queue(&kept->requests->kick);
}

/* The worker may be about to run once more afterwards, finds the mark and does nothing. */
void postern_requests_stop(struct kept *kept)
{
	WRITE_ONCE(kept->requests->stopped, true);
	irq_work_sync(&kept->requests->kick);
	cancel_work_sync(&kept->requests->work);
}

void postern_requests_end(struct kept *kept)
{
	if (!kept->requests)
		return;
	postern_requests_stop(kept);
	kvfree(kept->requests);
	kept->requests = NULL;
}

int postern_queue_init(void)
{
	workers = alloc_workqueue("postern", WQ_UNBOUND, 0);
	return workers ? 0 : -ENOMEM;
}

void postern_queue_exit(void)
{
	destroy_workqueue(workers);
}
