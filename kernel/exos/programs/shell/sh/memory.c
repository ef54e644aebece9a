/* Lists of strings, and what lives as long as a command. */
#include "sh.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct block {
	struct block *next;
	char bytes[];
};

/* Memory; without it, there is nothing that the shell could do. */
void *get(size_t size)
{
	void *memory = malloc(size);
	if (!memory) {
		complain("memory", "there is none left");
		_exit(2);
	}
	return memory;
}

char *copied(const char *text, size_t length)
{
	char *copy = get(length + 1);
	memcpy(copy, text, length);
	copy[length] = '\0';
	return copy;
}

/* Adds a string, which the list owns from now on. Behind the last one is a NULL. */
void list_add(struct list *list, char *item)
{
	if (list->count + 1 >= list->room) {
		int room = list->room ? 2 * list->room : 8;
		char **more = get(room * sizeof *more);
		if (list->count)
			memcpy(more, list->item, list->count * sizeof *more);
		free(list->item);
		list->item = more;
		list->room = room;
	}
	list->item[list->count++] = item;
	list->item[list->count] = NULL;
}

void list_clear(struct list *list)
{
	for (int at = 0; at < list->count; at++)
		free(list->item[at]);
	free(list->item);
	*list = (struct list){0};
}

void *keep(struct arena *arena, size_t size)
{
	struct block *block = get(sizeof *block + size);
	block->next = arena->blocks;
	arena->blocks = block;
	return memset(block->bytes, 0, size);
}

char *keep_text(struct arena *arena, const char *text, size_t length)
{
	char *copy = keep(arena, length + 1);
	return memcpy(copy, text, length);
}

void arena_clear(struct arena *arena)
{
	while (arena->blocks) {
		struct block *block = arena->blocks;
		arena->blocks = block->next;
		free(block);
	}
}
