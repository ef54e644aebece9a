/* Messages in other languages: a text is its own translation. */
#ifndef _LIBINTL_H
#define _LIBINTL_H

#include <sys/cdefs.h>

__BEGIN_DECLS

char *gettext(const char *) __attribute__((__format_arg__(1)));
char *dgettext(const char *, const char *) __attribute__((__format_arg__(2)));
char *dcgettext(const char *, const char *, int) __attribute__((__format_arg__(2)));
char *ngettext(const char *, const char *, unsigned long) __attribute__((__format_arg__(1), __format_arg__(2)));
char *dngettext(const char *, const char *, const char *, unsigned long) __attribute__((__format_arg__(2), __format_arg__(3)));
char *dcngettext(const char *, const char *, const char *, unsigned long, int) __attribute__((__format_arg__(2), __format_arg__(3)));
char *textdomain(const char *);
char *bindtextdomain(const char *, const char *);
char *bind_textdomain_codeset(const char *, const char *);

__END_DECLS

#endif
