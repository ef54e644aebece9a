/*
 * Six attacks that any C programmer could write. They compile, they verify, they run, and each fails at its own expense.
 * The two that need a system call are in syscall.s: the verifier refuses those before they run.
 */

/* The host hands over the address of its own variable, as a careless host might. */
long read_secret(unsigned long address)
{
	return *(volatile long *)address;
}

long write_host(unsigned long address)
{
	*(volatile long *)address = 0x6f776e6564;
	return 0;
}

long jump_to_host(unsigned long address)
{
	return ((long (*)(void))address)();
}

/* Writes where a return address would be on an ordinary stack, and above and below it. */
__attribute__((noinline)) static long forge(unsigned long address)
{
	volatile unsigned long here[2] = { 0, 0 };
	for (int i = -64; i < 64; i++)
		(&here[0])[i] = address;
	return here[1] == address;
}

long forged_return(unsigned long address)
{
	return forge(address);
}

long endless_loop(unsigned long address)
{
	for (;;)
		__asm__ volatile("" : "+r"(address));
}

/* Not a loop in disguise: the local is read again after the call has come back. */
__attribute__((noinline)) static long deeper(unsigned long n)
{
	volatile unsigned long mine = n;
	long below = deeper(n + 1);
	return below + (long)mine;
}

long endless_recursion(unsigned long address)
{
	return deeper(address);
}

long null_pointer(unsigned long address)
{
	int *volatile nowhere = 0;
	return *nowhere + (long)address;
}
