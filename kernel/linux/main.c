// SPDX-License-Identifier: GPL-2.0
/* The module `postern`: extensions of the kernel, judged in the kernel.
 *
 * Here are its beginning and its end, and all memory that it asks for, so that tests can have any of
 * it refused. */
#include <linux/cpufeature.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "arena.h"
#include "device.h"
#include "faults.h"
#include "module.h"
#include "window.h"

/* For tests: how many more allocations succeed before one fails; below 0, all do. */
static int fail_after = -1;
module_param(fail_after, int, 0600);
MODULE_PARM_DESC(fail_after, "allocations until one fails, for tests (-1: none does)");

bool postern_fails_now(void)
{
	int left = READ_ONCE(fail_after);

	if (left < 0)
		return false;
	WRITE_ONCE(fail_after, left - 1);
	return left == 0;
}

/* What is asked for is refused rather than taken from others. */
#define FLAGS (GFP_KERNEL_ACCOUNT | __GFP_NOWARN | __GFP_NORETRY | __GFP_ZERO)

void *postern_allocate(size_t size)
{
	return postern_fails_now() ? NULL : kvmalloc(size, FLAGS);
}

struct page *postern_allocate_page(void)
{
	return postern_fails_now() ? NULL : alloc_page(FLAGS);
}

/* What the judge calls. */
void *postern_judge_alloc(size_t size);
void postern_judge_free(void *memory);
void __noreturn postern_judge_panicked(void);

void *postern_judge_alloc(size_t size)
{
	return postern_allocate(size);
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

static int __init postern_init(void)
{
	int error;

	if (!boot_cpu_has(X86_FEATURE_FSGSBASE)) {
		pr_err("postern: this processor, or this kernel, has no rdfsbase\n");
		return -EOPNOTSUPP;
	}
	/* There interrupts are off by another flag than the one that gate.S looks at. */
	if (boot_cpu_has(X86_FEATURE_XENPV)) {
		pr_err("postern: this is a paravirtual guest of Xen's\n");
		return -EOPNOTSUPP;
	}
	error = postern_windows_init();
	error = error ?: postern_arena_init();
	error = error ?: postern_faults_init();
	if (error)
		return error;
	error = postern_hooks_init();
	if (error)
		goto no_hooks;
	error = postern_device_init();
	if (!error)
		return 0;
	postern_hooks_exit();
no_hooks:
	postern_faults_exit();
	return error;
}

static void __exit postern_exit(void)
{
	postern_device_exit();
	postern_hooks_exit();
	postern_faults_exit();
}

module_init(postern_init);
module_exit(postern_exit);
MODULE_DESCRIPTION("Extensions of the kernel, judged before they run");
MODULE_LICENSE("GPL");
