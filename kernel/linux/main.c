// SPDX-License-Identifier: GPL-2.0
/* The module `postern`: images of extensions for the kernel, judged in the kernel.
 *
 * Invariant: nothing that user space says about an image is believed. Its bytes are copied first,
 * the copy is judged, and only an accepted one gets a number. No image runs yet. */
#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/idr.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "postern.h"

/* Images that may be loaded at once. */
#define MOST_IMAGES 256

/* The judge: glue/src/lib.rs. */
void postern_judge_image(const u8 *file, size_t size, struct postern_verdict *verdict);
void postern_judge_text(const u8 *text, size_t size, u32 imports, struct postern_verdict *verdict);

struct image {
	u8 *file;
	size_t size;
	struct postern_verdict verdict;
};

/* Guards `images`, in which a number that is only reserved has NULL. */
static DEFINE_MUTEX(lock);
static DEFINE_IDR(images);

/* For tests: how many more allocations succeed before one fails; below 0, all do. */
static int fail_after = -1;
module_param(fail_after, int, 0600);
MODULE_PARM_DESC(fail_after, "allocations until one fails, for tests (-1: none does)");

static bool fails_now(void)
{
	int left = READ_ONCE(fail_after);

	if (left < 0)
		return false;
	WRITE_ONCE(fail_after, left - 1);
	return left == 0;
}

static void *allocate(size_t size)
{
	return fails_now() ? NULL : kvmalloc(size, GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
}

/* What the judge calls. */
void *postern_judge_alloc(size_t size);
void postern_judge_free(void *memory);
void __noreturn postern_judge_panicked(void);

void *postern_judge_alloc(size_t size)
{
	return allocate(size);
}

void postern_judge_free(void *memory)
{
	kvfree(memory);
}

/* No input leads here, as far as the tests of the judge know. The task ends, and with it what it
 * holds of this module, which then cannot be unloaded: better than going on. */
void __noreturn postern_judge_panicked(void)
{
	BUG();
}

/* A copy of `size` bytes of the caller's, which nobody can change while they are judged. */
static u8 *copied(u64 from, u64 size)
{
	u8 *copy;

	if (size == 0 || size > POSTERN_MOST)
		return ERR_PTR(-EFBIG);
	copy = allocate(size);
	if (!copy)
		return ERR_PTR(-ENOMEM);
	if (copy_from_user(copy, u64_to_user_ptr(from), size)) {
		kvfree(copy);
		return ERR_PTR(-EFAULT);
	}
	return copy;
}

static void drop(struct image *image)
{
	kvfree(image->file);
	kfree(image);
}

/* Judges a file; if it is accepted `*kept` is the image, else NULL. */
static int judge(const struct postern_load *load, struct postern_verdict *verdict, struct image **kept)
{
	struct image *image;
	u8 *file = copied(load->file, load->size);

	*kept = NULL;
	if (IS_ERR(file))
		return PTR_ERR(file);
	postern_judge_image(file, load->size, verdict);
	if (verdict->verdict != POSTERN_ACCEPTED) {
		kvfree(file);
		return 0;
	}
	image = fails_now() ? NULL : kzalloc(sizeof(*image), GFP_KERNEL_ACCOUNT);
	if (!image) {
		kvfree(file);
		return -ENOMEM;
	}
	*image = (struct image){ .file = file, .size = load->size, .verdict = *verdict };
	*kept = image;
	return 0;
}

/* Gives an image a number, but does not show it under that yet. */
static int reserve(void)
{
	int id;

	mutex_lock(&lock);
	id = idr_alloc(&images, NULL, 1, MOST_IMAGES + 1, GFP_KERNEL);
	mutex_unlock(&lock);
	return id;
}

/* Shows an image under its number; NULL gives the number back. */
static void settle(int id, struct image *image)
{
	mutex_lock(&lock);
	if (image)
		idr_replace(&images, image, id);
	else
		idr_remove(&images, id);
	mutex_unlock(&lock);
}

static long load(struct postern_load __user *argument)
{
	struct postern_load load;
	struct image *image;
	int id = 0, error;

	if (copy_from_user(&load, argument, sizeof(load)))
		return -EFAULT;
	if (load.reserved != 0)
		return -EINVAL;
	error = judge(&load, &load.verdict, &image);
	if (error)
		return error;
	if (image)
		id = reserve();
	if (id < 0) {
		drop(image);
		return id;
	}
	load.id = id;
	/* Nobody holds the lock here: the caller's memory may be long in coming. */
	error = copy_to_user(argument, &load, sizeof(load)) ? -EFAULT : 0;
	if (image) {
		settle(id, error ? NULL : image);
		if (error)
			drop(image);
	}
	return error;
}

static long unload(u32 __user *argument)
{
	struct image *image;
	u32 id;

	if (get_user(id, argument))
		return -EFAULT;
	mutex_lock(&lock);
	/* A number that is only reserved stays so. */
	image = idr_find(&images, id);
	if (image)
		idr_remove(&images, id);
	mutex_unlock(&lock);
	if (!image)
		return -ENOENT;
	drop(image);
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
	default:
		return -ENOTTY;
	}
}

static int show(struct seq_file *out, void *unused)
{
	struct image *image;
	int id;

	mutex_lock(&lock);
	idr_for_each_entry(&images, image, id)
		seq_printf(out, "%d %zu %u %u %u\n", id, image->size, image->verdict.instructions,
			   image->verdict.depth, image->verdict.longest_path);
	mutex_unlock(&lock);
	return 0;
}

static int postern_open(struct inode *inode, struct file *file)
{
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

static int __init postern_init(void)
{
	return misc_register(&device);
}

static void __exit postern_exit(void)
{
	struct image *image;
	int id;

	/* Nobody has the device open any more. */
	misc_deregister(&device);
	idr_for_each_entry(&images, image, id)
		drop(image);
	idr_destroy(&images);
}

module_init(postern_init);
module_exit(postern_exit);
MODULE_DESCRIPTION("Extensions of the kernel, judged before they run");
MODULE_LICENSE("GPL");
