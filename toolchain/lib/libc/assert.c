/* newlib's name of what a failed assertion calls. */
#include <assert.h>

void __assert_fail(const char *expression, const char *file, unsigned line, const char *function) __attribute__((noreturn));

void __assert_func(const char *file, int line, const char *function, const char *expression)
{
    __assert_fail(expression, file, (unsigned)line, function);
}
void __assert(const char *file, int line, const char *expression) { __assert_func(file, line, 0, expression); }
