/* fault.c: an agent that lets calls fail, to see what a program does then.
 *
 *     postern cc -O2 fault.c -o fault.px
 *     postern interpose fault.px -e inject=openat:error=ENOENT:when=3+ -- cat file
 *     postern interpose fault.px --random 0.01 --seed 7 -- make
 *
 * Rules are strace's:
 *
 *   -e inject=SET:error=NAME    the calls of the set are not made, and have this error
 *      :retval=N                or this result
 *      :signal=NAME             the thread gets this signal
 *      :delay_enter=N           the call waits so many microseconds
 *      :when=FIRST[..LAST][+[STEP]]  not each time: each thread counts its own, from 1 on
 *
 *   --random P                  each call has an error of its kind with this probability
 *   --of SET                    these calls alone
 *   --seed N                    other ones; with the same seed, a thread that makes the same calls has
 *                               the same errors
 *   -q                          nothing is said */
#include "errors.h"
#include "flags.h"
#include "sets.h"
#include <stddef.h>
#include <stdlib.h>

enum { NANOSLEEP = 35, EXIT = 60, TGKILL = 234, EXIT_GROUP = 231 };

enum { RULES = 16 };
static struct rule {
	call_set calls;
	int answers;
	long result;
	unsigned signal, delay;
	unsigned long first, last, step;
} rules[RULES];
static unsigned rule_count;

/* Of 2^32. */
static unsigned long chance;
static unsigned long seed;
static call_set at_random;
static int quiet;

/* What threads have counted. One that is killed leaves its place taken. */
enum { THREADS = 1024 };
static struct thread {
	unsigned number, rank;
	unsigned long calls, met[RULES];
} threads[THREADS];
static unsigned ranks;

static void fail(const char *what, const char *which)
{
	struct line line = {0};
	put(&line, "fault: %s %s", what, which);
	put_out(&line);
	exit(1);
}

static struct thread *mine(void)
{
	unsigned number = pt_thread();
	for (unsigned step = 0; step < THREADS; step++) {
		struct thread *thread = &threads[(number + step) % THREADS];
		unsigned none = 0;
		if (__atomic_load_n(&thread->number, __ATOMIC_ACQUIRE) == number)
			return thread;
		if (__atomic_compare_exchange_n(&thread->number, &none, number, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
			thread->rank = __atomic_fetch_add(&ranks, 1, __ATOMIC_SEQ_CST);
			return thread;
		}
	}
	return &threads[number % THREADS];
}

static void forget(struct thread *thread)
{
	memset(&thread->calls, 0, sizeof *thread - offsetof(struct thread, calls));
	__atomic_store_n(&thread->number, 0, __ATOMIC_RELEASE);
}

static void when(struct rule *rule, const char *text)
{
	char *end;
	rule->first = strtoul(text, &end, 10);
	rule->last = rule->first;
	rule->step = 1;
	if (strncmp(end, "..", 2) == 0)
		rule->last = strtoul(end + 2, &end, 10);
	if (*end == '+') {
		if (rule->last == rule->first)
			rule->last = ~0ul;
		if (end[1])
			rule->step = strtoul(end + 1, &end, 10);
		else
			end++;
	}
	if (*end || rule->first == 0 || rule->last < rule->first || rule->step == 0)
		fail("not FIRST[..LAST][+[STEP]]:", text);
}

static unsigned signal_of(const char *name)
{
	for (unsigned at = 1; at < 32; at++)
		if (strcmp(signal_names[at], name) == 0 || strcmp(signal_names[at] + 3, name) == 0)
			return at;
	unsigned number = atoi(name);
	if (number == 0 || number > 64)
		fail("no such signal:", name);
	return number;
}

static void add_rule(char *text)
{
	if (rule_count == RULES)
		fail("there are more than 16 rules:", text);
	struct rule *rule = &rules[rule_count++];
	if (strncmp(text, "inject=", 7) != 0 && strncmp(text, "fault=", 6) != 0)
		fail("no rule (inject=SET:error=NAME):", text);
	/* As in strace, `fault` without an error is ENOSYS. */
	if (text[0] == 'f') {
		rule->answers = 1;
		rule->result = -38;
	}
	rule->first = 1;
	rule->last = ~0ul;
	rule->step = 1;
	char *part = strchr(text, '=') + 1, *next = strchr(part, ':');
	if (next)
		*next++ = 0;
	const char *wrong = set_of(rule->calls, part);
	if (wrong)
		fail("no such call or class:", wrong);
	while ((part = next)) {
		next = strchr(part, ':');
		if (next)
			*next++ = 0;
		char *value = strchr(part, '=');
		if (!value)
			fail("no value:", part);
		*value++ = 0;
		if (strcmp(part, "error") == 0) {
			int error = error_number(value);
			if (!error)
				error = atoi(value);
			if (error <= 0 || error > 4095)
				fail("no such error:", value);
			rule->answers = 1;
			rule->result = -error;
		} else if (strcmp(part, "retval") == 0) {
			rule->answers = 1;
			rule->result = strtol(value, 0, 0);
		} else if (strcmp(part, "signal") == 0)
			rule->signal = signal_of(value);
		else if (strcmp(part, "delay_enter") == 0)
			rule->delay = atoi(value);
		else if (strcmp(part, "when") == 0)
			when(rule, value);
		else
			fail("no such part of a rule:", part);
	}
}

void pt_agent_begin(void)
{
	char word[1024];
	memset(at_random, 1, sizeof at_random);
	for (unsigned at = 0; pt_argument(at, word, sizeof word) >= 0; at++) {
		int has_value = pt_argument(at + 1, word, sizeof word) >= 0;
		char option[16];
		if (pt_argument(at, option, sizeof option) < 0)
			fail("no such option:", "a long one");
		if (strcmp(option, "-q") == 0) {
			quiet = 1;
			continue;
		}
		if (!has_value)
			fail("no such option, or it needs a value:", option);
		at++;
		if (strcmp(option, "-e") == 0)
			add_rule(word);
		else if (strcmp(option, "--random") == 0)
			chance = strtod(word, 0) * 4294967296.0;
		else if (strcmp(option, "--seed") == 0)
			seed = strtoul(word, 0, 0);
		else if (strcmp(option, "--of") == 0) {
			const char *wrong = set_of(at_random, word);
			if (wrong)
				fail("no such call or class:", wrong);
		} else
			fail("no such option:", option);
	}
}

/* A number that looks random, always the same of the same one. */
static unsigned long mixed(unsigned long word)
{
	word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9;
	word = (word ^ word >> 27) * 0x94d049bb133111eb;
	return word ^ word >> 31;
}

/* What goes wrong with calls in practice: the number, and up to three errors. */
static const struct {
	unsigned short call;
	unsigned char errors[3];
} usual[] = {
	{0, {5, 4}},       {1, {28, 5, 4}},    {2, {2, 13, 24}}, {9, {12}},        {12, {12}},
	{17, {5}},         {18, {28, 5}},      {19, {5, 4}},     {20, {28, 5}},    {4, {2, 13}},
	{5, {5}},          {6, {2, 13}},       {22, {24}},       {32, {24}},       {33, {24}},
	{41, {97, 24}},    {42, {111, 110}},   {43, {24, 4}},    {44, {32, 11}},   {45, {104, 11}},
	{49, {98}},        {56, {11, 12}},     {57, {11, 12}},   {58, {11, 12}},   {59, {2, 13, 12}},
	{61, {4}},         {74, {5, 28}},      {75, {5, 28}},    {77, {28}},       {80, {2, 13}},
	{82, {13, 18}},    {83, {28, 13}},     {84, {39}},       {86, {31}},       {87, {13, 16}},
	{88, {28}},        {217, {5}},         {257, {2, 13, 24}}, {258, {28, 13}}, {262, {2, 13}},
	{263, {13, 16}},   {264, {13, 18}},    {285, {28}},      {288, {24, 4}},   {293, {24}},
	{316, {13, 18}},   {318, {4}},         {326, {28, 5}},   {332, {2, 13}},   {435, {11, 12}},
};

/* An error for a call, or 0. */
static unsigned random_error(const struct pt_call *call, struct thread *thread)
{
	thread->calls++;
	if (chance == 0 || call->number >= CALLS || !at_random[call->number])
		return 0;
	unsigned long word = mixed(seed + mixed(((unsigned long)thread->rank << 32) + thread->calls));
	if ((word & 0xffffffff) >= chance)
		return 0;
	for (unsigned at = 0; at < sizeof usual / sizeof usual[0]; at++)
		if (usual[at].call == call->number) {
			unsigned count = 1;
			while (count < 3 && usual[at].errors[count])
				count++;
			return usual[at].errors[(word >> 32) % count];
		}
	return 0;
}

static void say(const struct pt_call *call, const char *what)
{
	struct line line;
	line.length = 0;
	if (quiet)
		return;
	put(&line, "fault: %s by process %u: %s", call_name(call->number), pt_process(), what);
	put_out(&line);
}

static int answer(struct pt_call *call, long result)
{
	char text[24];
	snprintf(text, sizeof text, "%ld", result);
	const char *name = result < 0 && -result < (long)ERRORS ? errors[-result].name : 0;
	say(call, name ? name : text);
	call->result = result;
	return PT_ANSWER;
}

int pt_agent(struct pt_call *call)
{
	struct thread *thread = mine();
	if (call->number == EXIT || call->number == EXIT_GROUP) {
		forget(thread);
		return PT_PASS;
	}
	if (call->number >= CALLS)
		return PT_PASS;
	int answers = 0;
	long result = 0;
	for (unsigned at = 0; at < rule_count; at++) {
		struct rule *rule = &rules[at];
		if (!rule->calls[call->number])
			continue;
		unsigned long met = ++thread->met[at];
		if (met < rule->first || met > rule->last || (met - rule->first) % rule->step)
			continue;
		if (rule->delay) {
			long time[2] = {rule->delay / 1000000, rule->delay % 1000000 * 1000l};
			struct pt_call sleep = {.number = NANOSLEEP, .arguments = {pt_address(time)}};
			pt_syscall(&sleep);
		}
		if (rule->signal) {
			struct pt_call kill = {
				.number = TGKILL, .arguments = {pt_process(), pt_thread(), rule->signal}};
			say(call, "a signal");
			pt_syscall(&kill);
		}
		if (rule->answers) {
			answers = 1;
			result = rule->result;
		}
	}
	if (answers)
		return answer(call, result);
	unsigned error = random_error(call, thread);
	return error ? answer(call, -(long)error) : PT_PASS;
}
