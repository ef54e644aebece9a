/* Doubly recursive Fibonacci: calls, returns and the control stack. */

static unsigned fib_of(unsigned n)
{
    return n < 2 ? n : fib_of(n - 1) + fib_of(n - 2);
}

unsigned long fib(void)
{
    return fib_of(32);
}
