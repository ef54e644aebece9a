/* Messages on standard error, with the error's text, and perhaps the end. */
#ifndef _ERR_H
#define _ERR_H

#include <stdarg.h>
#include <sys/cdefs.h>

__BEGIN_DECLS

#define __MESSAGE(n) __attribute__((__format__(__printf__, n, n + 1)))
void warn(const char *, ...) __MESSAGE(1);
void warnx(const char *, ...) __MESSAGE(1);
void err(int, const char *, ...) __MESSAGE(2) __attribute__((__noreturn__));
void errx(int, const char *, ...) __MESSAGE(2) __attribute__((__noreturn__));
#undef __MESSAGE
void vwarn(const char *, va_list);
void vwarnx(const char *, va_list);
void verr(int, const char *, va_list) __attribute__((__noreturn__));
void verrx(int, const char *, va_list) __attribute__((__noreturn__));

__END_DECLS

#endif
