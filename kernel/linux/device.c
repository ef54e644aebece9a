// SPDX-License-Identifier: GPL-2.0
/* The device /dev/postern: numbers of extensions, and what processes ask.
 *
 * Invariant: nothing that user space says about an image is believed. Its bytes are copied first,
 * the copy is judged, and only an accepted one gets a number. */
#include <linux/capability.h>
#include <linux/ctype.h>
#include <linux/fs.h>
#include <linux/idr.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/seq_file.h>
#include <linux/uaccess.h>

#include "arena.h"
#include "device.h"
#include "extension.h"

/* Extensions that may be loaded at once. */
#define MOST_EXTENSIONS 256

/* Guards changes of `extensions`, in which a number that is only reserved has NULL; looked up under
 * RCU. */
static DEFINE_MUTEX(lock);
static DEFINE_IDR(extensions);

/* A copy of `size` bytes of the caller's, which nobody can change while they are judged. */
static u8 *copied(u64 from, u64 size)
{
	u8 *copy;

	if (size == 0 || size > POSTERN_MOST)
		return ERR_PTR(-EFBIG);
	copy = postern_allocate(size);
	if (!copy)
		return ERR_PTR(-ENOMEM);
	if (copy_from_user(copy, u64_to_user_ptr(from), size)) {
		kvfree(copy);
		return ERR_PTR(-EFAULT);
	}
	return copy;
}

struct extension *postern_get(u32 id)
{
	struct extension *extension;

	rcu_read_lock();
	extension = idr_find(&extensions, id);
	if (extension && !kref_get_unless_zero(&extension->refs))
		extension = NULL;
	rcu_read_unlock();
	return extension;
}

/* Gives an extension a number, but does not show it under that yet. */
static int reserve(void)
{
	int id;

	mutex_lock(&lock);
	id = postern_fails_now() ? -ENOMEM :
		idr_alloc(&extensions, NULL, 1, MOST_EXTENSIONS + 1, GFP_KERNEL);
	mutex_unlock(&lock);
	return id;
}

/* Shows an extension under its number; NULL gives the number back. */
static void settle(int id, struct extension *extension)
{
	mutex_lock(&lock);
	if (extension)
		idr_replace(&extensions, extension, id);
	else
		idr_remove(&extensions, id);
	mutex_unlock(&lock);
}

/* Of one that has no number any more. */
static void end(struct extension *extension)
{
	postern_kept_stop(extension);
	postern_unmake(extension);
}

static bool is_name(const char *name)
{
	size_t length = strnlen(name, POSTERN_NAME), i;

	for (i = 0; i < length; i++)
		if (!isascii(name[i]) || !isgraph(name[i]))
			return false;
	return length < POSTERN_NAME;
}

static bool makes_sense(const struct postern_load *load)
{
	return load->reserved == 0 && is_name(load->name) && load->on_fault <= POSTERN_FAULT_ENDS &&
	       !(load->flags & ~POSTERN_ONE_WINDOW) && load->limit <= MOST_LIMIT &&
	       !(load->segment && (load->heap || load->flags)) &&
	       !(load->rights & ~(POSTERN_MAY_SEE_PACKETS | POSTERN_MAY_CHANGE_PACKETS |
				  POSTERN_MAY_OBSERVE | POSTERN_MAY_LOG));
}

static long load(struct postern_load __user *argument)
{
	struct postern_load load;
	struct extension *extension;
	int id = 0, error;
	u8 *file;

	if (copy_from_user(&load, argument, sizeof(load)))
		return -EFAULT;
	if (!makes_sense(&load))
		return -EINVAL;
	file = copied(load.file, load.size);
	if (IS_ERR(file))
		return PTR_ERR(file);
	error = postern_make(&load, file, NULL, &load.verdict, &extension);
	if (error)
		return error;
	if (extension)
		id = reserve();
	if (id < 0) {
		end(extension);
		return id;
	}
	load.id = id;
	if (extension)
		extension->id = id;
	/* Nobody holds the lock here: the caller's memory may be long in coming. */
	error = copy_to_user(argument, &load, sizeof(load)) ? -EFAULT : 0;
	if (extension) {
		settle(id, error ? NULL : extension);
		if (error)
			end(extension);
	}
	return error;
}

/* Shows `next` where `before` was, if that is still there, and lets its hooks call it. */
static int exchange(struct extension *before, struct extension *next)
{
	struct kept *kept = postern_kept(before);
	int error;

	postern_hooks_lock();
	mutex_lock(&lock);
	error = idr_find(&extensions, before->id) == before ? 0 : -ENOENT;
	error = error ?: postern_hooks_may_move(kept, next);
	if (!error) {
		WRITE_ONCE(before->replaced, true);
		idr_replace(&extensions, next, before->id);
		postern_hooks_move(kept, next);
	}
	mutex_unlock(&lock);
	postern_hooks_unlock();
	return error;
}

static int replace_by(struct extension *before, struct extension *next)
{
	int error;

	next->id = before->id;
	error = exchange(before, next);
	if (error) {
		postern_unmake(next);
		return error;
	}
	/* Who has found the one before calls it; nobody finds it any more. */
	synchronize_rcu();
	postern_unmake(before);
	return 0;
}

static long replace(struct postern_load __user *argument)
{
	struct extension *before, *next;
	struct postern_load load;
	int error;
	u8 *file;

	if (copy_from_user(&load, argument, sizeof(load)))
		return -EFAULT;
	if (!makes_sense(&load))
		return -EINVAL;
	before = postern_get(load.id);
	if (!before)
		return -ENOENT;
	file = copied(load.file, load.size);
	error = PTR_ERR_OR_ZERO(file);
	error = error ?: postern_make(&load, file, before, &load.verdict, &next);
	if (!error && next)
		error = replace_by(before, next);
	else if (!error)
		load.id = 0;
	postern_put(before);
	/* It is in place whether or not the caller can be told. */
	return error ?: copy_to_user(argument, &load, sizeof(load)) ? -EFAULT : 0;
}

static long statistics(struct postern_statistics __user *argument)
{
	struct postern_statistics statistics;
	struct extension *extension;
	u32 id;

	if (get_user(id, &argument->id))
		return -EFAULT;
	extension = postern_get(id);
	if (!extension)
		return -ENOENT;
	postern_tell(extension, &statistics);
	postern_put(extension);
	return copy_to_user(argument, &statistics, sizeof(statistics)) ? -EFAULT : 0;
}

static long unload(u32 __user *argument)
{
	struct extension *extension;
	u32 id;

	if (get_user(id, argument))
		return -EFAULT;
	mutex_lock(&lock);
	/* A number that is only reserved stays so. */
	extension = idr_find(&extensions, id);
	if (extension)
		idr_remove(&extensions, id);
	mutex_unlock(&lock);
	if (!extension)
		return -ENOENT;
	end(extension);
	return 0;
}

static long judge_text(struct postern_text __user *argument)
{
	struct postern_text text;
	u8 *code;

	if (copy_from_user(&text, argument, sizeof(text)))
		return -EFAULT;
	code = copied(text.text, text.size);
	if (IS_ERR(code))
		return PTR_ERR(code);
	postern_judge_text(code, text.size, text.imports, &text.verdict);
	kvfree(code);
	return copy_to_user(argument, &text, sizeof(text)) ? -EFAULT : 0;
}

static long postern_ioctl(struct file *file, unsigned int request, unsigned long argument)
{
	void __user *at = (void __user *)argument;

	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	switch (request) {
	case POSTERN_LOAD:
		return load(at);
	case POSTERN_UNLOAD:
		return unload(at);
	case POSTERN_JUDGE_TEXT:
		return judge_text(at);
	case POSTERN_CALL:
		return postern_ioctl_call(at);
	case POSTERN_ATTACH:
		return postern_ioctl_attach(at);
	case POSTERN_DETACH:
		return postern_ioctl_detach(at);
	case POSTERN_ATTACHMENT:
		return postern_ioctl_attachment(at);
	case POSTERN_MAP_MAKE:
		return postern_ioctl_map_make(at);
	case POSTERN_MAP_ACCESS:
		return postern_ioctl_map_access(at);
	case POSTERN_MAP_SIZES:
		return postern_ioctl_map_sizes(at);
	case POSTERN_OPEN:
		return postern_ioctl_open(at);
	case POSTERN_STATISTICS:
		return statistics(at);
	case POSTERN_REPLACE:
		return replace(at);
	default:
		return -ENOTTY;
	}
}

static u64 calls(const struct extension *extension)
{
	u64 sum = 0;
	int processor, kind;

	for_each_possible_cpu(processor)
		for (kind = 0; kind < POSTERN_KINDS; kind++)
			sum += READ_ONCE(per_cpu_ptr(extension->counters, processor)->ended[kind]);
	return sum;
}

static int show(struct seq_file *out, void *unused)
{
	struct extension *extension;
	int id;

	mutex_lock(&lock);
	idr_for_each_entry(&extensions, extension, id)
		seq_printf(out, "%d %s %u %u %u %llu\n", id, extension->name,
			   extension->verdict.instructions, extension->verdict.depth,
			   extension->verdict.longest_path, calls(extension));
	mutex_unlock(&lock);
	return 0;
}

static int postern_open(struct inode *inode, struct file *file)
{
	/* The device's, which nobody here looks at: single_open warns of what it would replace. */
	file->private_data = NULL;
	return single_open(file, show, NULL);
}

static const struct file_operations operations = {
	.owner = THIS_MODULE,
	.open = postern_open,
	.read = seq_read,
	.llseek = seq_lseek,
	.release = single_release,
	.unlocked_ioctl = postern_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};

static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "postern",
	.fops = &operations,
	.mode = 0600,
};

/* For tests: what the page tables say of all that is loaded, as numbers of pages: of the arena that
 * can be written, of the arena that can be executed, of windows that have a right too many,
 * and of windows all that are there. */
static int read_rights(char *to, const struct kernel_param *parameter)
{
	u32 writable = 0, executable = 0, window_executable = 0, window = 0;
	struct extension *extension;
	int id;

	postern_arena_rights(&writable, &executable);
	mutex_lock(&lock);
	idr_for_each_entry(&extensions, extension, id)
		postern_part_rights(extension->segment, &extension->part, &window_executable, &window);
	mutex_unlock(&lock);
	return sysfs_emit(to, "%u %u %u %u\n", writable, executable, window_executable, window);
}

static const struct kernel_param_ops rights = { .get = read_rights };
module_param_cb(rights, &rights, NULL, 0400);
MODULE_PARM_DESC(rights, "pages of the arena that can be written, and executed; of windows with a right too many, and all");

int postern_device_init(void)
{
	return misc_register(&device);
}

void postern_device_exit(void)
{
	struct extension *extension;
	int id;

	/* Nobody has the device open any more. */
	misc_deregister(&device);
	idr_for_each_entry(&extensions, extension, id)
		end(extension);
	idr_destroy(&extensions);
}
