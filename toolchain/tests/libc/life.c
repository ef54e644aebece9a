#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void first(void) { puts("registered first, last to run"); }
static void second(void) { puts("registered second, first to run"); }
static volatile int caught;
static void handler(int signal) { caught = signal; }
__attribute__((constructor)) static void before(void) { puts("constructor"); }

int main(int argc, char **argv)
{
    atexit(first);
    atexit(second);
    printf("%d %s %s %d\n", argc, argv[1], argv[2], argv[3] == 0);
    printf("%s\n", getenv("NOTHING") ? "set" : "not set");
    setenv("NAME", "value", 1);
    setenv("NAME", "other", 0);
    printf("%s\n", getenv("NAME"));
    putenv("PUT=it");
    printf("%s\n", getenv("PUT"));
    unsetenv("NAME");
    printf("%d\n", getenv("NAME") == 0);
    signal(SIGTERM, handler);
    raise(SIGTERM);
    printf("%d\n", caught == SIGTERM);
    errno = 0;
    FILE *none = fopen("/nonexistent/file", "r");
    printf("%d %d\n", none == 0, errno != 0);
    /* Times. */
    time_t times[] = { 0, 1, 86399, 951782400, 1000000000, 2147483647, 4102444800, -1, -86401, 1583020799 };
    setenv("TZ", "UTC", 1);
    tzset();
    for (unsigned i = 0; i < sizeof times / sizeof *times; i++) {
        struct tm *tm = gmtime(&times[i]);
        char text[200];
        strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S %a %A %b %B %j %U %W %w %y %C %e %I %p %D %F %T %R %u %V %G %g %h %n%t%% %c %x %X", tm);
        printf("%s|%s", text, asctime(tm));
        struct tm copy = *tm;
        printf("%ld %ld\n", (long)mktime(&copy), (long)difftime(times[i], 100));
    }
    struct tm odd = { .tm_year = 121, .tm_mon = 14, .tm_mday = -3, .tm_hour = 30, .tm_min = 75 };
    time_t normal = mktime(&odd);
    printf("%ld %s", (long)normal, asctime(&odd));
    void *p = malloc(100), *q = calloc(3, 7);
    p = realloc(p, 5000);
    memset(p, 7, 5000);
    printf("%d %d\n", ((char *)p)[4999], ((char *)q)[20]);
    free(p), free(q);
    errno = 0;
    volatile size_t huge = (size_t)-1 / 2;
    void *none_left = malloc(huge);
    printf("%d", none_left == 0);
    printf(" %d\n", errno == ENOMEM);
    exit(41);
}
