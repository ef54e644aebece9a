/* trace.c: an agent that prints each call with its arguments and its result, as strace does.
 *
 *     postern cc -O2 trace.c -o trace.px
 *     postern interpose -o calls trace.px -f -e trace=%file -- make
 *
 *   -f         children, too, each line with the thread's number
 *   -e SET     these calls: names and %file, %network, %process, %desc, %signal, %memory; after
 *              `trace=`, or as it is; with `!` all others
 *   -s N       so many bytes of strings (32)
 *   -c         no lines, but a table at the end
 *   -T         the time that each took, in front of the line's end
 *   -ttt       when each began, in front
 *
 * What is no call is not seen: signals that come, and processes that one ends. Unlike strace it prints
 * a call that waits when it has come back. */
#include "print.h"
#include "sets.h"
#include <stdlib.h>

enum { EXECVE = 59, EXIT = 60, EXIT_GROUP = 231, EXECVEAT = 322, CLOCK_GETTIME = 228 };

static int children, table, durations, times;
static unsigned first;
/* Which calls, by number. */
static call_set chosen;

/* For the table. */
static struct {
	unsigned long calls, errors, nanoseconds;
} sums[CALLS];

/* Programs that are about to become others: the call is known to have succeeded when the same thread
 * makes the next. */
enum { WAITING = 64 };
static struct {
	unsigned thread;
	struct line line;
} waiting[WAITING];
static unsigned waiting_count;

static void fail(const char *what, const char *which)
{
	struct line line = {0};
	put(&line, "trace: %s %s", what, which);
	put_out(&line);
	exit(1);
}

static unsigned long now(int clock)
{
	long time[2] = {0};
	struct pt_call call = {.number = CLOCK_GETTIME, .arguments = {clock, pt_address(time)}};
	pt_syscall(&call);
	return time[0] * 1000000000ul + time[1];
}

static void choose(char *names)
{
	if (strncmp(names, "trace=", 6) == 0)
		names += 6;
	const char *wrong = set_of(chosen, names);
	if (wrong)
		fail("no such call or class:", wrong);
}

void pt_agent_begin(void)
{
	char word[4096];
	memset(chosen, 1, sizeof chosen);
	first = pt_process();
	for (unsigned at = 0; pt_argument(at, word, sizeof word) >= 0; at++) {
		if (strcmp(word, "-f") == 0)
			children = 1;
		else if (strcmp(word, "-c") == 0)
			table = 1;
		else if (strcmp(word, "-T") == 0)
			durations = 1;
		else if (strcmp(word, "-ttt") == 0)
			times = 1;
		else if (strcmp(word, "-e") == 0 && pt_argument(++at, word, sizeof word) >= 0)
			choose(word);
		else if (strcmp(word, "-s") == 0 && pt_argument(++at, word, sizeof word) >= 0)
			most = atoi(word);
		else
			fail("no such option:", word);
	}
}

static void begin(struct line *line)
{
	if (children)
		put(line, "%-5u ", pt_thread());
	if (times) {
		unsigned long time = now(0);
		put(line, "%lu.%06lu ", time / 1000000000, time % 1000000000 / 1000);
	}
}

static int is_chosen(unsigned long number)
{
	return number >= CALLS || chosen[number];
}

/* A program has become another. */
static void became(unsigned thread)
{
	for (unsigned at = 0; at < WAITING; at++)
		if (__atomic_load_n(&waiting[at].thread, __ATOMIC_ACQUIRE) == thread) {
			struct line *line = &waiting[at].line;
			put_equals(line);
			put(line, "0");
			put_out(line);
			__atomic_fetch_sub(&waiting_count, 1, __ATOMIC_SEQ_CST);
			__atomic_store_n(&waiting[at].thread, 0, __ATOMIC_RELEASE);
			return;
		}
}

static void about_to_become(struct pt_call *call, unsigned thread)
{
	for (unsigned at = 0; at < WAITING; at++) {
		unsigned none = 0;
		if (!__atomic_compare_exchange_n(&waiting[at].thread, &none, ~0u, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
			continue;
		waiting[at].line.length = 0;
		begin(&waiting[at].line);
		put_call(&waiting[at].line, call);
		__atomic_fetch_add(&waiting_count, 1, __ATOMIC_SEQ_CST);
		__atomic_store_n(&waiting[at].thread, thread, __ATOMIC_RELEASE);
		return;
	}
}

static void does_not_come_back(struct pt_call *call)
{
	struct line line;
	line.length = 0;
	begin(&line);
	unsigned start = line.length;
	put_call(&line, call);
	put_equals(&line);
	put(&line, "?");
	put_out(&line);
	line.length = 0;
	begin(&line);
	line.length = start;
	put(&line, "+++ exited with %u +++", (unsigned)call->arguments[0] & 0xff);
	put_out(&line);
}

int pt_agent(struct pt_call *call)
{
	unsigned thread = pt_thread();
	if (!children && pt_process() != first)
		return PT_PASS;
	if (__atomic_load_n(&waiting_count, __ATOMIC_SEQ_CST))
		became(thread);
	if (!is_chosen(call->number))
		return PT_PASS;
	if (table || durations)
		call->note = now(1);
	if (table)
		return PT_PASS_AFTER;
	if (call->number == EXIT || call->number == EXIT_GROUP) {
		does_not_come_back(call);
		return PT_PASS;
	}
	if (call->number == EXECVE || call->number == EXECVEAT)
		about_to_become(call, thread);
	return PT_PASS_AFTER;
}

/* It did not become another. */
static void stayed(unsigned thread)
{
	for (unsigned at = 0; at < WAITING; at++)
		if (__atomic_load_n(&waiting[at].thread, __ATOMIC_ACQUIRE) == thread) {
			__atomic_fetch_sub(&waiting_count, 1, __ATOMIC_SEQ_CST);
			__atomic_store_n(&waiting[at].thread, 0, __ATOMIC_RELEASE);
		}
}

void pt_agent_after(struct pt_call *call)
{
	unsigned long took = table || durations ? now(1) - call->note : 0;
	if (table) {
		unsigned long at = call->number < CALLS ? call->number : 0;
		__atomic_fetch_add(&sums[at].calls, 1, __ATOMIC_RELAXED);
		__atomic_fetch_add(&sums[at].nanoseconds, took, __ATOMIC_RELAXED);
		if (call->result < 0 && call->result >= -4095)
			__atomic_fetch_add(&sums[at].errors, 1, __ATOMIC_RELAXED);
		return;
	}
	if (call->number == EXECVE || call->number == EXECVEAT)
		stayed(pt_thread());
	struct line line;
	line.length = 0;
	begin(&line);
	put_call(&line, call);
	put_result(&line, call);
	if (durations)
		put(&line, " <%lu.%06lu>", took / 1000000000, took % 1000000000 / 1000);
	put_out(&line);
}

static void row(unsigned long time, unsigned long all, unsigned long calls, unsigned long errors, const char *name)
{
	struct line line;
	line.length = 0;
	unsigned long part = all ? time * 10000 / all : 0;
	put(&line, "%3lu.%02lu %4lu.%06lu %11lu %9lu ", part / 100, part % 100, time / 1000000000,
	    time % 1000000000 / 1000, calls ? time / calls / 1000 : 0, calls);
	put(&line, errors ? "%9lu %s" : "%9.0lu %s", errors, name);
	put_out(&line);
}

void pt_agent_end(void)
{
	struct line line = {0};
	unsigned long time = 0, calls = 0, errors = 0;
	if (!table)
		return;
	put(&line, "%% time     seconds  usecs/call     calls    errors syscall");
	put_out(&line);
	put(&line, "------ ----------- ----------- --------- --------- ----------------");
	put_out(&line);
	for (unsigned at = 0; at < CALLS; at++) {
		time += sums[at].nanoseconds;
		calls += sums[at].calls;
		errors += sums[at].errors;
	}
	for (;;) {
		unsigned longest = 0;
		for (unsigned at = 0; at < CALLS; at++)
			if (sums[at].calls && (!sums[longest].calls || sums[at].nanoseconds > sums[longest].nanoseconds))
				longest = at;
		if (!sums[longest].calls)
			break;
		row(sums[longest].nanoseconds, time, sums[longest].calls, sums[longest].errors, call_names[longest]);
		sums[longest].calls = 0;
		sums[longest].nanoseconds = 0;
	}
	put(&line, "------ ----------- ----------- --------- --------- ----------------");
	put_out(&line);
	row(time, time, calls, errors, "total");
}
