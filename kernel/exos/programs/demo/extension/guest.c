/* The extension of extension.c: `postern cc` makes guest.px of it, the same file as for Linux. */

extern int host_say(const char *text);

static int count;

int next(void) { return ++count; }

int greet(int times)
{
    for (int i = 0; i < times; i++)
        host_say("hello from inside");
    return times;
}

int read_at(unsigned address) { return *(volatile int *)(unsigned long)address; }

void spin(void)
{
    for (;;)
        __asm__ volatile("");
}
