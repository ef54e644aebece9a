/* Who had the slices: by those since the last look. `q` ends it. -b writes one table behind the other,
   -n COUNT ends after so many, -d SECONDS is the time between them. */
#include "processes.h"

#include <poll.h>
#include <termios.h>

static const char USAGE[] = "[-b] [-n COUNT] [-d SECONDS]";

static struct process now[EXOS_PROCESSES], before[EXOS_PROCESSES];
static int processes, known;
static struct termios former;

static int by_slices(const void *one, const void *other)
{
	const struct process *a = one, *b = other;
	if (a->since != b->since)
		return a->since < b->since ? 1 : -1;
	return (a->pid > b->pid) - (a->pid < b->pid);
}

static void look(void)
{
	processes = processes_now(now);
	for (struct process *each = now; each < now + processes; each++) {
		each->since = each->usage.slices;
		for (int at = 0; at < known; at++)
			if (before[at].pid == each->pid && before[at].usage.slices <= each->usage.slices)
				each->since -= before[at].usage.slices;
	}
	memcpy(before, now, sizeof now);
	known = processes;
	qsort(now, processes, sizeof *now, by_slices);
}

static void show(int batch)
{
	static uint64_t last;
	struct exos_machine machine;
	exos_machine(&machine);
	unsigned long long passed = machine.ticks > last ? machine.ticks - last : 1;
	last = machine.ticks;
	/* To the first line, and each line to its end: nothing flickers. */
	const char *clear = batch ? "" : "\33[K";
	if (!batch)
		fputs("\33[H", stdout);
	printf("%d processes, %u processors, %u of %u pages free%s\n", processes, machine.processors, machine.free, machine.pages,
	       clear);
	printf("  PID S  %%CPU   SLICES  PAGES NAME%s\n", clear);
	for (struct process *each = now; each < now + processes && (batch || each < now + 20); each++) {
		unsigned long long part = each->since * 1000 / passed;
		printf("%5u %c %3llu.%llu %8llu %6u %s%s\n", each->pid, state_letter(each->state), part / 10, part % 10,
		       (unsigned long long)each->usage.slices, each->usage.pages, each->name, clear);
	}
	if (!batch)
		fputs("\33[J", stdout);
	fflush(stdout);
}

/* Whether `q` comes before the time is over. */
static int asked_to_end(int milliseconds)
{
	struct pollfd typed = {.fd = STDIN_FILENO, .events = POLLIN};
	char byte;
	if (poll(&typed, 1, milliseconds) <= 0)
		return 0;
	return read(STDIN_FILENO, &byte, 1) <= 0 || byte == 'q' || byte == 'Q' || byte == 3;
}

int main(int count, char **arguments)
{
	int batch = 0, times = 0, letter;
	double seconds = 1;
	tool_name = "top";
	if (count > 1 && !strcmp(arguments[1], "--help"))
		return printf("top %s\n", USAGE), 0;
	while ((letter = getopt(count, arguments, "bn:d:")) != -1) {
		if (letter == 'b')
			batch = 1;
		else if (letter == 'n')
			times = atoi(optarg);
		else if (letter == 'd')
			seconds = atof(optarg);
		else
			usage(USAGE);
	}
	if (optind < count || times < 0 || seconds < 0 || seconds > 3600)
		usage(USAGE);
	batch |= !isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO);
	if (!batch) {
		tcgetattr(STDIN_FILENO, &former);
		struct termios raw = former;
		raw.c_lflag &= ~(ICANON | ECHO | ISIG);
		tcsetattr(STDIN_FILENO, TCSANOW, &raw);
		fputs("\33[2J", stdout);
	}
	for (int round = 0; !times || round < times; round++) {
		if (round && batch)
			usleep((useconds_t)(seconds * 1e6));
		else if (round && asked_to_end((int)(seconds * 1000)))
			break;
		look();
		show(batch);
	}
	if (!batch)
		tcsetattr(STDIN_FILENO, TCSANOW, &former);
	return finished();
}
