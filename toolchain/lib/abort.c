/* abort and assert: the call of the host ends with a fault that says why. */
#include <postern/extension.h>

#define PX __attribute__((weak, visibility("hidden"), noreturn))

static char *append(char *to, char *end, const char *text)
{
    while (*text && to < end)
        *to++ = *text++;
    return to;
}

PX void abort(void) { __postern_abort("abort() was called"); }

/* -fstack-protector: the word above a frame's arrays is not what it was. */
PX void __stack_chk_fail(void) { __postern_abort("stack smashing detected: a function wrote beyond the end of an array on its stack"); }

PX void __assert_fail(const char *expression, const char *file, unsigned line, const char *function)
{
    char text[256], digits[11], *to = text, *end = text + sizeof text - 1, *digit = digits + 10;
    *digit = 0;
    do
        *--digit = (char)('0' + line % 10);
    while (line /= 10);
    to = append(to, end, file);
    to = append(to, end, ":");
    to = append(to, end, digit);
    to = append(to, end, ": ");
    if (function) {
        to = append(to, end, function);
        to = append(to, end, ": ");
    }
    to = append(to, end, "assertion failed: ");
    to = append(to, end, expression);
    *to = 0;
    __postern_abort(text);
}
