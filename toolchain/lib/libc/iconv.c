/* iconv between UTF-8, ASCII, Latin-1, the encodings of encodings.h, and UTF-16 and UTF-32 in both
 * orders of bytes. */
#include <ctype.h>
#include <errno.h>
#include <iconv.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "encodings.h"

/* From PAGE on the entries of ENCODINGS. */
enum form { UTF8, ASCII, LATIN1, UTF16, UTF16LE, UTF16BE, UTF32, UTF32LE, UTF32BE, PAGE };

/* Names without what stands between letters and digits. */
static const struct {
    const char *name;
    enum form form;
} NAMES[] = {
    { "UTF8", UTF8 },       { "ASCII", ASCII },      { "USASCII", ASCII },   { "ANSIX341968", ASCII }, { "646", ASCII },
    { "ISO646US", ASCII },  { "ISO88591", LATIN1 },  { "LATIN1", LATIN1 },   { "L1", LATIN1 },         { "UTF16", UTF16 },
    { "UTF16LE", UTF16LE }, { "UTF16BE", UTF16BE },  { "UCS2", UTF16LE },    { "UCS2LE", UTF16LE },    { "UCS2BE", UTF16BE },
    { "UTF32", UTF32 },     { "UTF32LE", UTF32LE },  { "UTF32BE", UTF32BE }, { "UCS4LE", UTF32LE },    { "UCS4", UTF32BE },
    { "WCHART", UTF32LE },   { "", UTF8 },
};

/* `in` and `out` become definite where a byte order mark says which order it is; `mark` is still to
 * be written. */
struct conversion {
    enum form from, to, in, out;
    char first, mark, translate, ignore;
};

static int form_of(const char *name, enum form *form, struct conversion *options)
{
    char plain[24];
    size_t n = 0;
    for (; *name && !(name[0] == '/' && name[1] == '/'); name++) {
        if (!isalnum((unsigned char)*name))
            continue;
        if (n + 1 == sizeof plain)
            return 0;
        plain[n++] = (char)toupper((unsigned char)*name);
    }
    plain[n] = 0;
    if (options) {
        options->translate = strstr(name, "//TRANSLIT") != 0;
        options->ignore = strstr(name, "//IGNORE") != 0;
    }
    for (size_t k = 0; k < sizeof NAMES / sizeof *NAMES; k++)
        if (!strcmp(NAMES[k].name, plain)) {
            *form = NAMES[k].form;
            return 1;
        }
    for (size_t k = 0; n && k < PAGES; k++)
        for (const char *at = ENCODINGS[k].names; (at = strstr(at, plain)); at++)
            if ((at == ENCODINGS[k].names || at[-1] == ' ') && (at[n] == ' ' || !at[n])) {
                *form = PAGE + (enum form)k;
                return 1;
            }
    return 0;
}

/* The character of a byte above ASCII, and 0xfffd if there is none. */
static uint32_t of_byte(enum form form, unsigned char byte)
{
    const struct encoding *page = &ENCODINGS[form - PAGE];
    return byte < page->first ? byte : page->characters[byte - page->first];
}

/* And back: 0 if there is none. */
static unsigned char to_byte(enum form form, uint32_t c)
{
    for (unsigned byte = 0x80; byte < 0x100; byte++)
        if (of_byte(form, (unsigned char)byte) == c)
            return (unsigned char)byte;
    return 0;
}

static void begin(struct conversion *c)
{
    c->in = c->from;
    c->out = c->to == UTF16 ? UTF16LE : c->to == UTF32 ? UTF32LE : c->to;
    c->mark = c->to == UTF16 || c->to == UTF32;
    c->first = 1;
}

iconv_t iconv_open(const char *to, const char *from)
{
    struct conversion made = { 0 };
    if (!form_of(from, &made.from, 0) || !form_of(to, &made.to, &made)) {
        errno = EINVAL;
        return (iconv_t)-1;
    }
    struct conversion *c = malloc(sizeof *c);
    if (!c)
        return (iconv_t)-1;
    begin(&made);
    *c = made;
    return (iconv_t)c;
}
int iconv_close(iconv_t conversion)
{
    free(conversion);
    return 0;
}

/* A character and how many bytes it took; negated: the error. */
static int taken(enum form form, const unsigned char *p, size_t n, uint32_t *out)
{
    static const uint32_t LEAST[] = { 0, 0, 0x80, 0x800, 0x10000 };
    if (form >= PAGE)
        return (*out = p[0] < 0x80 ? p[0] : of_byte(form, p[0])) == 0xfffd ? -EILSEQ : 1;
    switch (form) {
    case ASCII:
        return (*out = p[0]) < 0x80 ? 1 : -EILSEQ;
    case LATIN1:
        return *out = p[0], 1;
    case UTF8: {
        int length = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : p[0] < 0xf5 ? 4 : 0;
        if (!length)
            return -EILSEQ;
        uint32_t c = length == 1 ? p[0] : p[0] & (0x7fu >> length);
        for (int k = 1; k < length; k++) {
            if ((size_t)k >= n)
                return -EINVAL;
            if ((p[k] & 0xc0) != 0x80)
                return -EILSEQ;
            c = c << 6 | (p[k] & 0x3f);
            if (k == 1 && ((length == 3 && (c < 0x20 || c >> 5 == 0x1b)) || (length == 4 && (c < 0x10 || c > 0x10f))))
                return -EILSEQ;
        }
        if (c < LEAST[length])
            return -EILSEQ;
        return *out = c, length;
    }
    case UTF16LE:
    case UTF16BE: {
        int big = form == UTF16BE;
        if (n < 2)
            return -EINVAL;
        uint32_t c = (uint32_t)(p[big] | p[!big] << 8);
        if (c - 0xd800 >= 0x800)
            return *out = c, 2;
        if (c >= 0xdc00)
            return -EILSEQ;
        if (n < 4)
            return -EINVAL;
        uint32_t low = (uint32_t)(p[2 + big] | p[2 + !big] << 8);
        if (low - 0xdc00 >= 0x400)
            return -EILSEQ;
        return *out = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00), 4;
    }
    default: {
        int big = form == UTF32BE;
        if (n < 4)
            return -EINVAL;
        uint32_t c = 0;
        for (int k = 0; k < 4; k++)
            c |= (uint32_t)p[k] << 8 * (big ? 3 - k : k);
        return c > 0x10ffff || c - 0xd800 < 0x800 ? -EILSEQ : (*out = c, 4);
    }
    }
}

/* Writes a character: how many bytes, or the negated error. */
static int given(enum form form, uint32_t c, unsigned char *p, size_t n)
{
    size_t length;
    if (form >= PAGE) {
        if (!n)
            return -E2BIG;
        *p = c < 0x80 ? (unsigned char)c : c == 0xfffd ? 0 : to_byte(form, c);
        return *p || !c ? 1 : -EILSEQ;
    }
    switch (form) {
    case ASCII:
    case LATIN1:
        if (!n)
            return -E2BIG;
        if (c >= (form == ASCII ? 0x80 : 0x100))
            return -EILSEQ;
        return *p = (unsigned char)c, 1;
    case UTF8:
        length = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
        if (n < length)
            return -E2BIG;
        if (length == 1)
            return *p = (unsigned char)c, 1;
        for (size_t k = length; --k; c >>= 6)
            p[k] = 0x80 | (c & 0x3f);
        p[0] = (unsigned char)(0xf00 >> length | c);
        return (int)length;
    case UTF16LE:
    case UTF16BE: {
        int big = form == UTF16BE;
        uint32_t units[2] = { c, 0 };
        length = c < 0x10000 ? 1 : 2;
        if (length == 2) {
            units[0] = 0xd800 + ((c - 0x10000) >> 10);
            units[1] = 0xdc00 + (c & 0x3ff);
        }
        if (n < 2 * length)
            return -E2BIG;
        for (size_t k = 0; k < length; k++) {
            p[2 * k + (size_t)big] = (unsigned char)units[k];
            p[2 * k + (size_t)!big] = (unsigned char)(units[k] >> 8);
        }
        return (int)(2 * length);
    }
    default:
        if (n < 4)
            return -E2BIG;
        for (int k = 0; k < 4; k++)
            p[k] = (unsigned char)(c >> 8 * (form == UTF32BE ? 3 - k : k));
        return 4;
    }
}

/* Whether the text begins with a mark of the order of its bytes, which is left out; -EINVAL if too
 * little is there to know. */
static int read_mark(struct conversion *c, const unsigned char *p, size_t n)
{
    size_t width = c->from == UTF16 ? 2 : 4;
    if (c->from != UTF16 && c->from != UTF32)
        return 0;
    if (n < width)
        return -EINVAL;
    uint32_t little = 0, big = 0;
    c->in = width == 2 ? UTF16LE : UTF32LE;
    if (taken(c->in, p, n, &little) > 0 && little == 0xfeff)
        return (int)width;
    if (taken(width == 2 ? UTF16BE : UTF32BE, p, n, &big) > 0 && big == 0xfeff) {
        c->in = width == 2 ? UTF16BE : UTF32BE;
        return (int)width;
    }
    return 0;
}

size_t iconv(iconv_t conversion, char **restrict in, size_t *restrict in_left, char **restrict out, size_t *restrict out_left)
{
    struct conversion *c = (struct conversion *)conversion;
    size_t changed = 0;
    if (!in || !*in) {
        begin(c);
        return 0;
    }
    while (*in_left) {
        const unsigned char *p = (const unsigned char *)*in;
        uint32_t character = 0;
        int n = c->first ? read_mark(c, p, *in_left) : 0;
        if (n > 0) {
            c->first = 0;
            *in += n;
            *in_left -= (size_t)n;
            continue;
        }
        if (n == 0)
            n = taken(c->in, p, *in_left, &character);
        if (n == -EILSEQ && c->ignore) {
            ++*in;
            --*in_left;
            continue;
        }
        if (n < 0) {
            errno = -n;
            return (size_t)-1;
        }
        c->first = 0;
        if (c->mark) {
            int mark = given(c->out, 0xfeff, (unsigned char *)*out, *out_left);
            if (mark < 0) {
                errno = -mark;
                return (size_t)-1;
            }
            *out += mark;
            *out_left -= (size_t)mark;
            c->mark = 0;
        }
        unsigned char *to = (unsigned char *)*out;
        size_t room = *out_left;
        int m = given(c->out, character, to, room);
        if (m == -EILSEQ && c->translate) {
            changed++;
            m = given(c->out, '?', to, room);
        } else if (m == -EILSEQ && c->ignore) {
            m = 0;
        }
        if (m < 0) {
            errno = -m;
            return (size_t)-1;
        }
        *in += n;
        *in_left -= (size_t)n;
        *out += m;
        *out_left -= (size_t)m;
    }
    return changed;
}
