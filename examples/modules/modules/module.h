/* What the server and its modules say to each other.
 *
 * The request lies in memory that modules can read. They change it, and the answer, by asking the server: a name and a value are
 * written to the outbox, and a service takes them from there. Natively (-DNATIVE) the services come in a table. */
#ifndef MODULE_H
#define MODULE_H

#define POSTERN_EXPORT __attribute__((visibility("default"), used))

enum { DECLINED = 0, DONE = 1 }; /* or a status of HTTP */
enum { HEADERS = 32, OUTBOX = 4096 };

struct text {
	const char *at;
	unsigned long size;
};

struct header {
	struct text name, value;
};

struct request {
	struct text method, uri, address, user, file, type, body;
	unsigned long count; /* of headers */
	struct header header[HEADERS];
	unsigned long number; /* of the request */
	char *outbox;
};

/* What put() changes. */
enum place { RESPONSE, VARIABLE, URI, USER, FILE_NAME, TYPE, LOG, BODY };

#ifdef NATIVE
struct services {
	long (*put)(int place, unsigned name, unsigned value);
	long (*variable)(unsigned name);
	long (*file_size)(unsigned name);
	long (*secret)(unsigned name);
	unsigned long (*seconds)(void);
};
static const struct services *services;
POSTERN_EXPORT void module_bind(const struct services *table) { services = table; }
#define server_put services->put
#define server_variable services->variable
#define server_file_size services->file_size
#define server_secret services->secret
#define server_seconds services->seconds
#else
/* The outbox holds the name and the value, one behind the other. */
extern long server_put(int place, unsigned name, unsigned value);
/* The value (of a variable; what is kept of a user's password) comes in the place of the name; its size, or less than 0. */
extern long server_variable(unsigned name);
extern long server_file_size(unsigned name);
extern long server_secret(unsigned name);
extern unsigned long server_seconds(void);
#endif

#define TEXT(literal) ((struct text){literal, sizeof(literal) - 1})

static inline char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c; }

static inline int same(struct text a, struct text b)
{
	if (a.size != b.size)
		return 0;
	for (unsigned long k = 0; k < a.size; k++)
		if (lower(a.at[k]) != lower(b.at[k]))
			return 0;
	return 1;
}

static inline int begins(struct text text, struct text with)
{
	return text.size >= with.size && same((struct text){text.at, with.size}, with);
}

static inline int ends(struct text text, struct text with)
{
	return text.size >= with.size && same((struct text){text.at + text.size - with.size, with.size}, with);
}

/* Where `what` begins in `text`, or -1. */
static inline long find(struct text text, struct text what)
{
	if (!what.size)
		return 0;
	const char first = lower(*what.at), other = first >= 'a' && first <= 'z' ? (char)(first - 32) : first;
	for (unsigned long k = 0; k + what.size <= text.size; k++)
		if ((text.at[k] == first || text.at[k] == other) && same((struct text){text.at + k, what.size}, what))
			return (long)k;
	return -1;
}

static inline struct text header_of(const struct request *r, struct text name)
{
	for (unsigned long k = 0; k < r->count && k < HEADERS; k++)
		if (same(r->header[k].name, name))
			return r->header[k].value;
	return (struct text){"", 0};
}

/* Text that is put together in the outbox. */
struct writer {
	char *at;
	unsigned long size;
};

static inline void add(struct writer *w, struct text text)
{
	unsigned long room = OUTBOX - w->size, size = text.size < room ? text.size : room;
	__builtin_memcpy(w->at + w->size, text.at, size);
	w->size += size;
}

static inline void add_number(struct writer *w, unsigned long number)
{
	char digits[20];
	unsigned long n = sizeof digits;
	do
		digits[--n] = (char)('0' + number % 10);
	while (number /= 10);
	add(w, (struct text){digits + n, sizeof digits - n});
}

static inline void add_hex(struct writer *w, unsigned long number)
{
	char digits[16];
	for (int k = 15; k >= 0; k--, number >>= 4)
		digits[k] = "0123456789abcdef"[number & 15];
	add(w, (struct text){digits, 16});
}

static inline long put(const struct request *r, enum place place, struct text name, struct text value)
{
	struct writer w = {r->outbox, 0};
	add(&w, name);
	add(&w, value);
	return server_put(place, (unsigned)name.size, (unsigned)(w.size - name.size));
}

/* The value of a variable that another module has put, until the next one is asked for. */
static inline struct text variable(const struct request *r, struct text name)
{
	static char value[64];
	struct writer w = {r->outbox, 0};
	add(&w, name);
	long size = server_variable((unsigned)name.size);
	if (size < 0 || size > (long)sizeof value)
		size = 0;
	__builtin_memcpy(value, r->outbox, (unsigned long)size);
	return (struct text){value, (unsigned long)size};
}

static inline unsigned long hash(unsigned long h, struct text text)
{
	for (unsigned long k = 0; k < text.size; k++)
		h = (h ^ (unsigned char)text.at[k]) * 0x100000001b3;
	return h ^ h >> 29;
}

#define SEED 0xcbf29ce484222325u

/* The settings for a folder: the longest prefix of the file's name that the module knows. */
struct folder {
	struct text prefix;
	int setting;
};

static inline int setting_of(const struct request *r, const struct folder *folders, int count)
{
	unsigned long longest = 0;
	int setting = 0;
	for (int k = 0; k < count; k++)
		if (folders[k].prefix.size >= longest && begins(r->uri, folders[k].prefix)) {
			longest = folders[k].prefix.size;
			setting = folders[k].setting;
		}
	return setting;
}

/* Each module's own choice for the folder of the present request; `configure` is called before anything else. */
#define FOLDERS(...)                                                              \
	static const struct folder folders[] = {{TEXT("/"), 1}, __VA_ARGS__};     \
	static int setting;                                                       \
	POSTERN_EXPORT int configure(const struct request *r)                     \
	{                                                                         \
		setting = setting_of(r, folders, sizeof folders / sizeof *folders); \
		return DECLINED;                                                  \
	}

#endif
