/* Messages: err.h, error.h, syslog.h, libintl.h. */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <error.h>
#include <libintl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

static void message(const char *form, va_list values, int error)
{
    fflush(stdout);
    if (form)
        vfprintf(stderr, form, values);
    if (error >= 0)
        fprintf(stderr, "%s%s", form ? ": " : "", strerror(error));
    fputc('\n', stderr);
}
void vwarn(const char *form, va_list values) { message(form, values, errno); }
void vwarnx(const char *form, va_list values) { message(form, values, -1); }
void verr(int status, const char *form, va_list values)
{
    message(form, values, errno);
    exit(status);
}
void verrx(int status, const char *form, va_list values)
{
    message(form, values, -1);
    exit(status);
}
#define WITH(form, call) \
    va_list values; \
    va_start(values, form); \
    call; \
    va_end(values)
void warn(const char *form, ...) { WITH(form, vwarn(form, values)); }
void warnx(const char *form, ...) { WITH(form, vwarnx(form, values)); }
void err(int status, const char *form, ...)
{
    va_list values;
    va_start(values, form);
    verr(status, form, values);
}
void errx(int status, const char *form, ...)
{
    va_list values;
    va_start(values, form);
    verrx(status, form, values);
}

unsigned error_message_count;
int error_one_per_line;
void (*error_print_progname)(void);
void error(int status, int number, const char *form, ...)
{
    error_message_count++;
    WITH(form, message(form, values, number ? number : -1));
    if (status)
        exit(status);
}
void error_at_line(int status, int number, const char *file, unsigned line, const char *form, ...)
{
    error_message_count++;
    fprintf(stderr, "%s:%u: ", file, line);
    WITH(form, message(form, values, number ? number : -1));
    if (status)
        exit(status);
}

static const char *who = "";
static int how, mask = 0xff;
void openlog(const char *name, int options, int facility)
{
    who = name ? name : "";
    how = options;
}
void closelog(void) { how = 0; }
int setlogmask(int wanted)
{
    int before = mask;
    if (wanted)
        mask = wanted;
    return before;
}
void vsyslog(int priority, const char *form, va_list values)
{
    if (!(how & LOG_PERROR) || !(mask & LOG_MASK(LOG_PRI(priority))))
        return;
    fprintf(stderr, "%s: ", who);
    message(form, values, -1);
}
void syslog(int priority, const char *form, ...) { WITH(form, vsyslog(priority, form, values)); }

char *gettext(const char *text) { return (char *)text; }
char *dgettext(const char *domain, const char *text) { return (char *)text; }
char *dcgettext(const char *domain, const char *text, int category) { return (char *)text; }
char *ngettext(const char *one, const char *many, unsigned long n) { return (char *)(n == 1 ? one : many); }
char *dngettext(const char *domain, const char *one, const char *many, unsigned long n) { return ngettext(one, many, n); }
char *dcngettext(const char *domain, const char *one, const char *many, unsigned long n, int category) { return ngettext(one, many, n); }
char *textdomain(const char *domain) { return (char *)(domain ? domain : "messages"); }
char *bindtextdomain(const char *domain, const char *folder) { return (char *)(folder ? folder : "/"); }
char *bind_textdomain_codeset(const char *domain, const char *codeset) { return (char *)codeset; }
