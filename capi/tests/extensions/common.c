/* One state in several processes, for common.c. */
extern int asked(void);

static volatile int n;

int add(int by)
{
    return __atomic_add_fetch(&n, by, __ATOMIC_SEQ_CST);
}

void hold(void)
{
    add(1000);
    for (;;)
        ;
}

int ask(void)
{
    return asked();
}
