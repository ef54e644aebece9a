/* What the tests of probes load: no loop, for interrupts may be off. */
#include <postern/kernel.h>

struct told {
	uint64_t argument, same, ip;
};

/* sched_switch(preempt, previous, next, …): pointers to tasks. */
POSTERN_EXPORT long switched(uint64_t preempt, uint64_t previous, uint64_t next)
{
	uint32_t key = 0;
	uint64_t many = 0, word;

	(void)preempt;
	postern_map_find(0, &key, sizeof key, &many, sizeof many);
	many++;
	postern_map_set(0, &key, sizeof key, &many, sizeof many);
	return postern_kernel_read(previous, &word, 8) && postern_kernel_read(next, &word, 8) &&
	       !postern_kernel_read(0xdead000000000000, &word, 8);
}

/* A system call, whose only argument is where the caller's registers are: rdi is the 14th. */
POSTERN_EXPORT long asked(uint64_t registers)
{
	struct told told = { 0, 0, 0 };
	struct postern_registers here;

	postern_kernel_read(registers + 14 * 8, &told.argument, 8);
	if (told.argument != 0x12345)
		return 0;
	told.same = postern_registers(&here) && here.di == registers;
	told.ip = here.ip;
	postern_log("asked", 5);
	return postern_ring_write(&told, sizeof told);
}

/* sys_enter(registers, number) */
POSTERN_EXPORT long entered(uint64_t registers, uint64_t number)
{
	(void)registers;
	return number == 124;
}

/* The fault of a probe. */
POSTERN_EXPORT long broken(uint64_t registers)
{
	return registers + *(volatile unsigned char *)0x70000000;
}
