/* uchar.h: a wide character is one of UTF-32. Half of a pair of UTF-16 waits in the state of the
 * conversion. */
#include <errno.h>
#include <uchar.h>
#include <string.h>

size_t mbrtoc32(char32_t *restrict out, const char *restrict from, size_t n, mbstate_t *restrict state)
{
    static mbstate_t own;
    wchar_t c;
    size_t took = mbrtowc(&c, from, n, state ? state : &own);
    if (out && from && took <= n)
        *out = (char32_t)c;
    return took;
}
size_t c32rtomb(char *restrict to, char32_t c, mbstate_t *restrict state)
{
    static mbstate_t own;
    return wcrtomb(to, (wchar_t)c, state ? state : &own);
}

/* newlib's states of conversions have a count that is 0 between characters; this mark is none of
 * its counts. */
#define HALF 0x4000

size_t mbrtoc16(char16_t *restrict out, const char *restrict from, size_t n, mbstate_t *restrict state)
{
    static mbstate_t own;
    if (!state)
        state = &own;
    if (state->__count == HALF) {
        if (out)
            *out = (char16_t)state->__value.__wch;
        memset(state, 0, sizeof *state);
        return (size_t)-3;
    }
    char32_t c = 0;
    size_t took = mbrtoc32(&c, from, n, state);
    if (!from || took > n)
        return took;
    if (c >= 0x10000) {
        state->__count = HALF;
        state->__value.__wch = 0xdc00 + (c & 0x3ff);
        c = 0xd800 + ((c - 0x10000) >> 10);
    }
    if (out)
        *out = (char16_t)c;
    return took;
}
size_t c16rtomb(char *restrict to, char16_t c, mbstate_t *restrict state)
{
    static mbstate_t own;
    if (!state)
        state = &own;
    if (state->__count == HALF) {
        char32_t high = state->__value.__wch;
        memset(state, 0, sizeof *state);
        if (c - 0xdc00u >= 0x400) {
            errno = EILSEQ;
            return (size_t)-1;
        }
        return c32rtomb(to, 0x10000 + ((high - 0xd800) << 10) + (c - 0xdc00), state);
    }
    if (to && c - 0xd800u < 0x400) {
        state->__count = HALF;
        state->__value.__wch = c;
        return 0;
    }
    return c32rtomb(to, c, state);
}
