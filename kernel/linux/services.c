// SPDX-License-Identifier: GPL-2.0
/* The functions that extensions may import. */
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/ktime.h>

#include "module.h"

static u64 service_time(struct invocation *invocation, u64 a, u64 b, u64 c, u64 d, u64 e)
{
	return ktime_get_mono_fast_ns();
}

/* Adds up the bytes of a range of the window. */
static u64 service_sum(struct invocation *invocation, u64 at, u64 size, u64 c, u64 d, u64 e)
{
	const u8 *bytes = size <= 4096 ? postern_at(invocation, at, size, false) : NULL;
	u64 sum = 0;

	if (!bytes)
		return postern_bad_argument(invocation);
	while (size)
		sum += bytes[--size];
	return sum;
}

static const struct service services[] = {
	{ "postern_time", 0, service_time },
	{ "postern_sum", 0, service_sum },
};

const struct service *postern_service(const u8 *name, u32 length)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(services); i++)
		if (strlen(services[i].name) == length && !memcmp(services[i].name, name, length))
			return &services[i];
	return NULL;
}
