/* Texts and numbers of addresses, and what is said of hosts where none is known. */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int h_errno;
const struct in6_addr in6addr_any = IN6ADDR_ANY_INIT, in6addr_loopback = IN6ADDR_LOOPBACK_INIT;

#undef htons
#undef htonl
#undef ntohs
#undef ntohl
uint16_t htons(uint16_t x) { return __builtin_bswap16(x); }
uint32_t htonl(uint32_t x) { return __builtin_bswap32(x); }
uint16_t ntohs(uint16_t x) { return __builtin_bswap16(x); }
uint32_t ntohl(uint32_t x) { return __builtin_bswap32(x); }

/* One to four numbers, the last of which fills what is left; each decimal, octal or hexadecimal. */
int inet_aton(const char *text, struct in_addr *out)
{
    unsigned long parts[4];
    int n = 0;
    for (;; text++) {
        char *end;
        if (n == 4 || !isdigit((unsigned char)*text))
            return 0;
        parts[n++] = strtoul(text, &end, 0);
        text = end;
        if (*text != '.')
            break;
    }
    if (*text && !isspace((unsigned char)*text))
        return 0;
    unsigned long value = parts[n - 1], most = 0xffffffffUL >> 8 * (n - 1);
    if (value > most)
        return 0;
    for (int k = 0; k < n - 1; k++) {
        if (parts[k] > 255)
            return 0;
        value |= parts[k] << (24 - 8 * k);
    }
    if (out)
        out->s_addr = htonl((uint32_t)value);
    return 1;
}
in_addr_t inet_addr(const char *text)
{
    struct in_addr address;
    return inet_aton(text, &address) ? address.s_addr : INADDR_NONE;
}

static int four(const char *text, unsigned char *out)
{
    for (int k = 0; k < 4; k++, text++) {
        unsigned value = 0, digits = 0;
        while (isdigit((unsigned char)*text)) {
            if (++digits > 3 || (digits > 1 && !value))
                return 0;
            value = value * 10 + (unsigned)(*text++ - '0');
        }
        if (!digits || value > 255 || *text != (k < 3 ? '.' : 0))
            return 0;
        out[k] = (unsigned char)value;
    }
    return 1;
}

static int six(const char *text, unsigned char out[16])
{
    unsigned char bytes[16];
    int n = 0, gap = -1;
    if (text[0] == ':' && text[1] != ':')
        return 0;
    if (text[0] == ':')
        text++;
    while (*text) {
        if (*text == ':') {
            if (gap >= 0)
                return 0;
            gap = n;
            text++;
            continue;
        }
        unsigned value = 0, digits = 0;
        const char *start = text;
        while (isxdigit((unsigned char)*text)) {
            int c = tolower((unsigned char)*text++);
            if (++digits > 4)
                return 0;
            value = value * 16 + (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
        }
        if (*text == '.') {
            if (n > 12 || !four(start, bytes + n))
                return 0;
            n += 4;
            break;
        }
        if (!digits || n > 14)
            return 0;
        bytes[n++] = (unsigned char)(value >> 8);
        bytes[n++] = (unsigned char)value;
        if (*text == ':') {
            if (!*++text)
                return 0;
        } else if (*text) {
            return 0;
        }
    }
    if (gap < 0 ? n != 16 : n == 16)
        return 0;
    memset(out, 0, 16);
    if (gap < 0)
        gap = n;
    memcpy(out, bytes, (size_t)gap);
    memcpy(out + 16 - (n - gap), bytes + gap, (size_t)(n - gap));
    return 1;
}

int inet_pton(int family, const char *restrict text, void *restrict out)
{
    unsigned char bytes[4];
    if (family == AF_INET6)
        return six(text, out);
    if (family != AF_INET) {
        errno = EAFNOSUPPORT;
        return -1;
    }
    if (!four(text, bytes))
        return 0;
    memcpy(out, bytes, 4);
    return 1;
}

/* The longest run of zeroes, from two words on, is left out. */
static void written_six(const unsigned char *bytes, char *to)
{
    int first = -1, most = 1;
    for (int k = 0; k < 8; k++) {
        int n = 0;
        while (k + n < 8 && !bytes[2 * (k + n)] && !bytes[2 * (k + n) + 1])
            n++;
        if (n > most) {
            first = k;
            most = n;
        }
    }
    for (int k = 0; k < 8;) {
        if (k == first) {
            to += sprintf(to, "%s", k + most == 8 ? "::" : ":");
            k += most;
            continue;
        }
        if (k)
            *to++ = ':';
        if (k == 6 && first == 0 && (most == 6 || (most == 5 && bytes[10] == 0xff && bytes[11] == 0xff))) {
            sprintf(to, "%u.%u.%u.%u", bytes[12], bytes[13], bytes[14], bytes[15]);
            return;
        }
        to += sprintf(to, "%x", bytes[2 * k] << 8 | bytes[2 * k + 1]);
        k++;
    }
}

const char *inet_ntop(int family, const void *restrict address, char *restrict to, socklen_t n)
{
    char text[INET6_ADDRSTRLEN];
    const unsigned char *bytes = address;
    if (family == AF_INET) {
        sprintf(text, "%u.%u.%u.%u", bytes[0], bytes[1], bytes[2], bytes[3]);
    } else if (family == AF_INET6) {
        written_six(bytes, text);
    } else {
        errno = EAFNOSUPPORT;
        return 0;
    }
    if (strlen(text) >= n) {
        errno = ENOSPC;
        return 0;
    }
    return strcpy(to, text);
}
char *inet_ntoa(struct in_addr address)
{
    static char text[INET_ADDRSTRLEN];
    return (char *)inet_ntop(AF_INET, &address, text, sizeof text);
}

int getaddrinfo(const char *restrict node, const char *restrict service, const struct addrinfo *restrict hints,
                struct addrinfo **restrict out)
{
    errno = ENOSYS;
    return EAI_SYSTEM;
}
void freeaddrinfo(struct addrinfo *list) { (void)list; }
int getnameinfo(const struct sockaddr *restrict address, socklen_t n, char *restrict host, socklen_t host_n, char *restrict service,
                socklen_t service_n, int flags)
{
    errno = ENOSYS;
    return EAI_SYSTEM;
}
const char *gai_strerror(int error) { return error == EAI_SYSTEM ? "System error" : "Name or service not known"; }
const char *hstrerror(int error) { return "Unknown host"; }
