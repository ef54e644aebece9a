// SPDX-License-Identifier: GPL-2.0
/* Descriptors of extensions: the ring is read from them, the shared area mapped.
 *
 * A descriptor has what is kept for the extension, not the extension, and a mapping has its pages. Both
 * may outlive an unload: the reader sees the end then, and the pages are the process's alone. */
#include <linux/anon_inodes.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/uaccess.h>
#include <linux/version.h>

#include "kept.h"

static ssize_t opened_read(struct file *file, char __user *to, size_t size, loff_t *at)
{
	struct kept *kept = file->private_data;

	return postern_ring_read(kept->ring, to, size, !(file->f_flags & O_NONBLOCK));
}

static __poll_t opened_poll(struct file *file, poll_table *table)
{
	struct kept *kept = file->private_data;

	return postern_ring_poll(kept->ring, file, table);
}

/* The extension that it is now; NULL if it was unloaded. */
static struct extension *extension_of(struct kept *kept)
{
	struct extension *extension;

	rcu_read_lock();
	extension = rcu_dereference(kept->extension);
	if (extension)
		extension = postern_get(postern_id(extension));
	rcu_read_unlock();
	/* The number may be another's by now. */
	if (extension && postern_kept(extension) != kept) {
		postern_put(extension);
		extension = NULL;
	}
	return extension;
}

static int map_pages(struct vm_area_struct *vma, struct page **pages, u32 count)
{
	unsigned long at, many = vma_pages(vma);
	int error = 0;

	if (!pages || vma->vm_pgoff >= count || many > count - vma->vm_pgoff)
		return -ENXIO;
	for (at = 0; at < many && !error; at++)
		error = vm_insert_page(vma, vma->vm_start + at * PAGE_SIZE, pages[vma->vm_pgoff + at]);
	return error;
}

/* Only shared: a private mapping would not be the extension's memory. Never to be run. */
static int opened_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct extension *extension;
	struct page **pages;
	u32 count;
	int error;

	if (!(vma->vm_flags & VM_SHARED) || vma->vm_flags & VM_EXEC)
		return -EINVAL;
	extension = extension_of(file->private_data);
	if (!extension)
		return -ENOENT;
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
	vm_flags_mod(vma, VM_DONTEXPAND | VM_DONTDUMP, VM_MAYEXEC);
#else
	vma->vm_flags = (vma->vm_flags | VM_DONTEXPAND | VM_DONTDUMP) & ~VM_MAYEXEC;
#endif
	pages = postern_shared_pages(extension, &count);
	error = map_pages(vma, pages, count);
	postern_put(extension);
	return error;
}

static int opened_release(struct inode *inode, struct file *file)
{
	postern_kept_put(file->private_data);
	return 0;
}

static const struct file_operations operations = {
	.owner = THIS_MODULE,
	.read = opened_read,
	.poll = opened_poll,
	.mmap = opened_mmap,
	.release = opened_release,
	.llseek = noop_llseek,
};

long postern_ioctl_open(u32 __user *argument)
{
	struct extension *extension;
	struct kept *kept;
	int descriptor;
	u32 id;

	if (get_user(id, argument))
		return -EFAULT;
	extension = postern_get(id);
	if (!extension)
		return -ENOENT;
	kept = postern_kept(extension);
	postern_kept_get(kept);
	postern_put(extension);
	descriptor = postern_fails_now() ? -ENOMEM :
					   anon_inode_getfd("[postern]", &operations, kept, O_RDWR | O_CLOEXEC);
	if (descriptor < 0)
		postern_kept_put(kept);
	return descriptor;
}
