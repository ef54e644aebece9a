/* Pages of a catalogue: a document in XML becomes a page in HTML.
 *
 *   /pages/NAME          the page of public/documents/NAME.xml, kept until that file changes
 *   /pages/NAME?fresh    the same, read and transformed anew
 *   /pages?state         what was done so far
 *
 * One source for all ways to run it. Where several threads or processes have one domain, what is
 * kept here is one for all of them: it is changed under the lock only, and no answer is waited for
 * under it. */
#include <fcntl.h>
#include <libcgi.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "xml.h"

#define LONGEST_DOCUMENT (1 << 20)
#define LONGEST_NAME 64
#define LONGEST_KEPT 8192
#define KEPT 16

struct kept {
	char name[LONGEST_NAME];
	long long changed, document_size;
	size_t size;
	char page[LONGEST_KEPT];
};

/* The state. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct kept kept[KEPT];
static unsigned long requests, hits, transformed, next_kept;

/* A page that is being written. */
struct page {
	char *at;
	size_t size, room;
};

static int put(void *to, const char *at, size_t size)
{
	struct page *page = (struct page *)to;
	if (size > page->room - page->size)
		return 1;
	memcpy(page->at + page->size, at, size);
	page->size += size;
	return 0;
}

static int put_string(void *to, const char *text)
{
	return put(to, text, strlen(text));
}

/* Text in which nothing is markup. */
static int escaped(void *to, const char *at, size_t size)
{
	const char *end = at + size, *from = at;
	int status = 0;
	for (; at < end && !status; at++) {
		const char *as = *at == '&' ? "&amp;" : *at == '<' ? "&lt;" : *at == '>' ? "&gt;" : *at == '"' ? "&quot;" : NULL;
		if (as) {
			status = put(to, from, (size_t)(at - from)) || put_string(to, as);
			from = at + 1;
		}
	}
	return status || put(to, from, (size_t)(end - from));
}

/* What elements become. Others are a span of their name. */
static const struct {
	const char *name, *as;
} rules[] = {
	{"catalogue", "main"}, {"section", "section"}, {"heading", "h2"}, {"book", "article"}, {"title", "h3"},
	{"author", "address"}, {"price", "data"},      {"note", "p"},     {"em", "em"},        {"list", "ul"},
	{"item", "li"},
};

static const char *rule(struct xml_text name)
{
	for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
		if (strlen(rules[i].name) == name.size && !memcmp(rules[i].name, name.at, name.size))
			return rules[i].as;
	return NULL;
}

static int begin(void *to, struct xml_text name, const struct xml_attributes *attributes)
{
	const char *as = rule(name);
	if (put_string(to, "<") || put_string(to, as ? as : "span class=\""))
		return 1;
	if (!as && (escaped(to, name.at, name.size) || put_string(to, "\"")))
		return 1;
	for (size_t i = 0; i < attributes->count; i++) {
		struct xml_text key = attributes->names[i];
		if (put_string(to, " data-") || escaped(to, key.at, key.size) || put_string(to, "=\"")
		    || xml_value(attributes->values[i], escaped, to) || put_string(to, "\""))
			return 1;
	}
	return put_string(to, ">");
}

static int end(void *to, struct xml_text name)
{
	const char *as = rule(name);
	return put_string(to, "</") || put_string(to, as ? as : "span") || put_string(to, ">");
}

/* Writes the page of a document. 0, or a status with a line of text in the page's place. */
static int transform(const char *document, size_t size, struct page *page)
{
	static const struct xml_events events = {begin, end, escaped};
	struct xml_error error = {0, "the page is too long"};
	if (!put_string(page, "<!DOCTYPE html>\n<meta charset=\"utf-8\">\n")
	    && !xml_read(document, size, &events, page, &error) && !put_string(page, "\n"))
		return 0;
	int wrote = snprintf(page->at, page->room, "line %lu: %s\n", error.line, error.reason);
	page->size = wrote > 0 && (size_t)wrote < page->room ? (size_t)wrote : 0;
	return 500;
}

/* Reads a file, all of it; the caller frees it. Null if it cannot be had, or is too long. */
static char *read_file(const char *path, const struct stat *about)
{
	size_t size = (size_t)about->st_size, got = 0;
	if (about->st_size < 0 || size > LONGEST_DOCUMENT)
		return NULL;
	int file = open(path, O_RDONLY);
	char *text = file < 0 ? NULL : (char *)malloc(size + 1);
	while (text && got < size) {
		ssize_t part = read(file, text + got, size - got);
		if (part <= 0) {
			free(text);
			text = NULL;
		} else {
			got += (size_t)part;
		}
	}
	if (file >= 0)
		close(file);
	return text;
}

/* Copies the page that is kept of this file as it is now. */
static int take_kept(const char *name, const struct stat *about, struct page *page)
{
	int found = 0;
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < KEPT && !found; i++) {
		const struct kept *one = &kept[i];
		if (one->changed == (long long)about->st_mtime && one->document_size == (long long)about->st_size
		    && !strcmp(one->name, name) && one->size <= page->room) {
			memcpy(page->at, one->page, one->size);
			page->size = one->size;
			found = 1;
			hits++;
		}
	}
	pthread_mutex_unlock(&lock);
	return found;
}

static void keep(const char *name, const struct stat *about, const struct page *page)
{
	pthread_mutex_lock(&lock);
	transformed++;
	if (page->size <= LONGEST_KEPT) {
		struct kept *one = NULL;
		for (size_t i = 0; i < KEPT && !one; i++)
			if (!strcmp(kept[i].name, name))
				one = &kept[i];
		if (!one)
			one = &kept[next_kept++ % KEPT];
		strcpy(one->name, name);
		one->changed = (long long)about->st_mtime;
		one->document_size = (long long)about->st_size;
		one->size = page->size;
		memcpy(one->page, page->at, page->size);
	}
	pthread_mutex_unlock(&lock);
}

static int answer(int status, const char *text)
{
	cgi_status(status);
	return cgi_puts(text) < 0;
}

static int state(void)
{
	pthread_mutex_lock(&lock);
	unsigned long now[] = {requests, hits, transformed};
	pthread_mutex_unlock(&lock);
	cgi_header("Cache-Control", "no-store");
	return cgi_printf("requests %lu\nhits %lu\ntransformed %lu\n", now[0], now[1], now[2]) < 0;
}

/* The name in a path, `/NAME`: letters, digits, `-` and `_`. */
static const char *name_of(const char *path)
{
	if (!path || *path != '/')
		return NULL;
	const char *name = path + 1;
	size_t size = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_");
	return size && size < LONGEST_NAME && !name[size] ? name : NULL;
}

int cgi_main(void)
{
	const char *query = cgi_env("QUERY_STRING"), *root = cgi_env("DOCUMENT_ROOT"), *name = name_of(cgi_env("PATH_INFO"));
	char path[4096];
	struct stat about;
	if (query && !strcmp(query, "state"))
		return state();
	pthread_mutex_lock(&lock);
	requests++;
	pthread_mutex_unlock(&lock);
	if (!root || !name || snprintf(path, sizeof path, "%s/documents/%s.xml", root, name) >= (int)sizeof path)
		return answer(404, "There is no such page.\n");
	if (stat(path, &about) < 0 || !S_ISREG(about.st_mode))
		return answer(404, "There is no such page.\n");
	int fresh = query && !strcmp(query, "fresh");
	struct page page = {0};
	if (fresh || about.st_size > LONGEST_KEPT)
		page.room = 4096 + 8 * (size_t)about.st_size;
	else
		page.room = 4096 + 8 * LONGEST_KEPT;
	page.at = (char *)malloc(page.room);
	if (!page.at)
		return answer(503, "There is no memory now.\n");
	int status = 0;
	if (fresh || !take_kept(name, &about, &page)) {
		char *document = read_file(path, &about);
		status = document ? transform(document, (size_t)about.st_size, &page) : 404;
		free(document);
		if (!status && !fresh)
			keep(name, &about, &page);
	}
	int failed;
	if (status == 404) {
		failed = answer(404, "The page cannot be read.\n");
	} else {
		if (status)
			cgi_status(status);
		else
			cgi_header("Content-Type", "text/html; charset=utf-8");
		failed = cgi_write(page.at, page.size) < 0;
	}
	free(page.at);
	return failed;
}
