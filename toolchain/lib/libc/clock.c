/* Clocks. */
#include <sys/time.h>
#include <sys/times.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "call.h"

/* newlib's numbers of clocks, and Linux's. */
static int clock_number(clockid_t clock)
{
    switch (clock) {
    case CLOCK_REALTIME:
        return 0;
    case CLOCK_MONOTONIC:
        return 1;
    case 2:
        return 2;
    case 3:
        return 3;
    default:
        return -1;
    }
}

int clock_gettime(clockid_t clock, struct timespec *out) { return (int)CALL2(clock_gettime, clock_number(clock), out); }
int clock_getres(clockid_t clock, struct timespec *out) { return (int)CALL2(clock_getres, clock_number(clock), out); }

int _gettimeofday_r(struct _reent *reent, struct timeval *out, void *zone)
{
    struct timespec now;
    (void)zone;
    long result = answer(reent, sys(SYS_clock_gettime, 0, (long)&now, 0, 0, 0));
    if (result == 0 && out) {
        out->tv_sec = now.tv_sec;
        out->tv_usec = now.tv_nsec / 1000;
    }
    return (int)result;
}
int gettimeofday(struct timeval *restrict out, void *restrict zone) { return _gettimeofday_r(_REENT, out, zone); }

/* Time used, in hundredths of a second, from the clock of the process. */
_CLOCK_T_ _times_r(struct _reent *reent, struct tms *out)
{
    struct timespec used = { 0, 0 }, now = { 0, 0 };
    answer(reent, sys(SYS_clock_gettime, 2, (long)&used, 0, 0, 0));
    if (answer(reent, sys(SYS_clock_gettime, 1, (long)&now, 0, 0, 0)) < 0)
        return -1;
    out->tms_utime = used.tv_sec * 100 + used.tv_nsec / 10000000;
    out->tms_stime = out->tms_cutime = out->tms_cstime = 0;
    return now.tv_sec * 100 + now.tv_nsec / 10000000;
}
_CLOCK_T_ times(struct tms *out) { return _times_r(_REENT, out); }

clock_t clock(void)
{
    struct timespec used;
    if (sys(SYS_clock_gettime, 2, (long)&used, 0, 0, 0) < 0)
        return -1;
    return used.tv_sec * 1000000 + used.tv_nsec / 1000;
}

int nanosleep(const struct timespec *time, struct timespec *left) { return (int)CALL2(nanosleep, time, left); }
int usleep(useconds_t time)
{
    struct timespec wanted = { (time_t)(time / 1000000), (long)(time % 1000000) * 1000 };
    return nanosleep(&wanted, 0);
}
unsigned sleep(unsigned seconds)
{
    struct timespec wanted = { seconds, 0 }, left = { 0, 0 };
    return nanosleep(&wanted, &left) ? (unsigned)left.tv_sec + (left.tv_nsec > 0) : 0;
}
int getrusage(int who, struct rusage *out) { return (int)CALL2(getrusage, who, out); }
