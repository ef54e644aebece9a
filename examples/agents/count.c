/* count.c: an agent that counts system calls, and prints a table when the last process has ended.
 *
 *     postern cc -O2 count.c -o count.px
 *     postern interpose count.px -- make
 *     postern interpose -o folded count.px --folded -- make
 *
 * With --folded it prints lines `program;call count`, of which tools for flame graphs make a picture.
 *
 * Nothing here prints by printf: with it come instructions for floating-point numbers, and whoever
 * has those in its text has the program's kept at each call. */
#include "names.h"
#include <postern/agent.h>
#include <string.h>

enum { PRCTL = 157, PROGRAMS = 256 };

static unsigned long counts[CALLS + 1];

/* The same by program. A name is complete when its row is not 0 any more; the last has all others. */
static struct {
	unsigned row;
	char name[16];
	unsigned long counts[CALLS + 1];
} programs[PROGRAMS];
static int folded;

void pt_agent_begin(void)
{
	char word[16];
	folded = pt_argument(0, word, sizeof word) > 0 && strcmp(word, "--folded") == 0;
}

/* The row of the program that calls. */
static unsigned row_of_program(void)
{
	enum { GET_NAME = 16 };
	char name[16] = {0};
	struct pt_call call = {.number = PRCTL, .arguments = {GET_NAME, pt_address(name)}};
	pt_syscall(&call);
	for (unsigned at = 0; at < PROGRAMS; at++) {
		unsigned none = 0;
		if (__atomic_load_n(&programs[at].row, __ATOMIC_ACQUIRE) == 1 && strcmp(programs[at].name, name) == 0)
			return at;
		/* Two threads may both begin one: they are added up in the end. */
		if (at < PROGRAMS - 1 && __atomic_compare_exchange_n(&programs[at].row, &none, 2, 0, __ATOMIC_SEQ_CST,
		                                                     __ATOMIC_SEQ_CST)) {
			memcpy(programs[at].name, name, sizeof name);
			__atomic_store_n(&programs[at].row, 1, __ATOMIC_RELEASE);
			return at;
		}
	}
	return PROGRAMS - 1;
}

int pt_agent(struct pt_call *call)
{
	unsigned long at = call->number < CALLS ? call->number : CALLS;
	unsigned long *all = folded ? programs[row_of_program()].counts : counts;
	__atomic_fetch_add(&all[at], 1, __ATOMIC_RELAXED);
	return PT_PASS;
}

/* Puts the digits of a number behind a line, in so many columns at least. */
static char *put_number(char *to, unsigned long number, unsigned columns)
{
	char digits[20];
	unsigned count = 0;
	do
		digits[count++] = '0' + number % 10;
	while (number /= 10);
	for (unsigned blanks = count; blanks < columns; blanks++)
		*to++ = ' ';
	while (count)
		*to++ = digits[--count];
	return to;
}

static char *put_text(char *to, const char *text)
{
	while (*text)
		*to++ = *text++;
	return to;
}

static void row(unsigned long count, const char *name)
{
	char line[80], *end = put_text(put_number(line, count, 10), "  ");
	end = put_text(put_text(end, name), "\n");
	pt_print(line, end - line);
}

/* A line for each call of each program. */
static void print_folded(void)
{
	for (unsigned at = 0; at < PROGRAMS; at++)
		for (unsigned long call = 0; call <= CALLS; call++) {
			char line[80];
			const char *name = call_name(call), *program = at < PROGRAMS - 1 ? programs[at].name : "others";
			unsigned long count = programs[at].counts[call];
			for (unsigned same = at + 1; same < PROGRAMS - 1; same++)
				if (programs[same].counts[call] && strcmp(programs[same].name, programs[at].name) == 0) {
					count += programs[same].counts[call];
					programs[same].counts[call] = 0;
				}
			if (count == 0)
				continue;
			char *end = put_text(put_text(line, program), ";");
			end = put_text(put_text(end, name ? name : "others"), " ");
			end = put_text(put_number(end, count, 0), "\n");
			pt_print(line, end - line);
		}
}

void pt_agent_end(void)
{
	unsigned long total = 0;
	if (folded) {
		print_folded();
		return;
	}
	for (;;) {
		unsigned long most = 0;
		for (unsigned long at = 0; at <= CALLS; at++)
			if (counts[at] > counts[most])
				most = at;
		if (counts[most] == 0)
			break;
		const char *name = call_name(most);
		row(counts[most], name ? name : "others");
		total += counts[most];
		counts[most] = 0;
	}
	row(total, "in all");
}
