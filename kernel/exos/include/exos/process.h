/* Processes as ExOS has them, beside what C and Unix say: the table that everybody reads, programs
   as processes without a copy, limits of a tree, requests to the registry as they are. */
#ifndef EXOS_PROCESS_H
#define EXOS_PROCESS_H

#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Which library the program is linked with. A program with pieces of its own may define another. */
extern const char exos_version[];

enum { EXOS_PROCESSES = 255 };

enum exos_state { EXOS_FREE, EXOS_NEW, EXOS_LIVES, EXOS_STOPPED, EXOS_ENDED };

/* A process: 64 bytes, written by the registry. */
struct exos_process {
	uint32_t pid;
	uint32_t state;
	uint32_t birth;
	uint32_t parent;
	uint16_t environment;
	uint16_t tree;
	uint32_t status;
	/* Slices of children that were waited for, and of environments that this process had before
	   an exec. */
	uint64_t children_ran;
	uint64_t ran_before;
	char name[16];
	/* Its process group, and whether it was stopped or goes on and its parent was not told yet.
	   */
	uint32_t group;
	uint32_t event;
} __attribute__((aligned(64)));

#ifndef __cplusplus
_Static_assert(sizeof(struct exos_process) == 64, "as the registry has it");
#endif

struct exos_table {
	uint32_t version;
	uint32_t living;
	uint32_t foreground;
	uint32_t typed;
	char bytes[48];
	struct exos_process processes[EXOS_PROCESSES];
};

/* The table, bound in every process to be read. */
static inline const volatile struct exos_table *exos_table(void)
{
	return (const volatile struct exos_table *)0x7e0000120000;
}

/* A process's record, or null. */
static inline const volatile struct exos_process *exos_find(pid_t pid)
{
	const volatile struct exos_process *record = &exos_table()->processes[(pid - 1) % EXOS_PROCESSES];
	return pid > 0 && record->pid == (uint32_t)pid ? record : 0;
}

/* A program of the archive as a new process: its pid, or -1 and errno. Descriptors are handed on as
   by fork and exec. */
pid_t exos_spawn(const char *name, char *const arguments[], char *const variables[]);

/* What `exos_limit` limits. */
enum exos_limit { EXOS_LIMIT_PROCESSES, EXOS_LIMIT_PAGES, EXOS_LIMIT_SLICES };

/* This process, and those that it makes from now on, have together at most so many. Only down. */
int exos_limit(int what, uint64_t value);

/* More pages for this process: how many it may have, or -1. */
int exos_room(uint64_t pages);

/* What a process has used, by the books that everybody reads. */
struct exos_usage {
	/* Slices that it had to their end, and its children that were waited for. */
	uint64_t slices;
	uint64_t children;
	/* Pages that it has, and may have. */
	uint32_t pages;
	uint32_t room;
};

/* -1 and ESRCH: there is no such process. */
int exos_usage(pid_t pid, struct exos_usage *usage);

/* What the machine has. */
struct exos_machine {
	uint32_t pages;
	uint32_t free;
	uint32_t processors;
	/* Milliseconds since it began: a slice's time is one. */
	uint64_t ticks;
};

void exos_machine(struct exos_machine *machine);

/* Stops the machine, which says so to whoever runs it with a status of at most EXOS_AGAIN: 0 is well,
   and the last one asks to begin again. For processes without a limit (`exos_limit`): others get -1 and
   EPERM. What is to be on the disk is written before (`sync`). */
enum { EXOS_AGAIN = 63 };
int exos_stop(unsigned status);

/* Asks the registry with five words as they are; the answer stands in their place. */
int exos_ask(uint64_t words[5]);

#ifdef __cplusplus
}
#endif
#endif
