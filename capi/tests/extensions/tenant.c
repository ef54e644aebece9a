/* An extension that uses one service and system calls, and gives back only what it is asked for politely. */
#include <postern/policy.h>
extern int twice(int);
extern long sys(long, long, long, long, long, long);
static int polite;
static char path[] = "/etc/passwd";
void set_polite(int yes) { polite = yes; }
int ask(int x) { return twice(x); }
long call(long number) { return sys(number, (long)path, 0, 0, 0, 0); }
int __postern_revoke(const char *name, int kind, unsigned long microseconds)
{
	return polite && name[0] == 't' && kind == POSTERN_GRANT_SERVICE && microseconds ? 0 : 5;
}
