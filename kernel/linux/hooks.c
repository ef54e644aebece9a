// SPDX-License-Identifier: GPL-2.0
/* Attachments: functions of extensions that are called at hooks of the kernel.
 *
 * One lock guards all of them. An attachment keeps no reference of its extension: the extension
 * leaves its hooks before it ends, and none is attached once it has begun to. A call reads whom it
 * calls with preemption off; whoever takes that away waits for a grace period of RCU. */
#include <linux/capability.h>
#include <linux/idr.h>
#include <linux/mm.h>
#include <linux/nospec.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "hook.h"

#define MOST_ATTACHMENTS 1024

DEFINE_PER_CPU(bool, postern_excluded);

static DEFINE_MUTEX(lock);
static DEFINE_IDR(attachments);

static const struct hook *const hooks[] = {
	[POSTERN_NETFILTER] = &postern_netfilter,
	[POSTERN_TRACEPOINT] = &postern_tracepoint,
	[POSTERN_KPROBE] = &postern_kprobe,
	[POSTERN_TIMER] = &postern_timer,
};

static const struct hook *hook_of(const struct postern_attach *how)
{
	return hooks[array_index_nospec(how->hook, ARRAY_SIZE(hooks))];
}

static int may_attach(const struct hook *hook, struct extension *extension, const char *function,
		      u32 *offset)
{
	*offset = postern_function(extension, function);
	if (!*offset)
		return -ENOENT;
	if (hook->rights & ~postern_rights(extension))
		return -EACCES;
	return hook->bounded && !postern_is_bounded(extension) ? -ELOOP : 0;
}

static void free_attachment(struct attachment *attachment)
{
	free_percpu(attachment->totals);
	kvfree(attachment);
}

/* An attachment that is not joined yet. */
static struct attachment *make(const struct postern_attach *how, struct extension *extension, u32 offset)
{
	struct attachment *attachment = postern_allocate(sizeof(*attachment));

	if (!attachment)
		return NULL;
	attachment->how = *how;
	attachment->hook = hook_of(how);
	attachment->targets[0] = (struct target){ extension, offset };
	RCU_INIT_POINTER(attachment->target, &attachment->targets[0]);
	attachment->totals = postern_fails_now() ? NULL : alloc_percpu(struct totals);
	if (!attachment->totals) {
		free_attachment(attachment);
		return NULL;
	}
	return attachment;
}

static int join(struct attachment *attachment, struct kept *kept)
{
	int number, error;

	number = postern_fails_now() ? -ENOMEM :
				       idr_alloc(&attachments, attachment, 1, MOST_ATTACHMENTS + 1, GFP_KERNEL);
	if (number < 0)
		return number;
	attachment->how.attachment = number;
	error = attachment->hook->join(attachment);
	if (error) {
		idr_remove(&attachments, number);
		return error;
	}
	attachment->kept = kept;
	list_add(&attachment->list, &kept->attachments);
	WRITE_ONCE(kept->hooks, kept->hooks + 1);
	return 0;
}

/* The lock is held. */
static void leave(struct attachment *attachment)
{
	struct kept *kept = attachment->kept;

	attachment->hook->leave(attachment);
	idr_remove(&attachments, attachment->how.attachment);
	list_del(&attachment->list);
	WRITE_ONCE(kept->hooks, kept->hooks - 1);
	free_attachment(attachment);
}

/* The lock is held. Gives the attachment its number. */
static int attach(struct postern_attach *how, struct extension *extension)
{
	struct kept *kept = postern_kept(extension);
	struct attachment *attachment;
	u32 offset;
	int error;

	if (kept->stopped)
		return -ENOENT;
	error = may_attach(hook_of(how), extension, how->function, &offset);
	if (error)
		return error;
	attachment = make(how, extension, offset);
	if (!attachment)
		return -ENOMEM;
	error = join(attachment, kept);
	if (error)
		free_attachment(attachment);
	else
		how->attachment = attachment->how.attachment;
	return error;
}

static bool is_string(const char *name)
{
	return strnlen(name, POSTERN_NAME) < POSTERN_NAME;
}

static int detach(u32 number)
{
	struct attachment *attachment;

	mutex_lock(&lock);
	attachment = idr_find(&attachments, number);
	if (attachment)
		leave(attachment);
	mutex_unlock(&lock);
	return attachment ? 0 : -ENOENT;
}

long postern_ioctl_attach(struct postern_attach __user *argument)
{
	struct extension *extension;
	struct postern_attach how;
	int error = -ENOENT;

	if (copy_from_user(&how, argument, sizeof(how)))
		return -EFAULT;
	if (how.hook < POSTERN_NETFILTER || how.hook > POSTERN_TIMER || how.reserved[0] ||
	    how.reserved[1] || !is_string(how.function) || !is_string(how.target))
		return -EINVAL;
	mutex_lock(&lock);
	/* Inside the lock, so that it is not replaced meanwhile. */
	extension = postern_get(how.id);
	if (extension)
		error = attach(&how, extension);
	mutex_unlock(&lock);
	/* Nobody holds the lock here: the end of an extension takes it, and so may the caller's memory
	 * be long in coming. */
	if (extension)
		postern_put(extension);
	if (!error && put_user(how.attachment, &argument->attachment)) {
		detach(how.attachment);
		return -EFAULT;
	}
	return error;
}

long postern_ioctl_detach(u32 __user *argument)
{
	u32 number;

	if (get_user(number, argument))
		return -EFAULT;
	return detach(number);
}

static void tell(const struct attachment *attachment, struct postern_attachment *told)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		const struct totals *totals = per_cpu_ptr(attachment->totals, cpu);

		told->calls += READ_ONCE(totals->calls);
		told->passed += READ_ONCE(totals->passed);
	}
	told->how = attachment->how;
	told->attachment = attachment->how.attachment;
}

long postern_ioctl_attachment(struct postern_attachment __user *argument)
{
	struct postern_attachment told = {};
	struct attachment *attachment;
	u32 next;
	int number;

	if (get_user(number, &argument->attachment) || get_user(next, &argument->next))
		return -EFAULT;
	if (next > 1 || number < 0 || number > MOST_ATTACHMENTS)
		return -EINVAL;
	number += next;
	mutex_lock(&lock);
	attachment = next ? idr_get_next(&attachments, &number) : idr_find(&attachments, number);
	if (attachment)
		tell(attachment, &told);
	mutex_unlock(&lock);
	if (!attachment)
		return -ENOENT;
	told.next = next;
	return copy_to_user(argument, &told, sizeof(told)) ? -EFAULT : 0;
}

void postern_leave_hooks(struct kept *kept, const struct extension *extension)
{
	struct attachment *attachment, *next;

	mutex_lock(&lock);
	if (rcu_access_pointer(kept->extension) == extension)
		list_for_each_entry_safe(attachment, next, &kept->attachments, list)
			leave(attachment);
	mutex_unlock(&lock);
}

void postern_leave_net(struct net *net)
{
	struct attachment *attachment;
	int number;

	mutex_lock(&lock);
	idr_for_each_entry(&attachments, attachment, number)
		if (attachment->how.hook == POSTERN_NETFILTER && attachment->net == net)
			leave(attachment);
	mutex_unlock(&lock);
}

void postern_hooks_lock(void)
{
	mutex_lock(&lock);
}

void postern_hooks_unlock(void)
{
	mutex_unlock(&lock);
}

int postern_hooks_may_move(struct kept *kept, struct extension *next)
{
	struct attachment *attachment;
	u32 offset;
	int error;

	list_for_each_entry(attachment, &kept->attachments, list) {
		error = may_attach(attachment->hook, next, attachment->how.function, &offset);
		if (error)
			return error;
	}
	return 0;
}

void postern_hooks_move(struct kept *kept, struct extension *next)
{
	struct attachment *attachment;

	/* Nobody reads any more what was left by the last move. */
	if (!list_empty(&kept->attachments))
		synchronize_rcu();
	list_for_each_entry(attachment, &kept->attachments, list) {
		struct target *now = rcu_dereference_protected(attachment->target, true);
		struct target *free = &attachment->targets[now == &attachment->targets[0]];

		*free = (struct target){ next, postern_function(next, attachment->how.function) };
		rcu_assign_pointer(attachment->target, free);
	}
	rcu_assign_pointer(kept->extension, next);
}

u32 postern_hooks_of(const struct kept *kept)
{
	return READ_ONCE(kept->hooks);
}

int postern_kept_begin(struct extension *extension, struct kept *kept)
{
	RCU_INIT_POINTER(kept->extension, extension);
	INIT_LIST_HEAD(&kept->attachments);
	if (postern_maps_begin(kept) || postern_ring_begin(kept) || postern_requests_begin(kept)) {
		postern_kept_end(kept);
		return -ENOMEM;
	}
	return 0;
}

void postern_kept_end(struct kept *kept)
{
	postern_requests_end(kept);
	postern_ring_end(kept);
	postern_maps_end(kept);
}

void postern_kept_stop(struct extension *extension)
{
	struct kept *kept = postern_kept(extension);

	mutex_lock(&lock);
	kept->stopped = true;
	mutex_unlock(&lock);
	postern_leave_hooks(kept, extension);
	postern_requests_stop(kept);
	postern_ring_stop(kept);
	RCU_INIT_POINTER(kept->extension, NULL);
}

void postern_leave_hooks_soon(struct extension *extension)
{
	postern_requests_leave(postern_kept(extension), extension);
}

int postern_hooks_init(void)
{
	int error = postern_queue_init();

	if (error)
		return error;
	error = postern_netfilter_init();
	if (error)
		postern_queue_exit();
	return error;
}

void postern_hooks_exit(void)
{
	postern_netfilter_exit();
	postern_queue_exit();
	postern_log_exit();
	idr_destroy(&attachments);
}
