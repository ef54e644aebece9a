// SPDX-License-Identifier: GPL-2.0
/* Lines that extensions write to the kernel's log: few a second of each, with its name in front, and
 * whatever is not a printable character of ASCII escaped, so that none looks like another's.
 *
 * Calls may be where the scheduler or the console hold their locks, so a line is put aside and
 * printed from an interrupt. */
#include <linux/irq_work.h>
#include <linux/jiffies.h>
#include <linux/printk.h>
#include <linux/spinlock.h>
#include <linux/string_helpers.h>

#include "kept.h"

/* Lines of an extension in a second, and of all that wait to be printed. */
#define MOST_A_SECOND 10
#define MOST_WAITING 16

struct line {
	char text[320];
};

/* Guards the lines, and the rates of all extensions. */
static DEFINE_RAW_SPINLOCK(lock);
static struct line waiting[MOST_WAITING];
static u32 first, count;

static bool next_line(struct line *line)
{
	unsigned long flags;
	bool found = false;

	if (!postern_exclude(&flags))
		return false;
	raw_spin_lock(&lock);
	if (count > 0) {
		*line = waiting[first];
		first = (first + 1) % MOST_WAITING;
		count--;
		found = true;
	}
	raw_spin_unlock(&lock);
	postern_include(flags);
	return found;
}

static void print_waiting(struct irq_work *work)
{
	struct line line;

	while (next_line(&line))
		pr_info("postern: %s\n", line.text);
}

static struct irq_work printing = { .func = print_waiting };

/* A line that will be printed; NULL if there is no room. The lock is held. */
static struct line *put_aside(void)
{
	struct line *line = &waiting[(first + count) % MOST_WAITING];

	if (count == MOST_WAITING)
		return NULL;
	count++;
	irq_work_queue(&printing);
	return line;
}

bool postern_print(const char *format, ...)
{
	unsigned long flags;
	struct line *line;
	va_list arguments;

	if (!postern_exclude(&flags))
		return false;
	raw_spin_lock(&lock);
	line = put_aside();
	if (line) {
		va_start(arguments, format);
		vsnprintf(line->text, sizeof(line->text), format, arguments);
		va_end(arguments);
	}
	raw_spin_unlock(&lock);
	postern_include(flags);
	return line != NULL;
}

static bool within_rate(struct kept *kept)
{
	if (time_after(jiffies, kept->log_since + HZ) || kept->log_since == 0) {
		kept->log_since = jiffies;
		kept->log_lines = 0;
	}
	return kept->log_lines++ < MOST_A_SECOND;
}

/* Escaped, as much as there is room for. */
static void write_line(struct line *line, const struct extension *extension, const char *text, u32 size)
{
	const unsigned int flags = ESCAPE_SPACE | ESCAPE_SPECIAL | ESCAPE_NULL | ESCAPE_HEX | ESCAPE_NAP;
	u32 begin = scnprintf(line->text, sizeof(line->text), "%s: ", postern_name(extension));
	u32 room = sizeof(line->text) - 1 - begin;
	u32 length = string_escape_mem(text, min_t(u32, size, POSTERN_LINE), line->text + begin, room,
				       flags, NULL);

	line->text[begin + min(length, room)] = 0;
}

bool postern_log_line(struct extension *extension, const char *text, u32 size)
{
	unsigned long flags;
	struct line *line;

	if (!postern_exclude(&flags))
		return false;
	raw_spin_lock(&lock);
	line = within_rate(postern_kept(extension)) ? put_aside() : NULL;
	if (line)
		write_line(line, extension, text, size);
	raw_spin_unlock(&lock);
	postern_include(flags);
	return line != NULL;
}

void postern_log_exit(void)
{
	irq_work_sync(&printing);
}
