/* POSIX beyond C: locks and keys, iconv, mappings, addresses, paths, what cannot be. The same output natively. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <byteswap.h>
#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <iconv.h>
#include <libintl.h>
#include <obstack.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <threads.h>
#include <time.h>
#include <uchar.h>
#include <unistd.h>

/* Programs ask so whether the type is there; it is a type, and no macro. */
#ifndef __socklen_t_defined
#error socklen_t
#endif

#define obstack_chunk_alloc malloc
#define obstack_chunk_free free

static int runs;
static void once(void) { runs++; }

static void locks(void)
{
    pthread_once_t control = PTHREAD_ONCE_INIT;
    pthread_once(&control, once);
    pthread_once(&control, once);
    printf("once %d\n", runs);
    pthread_mutex_t plain = PTHREAD_MUTEX_INITIALIZER, recursive, checked;
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&recursive, &kind);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&checked, &kind);
    printf("%d\n", pthread_mutex_lock(&plain));
    printf("%d\n", pthread_mutex_trylock(&plain) == EBUSY);
    printf("%d\n", pthread_mutex_unlock(&plain));
    for (int k = 0; k < 3; k++)
        printf("%d\n", pthread_mutex_lock(&recursive));
    for (int k = 0; k < 4; k++)
        printf("%d\n", pthread_mutex_unlock(&recursive) == EPERM);
    printf("%d\n", pthread_mutex_lock(&checked));
    printf("%d\n", pthread_mutex_lock(&checked) == EDEADLK);
    pthread_rwlock_t both = PTHREAD_RWLOCK_INITIALIZER;
    printf("%d\n", pthread_rwlock_rdlock(&both));
    printf("%d\n", pthread_rwlock_rdlock(&both));
    printf("%d\n", pthread_rwlock_trywrlock(&both) == EBUSY);
    pthread_rwlock_unlock(&both);
    pthread_rwlock_unlock(&both);
    printf("%d\n", pthread_rwlock_wrlock(&both));
    printf("%d\n", pthread_rwlock_tryrdlock(&both) == EBUSY);
    pthread_cond_t never = PTHREAD_COND_INITIALIZER;
    struct timespec past = { 1, 0 };
    pthread_mutex_lock(&plain);
    printf("%d\n", pthread_cond_timedwait(&never, &plain, &past) == ETIMEDOUT);
    printf("%d\n", pthread_cond_broadcast(&never));
    pthread_key_t key;
    printf("%d\n", pthread_key_create(&key, NULL));
    printf("%d\n", pthread_getspecific(key) == NULL);
    pthread_setspecific(key, "value");
    printf("%s\n", (char *)pthread_getspecific(key));
    sem_t semaphore;
    sem_init(&semaphore, 0, 1);
    printf("%d\n", sem_wait(&semaphore));
    printf("%d %d\n", sem_trywait(&semaphore), errno == EAGAIN);
    mtx_t mutex;
    mtx_init(&mutex, mtx_plain);
    printf("%d\n", mtx_lock(&mutex) == thrd_success);
    printf("%d\n", mtx_trylock(&mutex) == thrd_busy);
}

static void converted(const char *to, const char *from, const char *text, size_t n, size_t room)
{
    char out[64], *at = out, *in = (char *)text;
    iconv_t conversion = iconv_open(to, from);
    if (conversion == (iconv_t)-1) {
        printf("%s %s: %d\n", to, from, errno == EINVAL);
        return;
    }
    errno = 0;
    size_t result = iconv(conversion, &in, &n, &at, &room);
    if (result != (size_t)-1)
        iconv(conversion, 0, 0, &at, &room);
    printf("%s %s: %zd %s, %zu left:", to, from, (ssize_t)result,
           errno == EILSEQ ? "EILSEQ" : errno == EINVAL ? "EINVAL" : errno == E2BIG ? "E2BIG" : "", n);
    for (char *c = out; c < at; c++)
        printf(" %02x", (unsigned char)*c);
    printf("\n");
    iconv_close(conversion);
}

/* Every byte of encodings of one byte a character, there and back. */
static void pages(void)
{
    static const char *const NAMES[] = {
        "ISO-8859-2", "ISO_8859-3", "ISO8859-4",   "ISO-8859-5",   "ISO-8859-6", "ISO-8859-7", "ISO-8859-8", "ISO-8859-9",
        "LATIN6",     "ISO8859-11", "ISO-8859-13", "L8",           "iso8859-15", "L10",        "KOI8-R",
        "koi8-u",     "CP1250",     "CP1251",      "windows-1252", "CP1253",     "CP1254",     "CP1255",     "CP1256",
        "CP1257",     "CP1258",     "CP437",       "IBM850",       "CP852",      "CP866",      "L1L2",       "ISO-8859-1 2",
    };
    for (size_t k = 0; k < sizeof NAMES / sizeof *NAMES; k++) {
        converted("UTF-8", NAMES[k], "a\xe4z\xa4\xff", 5, 40);
        converted(NAMES[k], "UTF-8", "\xe2\x82\xac\xc3\xa4", 5, 40);
        converted(NAMES[k], "UTF-8", "\xef\xbf\xbd", 3, 40);
        converted(NAMES[k], "UTF-8", "\xc3\xa4", 2, 0);
        for (int byte = 0x80; byte < 0x100; byte++) {
            char text = (char)byte, wide[4], back, *in = &text, *out = wide;
            size_t n = 1, room = sizeof wide;
            iconv_t to = iconv_open("UTF-32LE", NAMES[k]), from = iconv_open(NAMES[k], "UTF-32LE");
            if (to == (iconv_t)-1 || from == (iconv_t)-1)
                break;
            /* Of Hebrew and Vietnamese glibc keeps a letter until it knows what follows. */
            if (iconv(to, &in, &n, &out, &room) || iconv(to, 0, 0, &out, &room) || room) {
                printf(" -");
            } else {
                printf(" %02x%02x", (unsigned char)wide[1], (unsigned char)wide[0]);
                n = sizeof wide, in = wide, room = 1, out = &back;
                printf("%s", iconv(from, &in, &n, &out, &room) || back != text ? "!" : "");
            }
            iconv_close(to);
            iconv_close(from);
        }
        printf("\n");
    }
}

static void texts(void)
{
    static const char *const NAMES[] = { "UTF-8", "utf8", "ISO-8859-1", "latin1", "ASCII", "UTF-16", "UTF-16LE", "UTF-16BE", "UTF-32BE", "X-NO" };
    static const char TEXT[] = "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80z";
    for (size_t k = 0; k < sizeof NAMES / sizeof *NAMES; k++)
        for (size_t room = 2; room <= 40; room += 19) {
            converted(NAMES[k], "UTF-8", TEXT, sizeof TEXT - 1, room);
            converted(NAMES[k], "ISO-8859-1", "a\xe4z", 3, room);
            converted(NAMES[k], "UTF-16LE", "a\0\x3d\xd8\x00\xdez\0", 8, room);
            converted(NAMES[k], "UTF-16", "\xfe\xff\0a\0\xe4", 6, room);
        }
    pages();
    static const char *const WRONG[] = { "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82", "\xff", "a\x80" };
    for (size_t k = 0; k < sizeof WRONG / sizeof *WRONG; k++)
        converted("UTF-16LE", "UTF-8", WRONG[k], strlen(WRONG[k]), 40);
    converted("UTF-8", "UTF-16LE", "\0\xdc", 2, 40);
    converted("UTF-8", "UTF-16LE", "\0\xd8", 2, 40);
    printf("%s %s\n", gettext("plain"), ngettext("one", "many", 2));
}

static void addresses(void)
{
    static const char *const TEXTS[] = { "::", "::1", "1::", "2001:db8::8:800:200c:417a", "::ffff:1.2.3.4", "::1.2.3.4", "fe80::1:0:0:2",
                                         "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7::", "1::2::3", "12345::", ":1", "1:", "1.2.3.4", "01.2.3.4",
                                         "1.2.3", "256.1.1.1", "" };
    for (size_t k = 0; k < sizeof TEXTS / sizeof *TEXTS; k++) {
        unsigned char bytes[16];
        char text[INET6_ADDRSTRLEN];
        int six = inet_pton(AF_INET6, TEXTS[k], bytes);
        printf("%s: %d %s", TEXTS[k], six, six ? inet_ntop(AF_INET6, bytes, text, sizeof text) : "");
        int four = inet_pton(AF_INET, TEXTS[k], bytes);
        printf(" %d %s\n", four, four ? inet_ntop(AF_INET, bytes, text, sizeof text) : "");
    }
    struct in_addr address;
    printf("%d %s\n", inet_aton("0x7f.1", &address), inet_ntoa(address));
    printf("%x %x %lx\n", htons(0x1234), bswap_32(0x12345678), (long)htobe64(0x0102030405060708));
}

int main(void)
{
    locks();
    texts();
    addresses();
    char *memory = mmap(NULL, 10000, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int zero = 1;
    for (int k = 0; k < 10000; k++)
        zero &= memory[k] == 0;
    memory[9999] = 1;
    printf("%d %d\n", zero, munmap(memory, 10000));
    printf("%d %d\n", mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED, errno == EINVAL);
    struct obstack stack;
    obstack_init(&stack);
    char *first = obstack_copy0(&stack, "first", 5);
    for (int k = 0; k < 5000; k++)
        obstack_grow(&stack, "abc", 3);
    obstack_1grow(&stack, 0);
    char *long_one = obstack_finish(&stack);
    printf("%s %zu\n", first, strlen(long_one));
    obstack_free(&stack, first);
    printf("%s\n", (char *)obstack_copy0(&stack, "again", 5));
    char path[4096];
    printf("%s\n", realpath("/../.", path));
    char16_t half;
    mbstate_t state = { 0 };
    ssize_t took = (ssize_t)mbrtoc16(&half, "a", 1, &state);
    printf("%zd %x\n", took, half);
    struct pollfd out = { 1, POLLOUT, 0 };
    printf("%d %d\n", poll(&out, 1, 0), out.revents);
    return 0;
}
