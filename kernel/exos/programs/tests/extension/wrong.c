/* The extension of tests/extension-wrong.c: it does what the names say, mostly wrong. */

extern long host_add(long a, long b);
extern int other(int n);
extern unsigned __postern_peer_error(void);

static int count;
static const char constant[] = "constant";

int add(int a, int b) { return a + b; }
int add_one(int n) { return n + 1; }
int next(void) { return ++count; }
double half(double x) { return x / 2; }
long ask(long a, long b) { return host_add(a, b) * 2; }
/* The peer's result, or its error times 1000. */
int call_other(int n)
{
    int result = other(n);
    return result + (int)__postern_peer_error() * 1000;
}

int read_at(unsigned address) { return *(volatile int *)(unsigned long)address; }
void write_at(unsigned address, int value) { *(volatile int *)(unsigned long)address = value; }
void write_constant(void) { *(volatile char *)constant = 'C'; }
unsigned where_text_is(void) { return (unsigned)(unsigned long)add; }
unsigned where_data_is(void) { return (unsigned)(unsigned long)&count; }
int divide(int a, int b) { return a / b; }
int jump(unsigned to) { return ((int (*)(void))(unsigned long)to)(); }
void trap(void) { __builtin_trap(); }
int spin(int n)
{
    for (;;)
        __asm__ volatile("");
    return n;
}
long spin_in_service(void)
{
    for (;;)
        host_add(1, 2);
}
int recurse(volatile int n) { return recurse(n + 1) + n; }
/* Takes nothing of the data stack, so the stack of return addresses ends first. */
__attribute__((noinline)) int deep(int n) { return n == -1 ? 0 : deep(n + 1) ^ 1; }
__attribute__((noinline)) void fill(volatile char *bytes, int n) { bytes[n] = 1; }
int big(int n)
{
    volatile char bytes[300000];
    fill(bytes, n);
    return bytes[n];
}
