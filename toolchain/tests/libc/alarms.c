/* No signal comes by itself: whoever asks for one is told so. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <unistd.h>

int main(void)
{
    struct itimerval soon = { { 0, 0 }, { 0, 1000 } };
    errno = 0;
    unsigned before = alarm(1);
    printf("%u %d\n", before, errno == ENOSYS);
    errno = 0;
    int set = setitimer(ITIMER_REAL, &soon, NULL);
    printf("%d %d\n", set, errno == ENOSYS);
    return signal(SIGALRM, SIG_IGN) == SIG_ERR;
}
