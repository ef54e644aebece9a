/* Names and values. */
#include "sh.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct variable {
	struct variable *next;
	char *name, *value;
	int exported, readonly;
};

static struct variable *all;

static struct variable *find(const char *name, int makes)
{
	struct variable **at = &all;
	/* In order, as `set` prints them. */
	while (*at && strcmp((*at)->name, name) < 0)
		at = &(*at)->next;
	if (*at && !strcmp((*at)->name, name))
		return *at;
	if (!makes)
		return NULL;
	struct variable *variable = get(sizeof *variable);
	*variable = (struct variable){.next = *at, .name = copied(name, strlen(name))};
	return *at = variable;
}

const char *variable(const char *name)
{
	struct variable *variable = find(name, 0);
	return variable ? variable->value : NULL;
}

void set_variable(const char *name, const char *value)
{
	struct variable *variable = find(name, 1);
	char *former = variable->value;
	if (variable->readonly) {
		shell.failed = complain(name, "it cannot be changed");
		return;
	}
	variable->exported |= shell.exports;
	variable->value = copied(value, strlen(value));
	free(former);
}

void unset_variable(const char *name)
{
	struct variable **at = &all;
	while (*at && strcmp((*at)->name, name))
		at = &(*at)->next;
	if (!*at)
		return;
	struct variable *gone = *at;
	if (gone->readonly) {
		shell.failed = complain(name, "it cannot be changed");
		return;
	}
	*at = gone->next;
	free(gone->name);
	free(gone->value);
	free(gone);
}

void make_readonly(const char *name)
{
	find(name, 1)->readonly = 1;
}

void export_variable(const char *name)
{
	find(name, 1)->exported = 1;
}

/* Those that are exported, as `execve` has them. They live until the next call. */
char **environment(void)
{
	static struct list list;
	list_clear(&list);
	for (struct variable *each = all; each; each = each->next) {
		if (!each->exported || !each->value)
			continue;
		size_t name = strlen(each->name);
		char *text = get(name + strlen(each->value) + 2);
		sprintf(text, "%s=%s", each->name, each->value);
		list_add(&list, text);
	}
	if (!list.count) {
		static char *none[1];
		return none;
	}
	return list.item;
}

void print_quoted(const char *text)
{
	putchar('\'');
	for (; *text; text++)
		fputs(*text == '\'' ? "'\"'\"'" : (char[]){*text, 0}, stdout);
	putchar('\'');
}

/* In quotes, to be read again. */
void print_variables(int exported)
{
	for (struct variable *each = all; each; each = each->next) {
		if (exported && !each->exported)
			continue;
		printf(exported ? "export %s" : "%s", each->name);
		if (each->value) {
			putchar('=');
			print_quoted(each->value);
		}
		putchar('\n');
	}
}

void import_variables(char **from)
{
	for (; from && *from; from++) {
		size_t value = is_assignment(*from);
		if (!value)
			continue;
		char *name = copied(*from, value - 1);
		set_variable(name, *from + value);
		export_variable(name);
		free(name);
	}
}
