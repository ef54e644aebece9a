/* A version of a module: says which, counts, hands its count over, and faults when it is told to. Version 3 has no `which`. */
int ask(void);

static long count;

#if VERSION != 3
int which(void) { return VERSION; }
#endif
long next(void) { return count++; }
int serve(void) { return ask() + VERSION; }
void trap(void) { __builtin_trap(); }

long save(void *area, unsigned long room)
{
	if (room < sizeof count)
		return -1;
	*(long *)area = count;
	return sizeof count;
}

int load(const void *area, unsigned long length)
{
	if (length != sizeof count)
		return 1;
	count = *(const long *)area;
	return 0;
}
