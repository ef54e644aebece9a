/* What bench/extension.c calls. */

extern void host_nothing(void);

void nothing(void) {}
void serve(void) { host_nothing(); }
int fault(void) { return *(volatile int *)0x100; }
