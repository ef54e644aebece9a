// SPDX-License-Identifier: GPL-2.0
/* Hash maps that extensions and processes share: keys and values of fixed sizes, copied in and out.
 *
 * All entries are there from the making of a map on, so nothing is allocated at the level of a call.
 * Each bucket has a lock, and so have the free entries, which is taken inside; kept.h tells why no
 * call waits for itself. Maps are made once and stay until the extension's end, so whoever has an
 * extension may use them without counting. */
#include <linux/jhash.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/nospec.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/uaccess.h>

#include "kept.h"

#define MOST_KEY 64
#define MOST_VALUE 4096
#define MOST_ENTRIES (1 << 20)
/* Bytes of a map. */
#define MOST_BYTES (1ull << 30)
/* Ends a list of entries, which are numbers. */
#define NONE (~0u)

struct entry {
	u32 next;
	u8 bytes[]; /* key, value */
};

struct bucket {
	raw_spinlock_t lock;
	u32 first;
};

struct map {
	u32 key_size, value_size, entries;
	u32 stride; /* bytes from one entry to the next */
	u32 seed, mask; /* of buckets */
	struct bucket *buckets;
	u8 *memory; /* the entries */
	raw_spinlock_t free_lock; /* inside a bucket's */
	u32 free;
};

struct maps {
	struct mutex making;
	struct map *map[POSTERN_MAPS];
};

static struct entry *entry_of(const struct map *map, u32 number)
{
	return (struct entry *)(map->memory + (size_t)number * map->stride);
}

static struct bucket *bucket_of(const struct map *map, const void *key)
{
	return &map->buckets[jhash(key, map->key_size, map->seed) & map->mask];
}

/* Where the number of the key's entry stands, or NONE at the end. The bucket's lock is held. */
static u32 *place(const struct map *map, struct bucket *bucket, const void *key)
{
	u32 *at = &bucket->first;

	while (*at != NONE && memcmp(entry_of(map, *at)->bytes, key, map->key_size) != 0)
		at = &entry_of(map, *at)->next;
	return at;
}

static u32 take_free(struct map *map)
{
	u32 number;

	raw_spin_lock(&map->free_lock);
	number = map->free;
	if (number != NONE)
		map->free = entry_of(map, number)->next;
	raw_spin_unlock(&map->free_lock);
	return number;
}

static void give_free(struct map *map, u32 number)
{
	raw_spin_lock(&map->free_lock);
	entry_of(map, number)->next = map->free;
	map->free = number;
	raw_spin_unlock(&map->free_lock);
}

int postern_map_find(struct map *map, const void *key, void *value)
{
	struct bucket *bucket = bucket_of(map, key);
	unsigned long flags;
	u32 number;

	if (!postern_exclude(&flags))
		return -EBUSY;
	raw_spin_lock(&bucket->lock);
	number = *place(map, bucket, key);
	if (number != NONE)
		memcpy(value, entry_of(map, number)->bytes + map->key_size, map->value_size);
	raw_spin_unlock(&bucket->lock);
	postern_include(flags);
	return number != NONE;
}

int postern_map_set(struct map *map, const void *key, const void *value)
{
	struct bucket *bucket = bucket_of(map, key);
	unsigned long flags;
	u32 *at, number;

	if (!postern_exclude(&flags))
		return -EBUSY;
	raw_spin_lock(&bucket->lock);
	at = place(map, bucket, key);
	number = *at;
	if (number == NONE) {
		number = take_free(map);
		if (number != NONE) {
			entry_of(map, number)->next = NONE;
			memcpy(entry_of(map, number)->bytes, key, map->key_size);
			*at = number;
		}
	}
	if (number != NONE)
		memcpy(entry_of(map, number)->bytes + map->key_size, value, map->value_size);
	raw_spin_unlock(&bucket->lock);
	postern_include(flags);
	return number != NONE;
}

int postern_map_remove(struct map *map, const void *key)
{
	struct bucket *bucket = bucket_of(map, key);
	unsigned long flags;
	u32 *at, number;

	if (!postern_exclude(&flags))
		return -EBUSY;
	raw_spin_lock(&bucket->lock);
	at = place(map, bucket, key);
	number = *at;
	if (number != NONE) {
		*at = entry_of(map, number)->next;
		give_free(map, number);
	}
	raw_spin_unlock(&bucket->lock);
	postern_include(flags);
	return number != NONE;
}

/* The first entry of the bucket or behind it. */
static int first_from(struct map *map, u32 at, void *key, void *value)
{
	for (; at <= map->mask; at++) {
		struct bucket *bucket = &map->buckets[at];
		unsigned long flags;
		u32 number;

		if (READ_ONCE(bucket->first) == NONE)
			continue;
		if (!postern_exclude(&flags))
			return -EBUSY;
		raw_spin_lock(&bucket->lock);
		number = bucket->first;
		if (number != NONE) {
			memcpy(key, entry_of(map, number)->bytes, map->key_size);
			memcpy(value, entry_of(map, number)->bytes + map->key_size, map->value_size);
		}
		raw_spin_unlock(&bucket->lock);
		postern_include(flags);
		if (number != NONE)
			return 1;
	}
	return 0;
}

/* The entry behind `after` in the order of buckets, and in each of its list. Behind a key that is
 * there no more comes the first of its bucket, so whoever removes what it is given sees all. */
static int next_entry(struct map *map, const void *after, void *key, void *value)
{
	struct bucket *bucket = bucket_of(map, after);
	unsigned long flags;
	u32 number;

	if (!postern_exclude(&flags))
		return -EBUSY;
	raw_spin_lock(&bucket->lock);
	number = *place(map, bucket, after);
	number = number == NONE ? bucket->first : entry_of(map, number)->next;
	if (number != NONE) {
		memcpy(key, entry_of(map, number)->bytes, map->key_size);
		memcpy(value, entry_of(map, number)->bytes + map->key_size, map->value_size);
	}
	raw_spin_unlock(&bucket->lock);
	postern_include(flags);
	return number != NONE ? 1 : first_from(map, bucket - map->buckets + 1, key, value);
}

struct map *postern_map(struct kept *kept, u64 number)
{
	if (number >= POSTERN_MAPS)
		return NULL;
	/* Nor does a guess of the processor's look behind them. */
	return smp_load_acquire(&kept->maps->map[array_index_nospec(number, POSTERN_MAPS)]);
}

u32 postern_map_key_size(const struct map *map)
{
	return map->key_size;
}

u32 postern_map_value_size(const struct map *map)
{
	return map->value_size;
}

static void free_map(struct map *map)
{
	if (!map)
		return;
	kvfree(map->buckets);
	kvfree(map->memory);
	kvfree(map);
}

static struct map *make_map(const struct postern_map *wanted)
{
	struct map *map = postern_allocate(sizeof(*map));
	u32 number, buckets = roundup_pow_of_two(wanted->entries);

	if (!map)
		return NULL;
	map->key_size = wanted->key_size;
	map->value_size = wanted->value_size;
	map->entries = wanted->entries;
	map->stride = ALIGN(sizeof(struct entry) + wanted->key_size + wanted->value_size, 8);
	map->seed = get_random_u32();
	map->mask = buckets - 1;
	map->buckets = postern_allocate((size_t)buckets * sizeof(*map->buckets));
	map->memory = postern_allocate((size_t)wanted->entries * map->stride);
	if (!map->buckets || !map->memory) {
		free_map(map);
		return NULL;
	}
	for (number = 0; number < buckets; number++) {
		raw_spin_lock_init(&map->buckets[number].lock);
		map->buckets[number].first = NONE;
	}
	raw_spin_lock_init(&map->free_lock);
	map->free = NONE;
	for (number = wanted->entries; number-- > 0;)
		give_free(map, number);
	return map;
}

int postern_maps_begin(struct kept *kept)
{
	kept->maps = postern_allocate(sizeof(*kept->maps));
	if (!kept->maps)
		return -ENOMEM;
	mutex_init(&kept->maps->making);
	return 0;
}

void postern_maps_end(struct kept *kept)
{
	u32 number;

	if (!kept->maps)
		return;
	for (number = 0; number < POSTERN_MAPS; number++)
		free_map(kept->maps->map[number]);
	kvfree(kept->maps);
	kept->maps = NULL;
}

static bool are_sizes(const struct postern_map *wanted)
{
	return wanted->map < POSTERN_MAPS && wanted->reserved == 0 && wanted->key_size > 0 &&
	       wanted->key_size <= MOST_KEY && wanted->value_size > 0 &&
	       wanted->value_size <= MOST_VALUE && wanted->entries > 0 &&
	       wanted->entries <= MOST_ENTRIES;
}

long postern_ioctl_map_make(struct postern_map __user *argument)
{
	struct postern_map wanted;
	struct extension *extension;
	struct maps *maps;
	struct map *map;
	long error = 0;

	if (copy_from_user(&wanted, argument, sizeof(wanted)))
		return -EFAULT;
	if (!are_sizes(&wanted))
		return -EINVAL;
	if ((u64)wanted.entries * (wanted.key_size + wanted.value_size) > MOST_BYTES)
		return -E2BIG;
	extension = postern_get(wanted.id);
	if (!extension)
		return -ENOENT;
	maps = postern_kept(extension)->maps;
	mutex_lock(&maps->making);
	if (maps->map[wanted.map]) {
		error = -EEXIST;
	} else {
		map = make_map(&wanted);
		if (map)
			smp_store_release(&maps->map[wanted.map], map);
		else
			error = -ENOMEM;
	}
	mutex_unlock(&maps->making);
	postern_put(extension);
	return error;
}

/* Does what is asked; `key` and `value` are the caller's, copied. */
static int access(struct map *map, u32 operation, bool has_key, u8 *key, u8 *value)
{
	u8 next[MOST_KEY];
	int done;

	switch (operation) {
	case POSTERN_MAP_GET:
		return postern_map_find(map, key, value);
	case POSTERN_MAP_SET:
		done = postern_map_set(map, key, value);
		return done == 0 ? -ENOSPC : done;
	case POSTERN_MAP_REMOVE:
		return postern_map_remove(map, key);
	default:
		done = has_key ? next_entry(map, key, next, value) : first_from(map, 0, next, value);
		if (done == 1)
			memcpy(key, next, map->key_size);
		return done;
	}
}

static long access_copied(struct map *map, const struct postern_map_access *asked, u8 *value)
{
	bool next = asked->operation == POSTERN_MAP_NEXT, has_key = !next || asked->key != 0;
	void __user *value_at = u64_to_user_ptr(asked->value);
	u8 key[MOST_KEY];
	int done;

	if (has_key && copy_from_user(key, u64_to_user_ptr(asked->key), map->key_size))
		return -EFAULT;
	if (asked->operation == POSTERN_MAP_SET && copy_from_user(value, value_at, map->value_size))
		return -EFAULT;
	done = access(map, asked->operation, has_key, key, value);
	if (done < 0)
		return done;
	if (done == 0)
		return -ESRCH;
	if (next && copy_to_user(u64_to_user_ptr(asked->next_key), key, map->key_size))
		return -EFAULT;
	if ((next || asked->operation == POSTERN_MAP_GET) &&
	    copy_to_user(value_at, value, map->value_size))
		return -EFAULT;
	return 0;
}

long postern_ioctl_map_access(struct postern_map_access __user *argument)
{
	struct postern_map_access asked;
	struct extension *extension;
	struct map *map;
	long error = -ENXIO;
	u8 *value;

	if (copy_from_user(&asked, argument, sizeof(asked)))
		return -EFAULT;
	if (asked.reserved != 0 || asked.operation > POSTERN_MAP_NEXT)
		return -EINVAL;
	extension = postern_get(asked.id);
	if (!extension)
		return -ENOENT;
	map = postern_map(postern_kept(extension), asked.map);
	if (map) {
		value = postern_allocate(map->value_size);
		error = value ? access_copied(map, &asked, value) : -ENOMEM;
		kvfree(value);
	}
	postern_put(extension);
	return error;
}

long postern_ioctl_map_sizes(struct postern_map __user *argument)
{
	struct extension *extension;
	struct postern_map told;
	struct map *map;

	if (copy_from_user(&told, argument, sizeof(told)))
		return -EFAULT;
	if (told.reserved != 0)
		return -EINVAL;
	extension = postern_get(told.id);
	if (!extension)
		return -ENOENT;
	map = postern_map(postern_kept(extension), told.map);
	if (map) {
		told.key_size = map->key_size;
		told.value_size = map->value_size;
		told.entries = map->entries;
	}
	postern_put(extension);
	if (!map)
		return -ENXIO;
	return copy_to_user(argument, &told, sizeof(told)) ? -EFAULT : 0;
}
