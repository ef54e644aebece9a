/* Passes system calls on, and prints its arguments. */
extern long sys(long number, long a, long b, long c, long d, long e);
static char room[65536];

char *memory(void) { return room; }
long call(long n, long a, long b, long c, long d, long e) { return sys(n, a, b, c, d, e); }

int __postern_main(int argc, char **argv)
{
	if (argc > 1)
		sys(1, 1, (long)argv[1], 3, 0, 0);
	if (argv[argc + 1])
		sys(1, 1, (long)argv[argc + 1], 3, 0, 0);
	sys(231, argc, 0, 0, 0, 0);
	return 100;
}
