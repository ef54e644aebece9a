/* The extension of extension.c: `postern cc` makes guest.px of it, as for Linux. It does what its name says, also wrong. */

extern long host_add(long a, long b);
extern int other(int n);

static int count;
static const char constant[] = "constant";

int add(int a, int b) { return a + b; }
int next(void) { return ++count; }
double half(double x) { return x / 2; }
long ask(long a, long b) { return host_add(a, b) * 2; }
int call_other(int n) { return other(n) + 1; }

int read_at(unsigned address) { return *(volatile int *)(unsigned long)address; }
void write_at(unsigned address, int value) { *(volatile int *)(unsigned long)address = value; }
void write_constant(void) { *(volatile char *)constant = 'C'; }
int divide(int a, int b) { return a / b; }
int jump(unsigned to) { return ((int (*)(void))(unsigned long)to)(); }
void trap(void) { __builtin_trap(); }
void spin(void) { for (;;) __asm__ volatile(""); }
long spin_in_service(void) { for (;;) host_add(1, 2); }
int recurse(volatile int n) { return recurse(n + 1) + n; }
int big(int n) { volatile char bytes[1 << 20]; bytes[n] = 1; return next() + bytes[n]; }
