/* See xml.h. Each function reads one thing of the grammar, and leaves the reader behind it. */
#include "xml.h"

#include <string.h>
#include <strings.h>

struct reader {
	const char *begin, *at, *end;
	const struct xml_events *events;
	void *to;
	const char *reason;
	struct xml_text open[XML_DEPTH];
	size_t depth;
};

#define UNREADABLE (-1)

static int wrong(struct reader *reader, const char *reason)
{
	reader->reason = reason;
	return UNREADABLE;
}

static size_t left(const struct reader *reader)
{
	return (size_t)(reader->end - reader->at);
}

/* Whether this comes next; then it is behind the reader. */
static int skip(struct reader *reader, const char *text)
{
	size_t size = strlen(text);
	if (left(reader) < size || memcmp(reader->at, text, size))
		return 0;
	reader->at += size;
	return 1;
}

static int is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* How much space was skipped. */
static size_t skip_space(struct reader *reader)
{
	const char *before = reader->at;
	while (reader->at < reader->end && is_space(*reader->at))
		reader->at++;
	return (size_t)(reader->at - before);
}

/* Whether a name may begin with it. What is beyond ASCII is a letter here. */
static int begins_name(unsigned char c)
{
	return (c | 32u) - 'a' < 26u || c == '_' || c == ':' || c >= 0x80;
}

static int is_of_name(unsigned char c)
{
	return begins_name(c) || (unsigned)c - '0' < 10u || c == '-' || c == '.';
}

static int same(struct xml_text a, struct xml_text b)
{
	return a.size == b.size && !memcmp(a.at, b.at, a.size);
}

static int is_character(unsigned long c)
{
	return c == '\t' || c == '\n' || c == '\r' || (c >= 0x20 && c <= 0xd7ff) || (c >= 0xe000 && c <= 0xfffd)
	       || (c >= 0x10000 && c <= 0x10ffff);
}

/* Bytes of the character that stands there, or 0 if it is none that may. */
static size_t character(const char *at, const char *end)
{
	const unsigned char *byte = (const unsigned char *)at;
	size_t room = (size_t)(end - at), size;
	unsigned long c = byte[0], least;
	if (c < 0x80)
		return is_character(c);
	if (c >> 5 == 6)
		size = 2, c &= 31, least = 0x80;
	else if (c >> 4 == 14)
		size = 3, c &= 15, least = 0x800;
	else if (c >> 3 == 30)
		size = 4, c &= 7, least = 0x10000;
	else
		return 0;
	if (room < size)
		return 0;
	for (size_t i = 1; i < size; i++) {
		if (byte[i] >> 6 != 2)
			return 0;
		c = c << 6 | (byte[i] & 63u);
	}
	return c >= least && is_character(c) ? size : 0;
}

/* A name; an empty one if there is none. */
static struct xml_text name(struct reader *reader)
{
	struct xml_text found = {reader->at, 0};
	if (reader->at < reader->end && begins_name((unsigned char)*reader->at))
		while (reader->at < reader->end && is_of_name((unsigned char)*reader->at)) {
			size_t size = character(reader->at, reader->end);
			if (!size)
				break;
			reader->at += size;
		}
	found.size = (size_t)(reader->at - found.at);
	return found;
}

static size_t encode(unsigned long c, char *to)
{
	if (c < 0x80)
		return to[0] = (char)c, 1;
	if (c < 0x800)
		return to[0] = (char)(0xc0 | c >> 6), to[1] = (char)(0x80 | (c & 63)), 2;
	if (c < 0x10000) {
		to[0] = (char)(0xe0 | c >> 12), to[1] = (char)(0x80 | (c >> 6 & 63)), to[2] = (char)(0x80 | (c & 63));
		return 3;
	}
	to[0] = (char)(0xf0 | c >> 18), to[1] = (char)(0x80 | (c >> 12 & 63));
	to[2] = (char)(0x80 | (c >> 6 & 63)), to[3] = (char)(0x80 | (c & 63));
	return 4;
}

/* What `&…;` at `at` means: how many bytes it has, or 0 with a reason. */
static size_t reference(const char *at, const char *end, char to[4], size_t *size, const char **reason)
{
	static const struct {
		const char *text;
		char means;
	} known[] = {{"&lt;", '<'}, {"&gt;", '>'}, {"&amp;", '&'}, {"&quot;", '"'}, {"&apos;", '\''}};
	size_t room = (size_t)(end - at);
	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
		size_t length = strlen(known[i].text);
		if (room >= length && !memcmp(at, known[i].text, length)) {
			to[0] = known[i].means;
			*size = 1;
			return length;
		}
	}
	if (room < 3 || at[1] != '#') {
		*reason = "a reference to an entity that is not known, or a `&` by itself";
		return 0;
	}
	unsigned base = at[2] == 'x' ? 16 : 10;
	const char *digit = at + (base == 16 ? 3 : 2), *first = digit;
	unsigned long value = 0;
	for (; digit < end && *digit != ';'; digit++) {
		unsigned letter = (unsigned char)*digit, figure = letter - '0', hexadecimal = (letter | 32u) - 'a';
		unsigned v = figure < 10 ? figure : base == 16 && hexadecimal < 6 ? hexadecimal + 10 : base;
		if (v >= base || value > 0x10ffff) {
			*reason = "a reference to a character that is no number";
			return 0;
		}
		value = value * base + v;
	}
	if (digit == end || digit == first || !is_character(value)) {
		*reason = "a reference to a character that there is not";
		return 0;
	}
	*size = encode(value, to);
	return (size_t)(digit + 1 - at);
}

typedef int put(void *to, const char *at, size_t size);

/* A reference inside text. */
static int refer(struct reader *reader, put *text)
{
	char means[4];
	size_t size, length = reference(reader->at, reader->end, means, &size, &reader->reason);
	if (!length)
		return UNREADABLE;
	reader->at += length;
	return text ? text(reader->to, means, size) : 0;
}

/* Whether `c` is one of a few. */
static inline int is_one_of(char c, const char *few)
{
	for (; *few; few++)
		if (*few == c)
			return 1;
	return 0;
}

/* Characters up to one of `stops`, a line end as XML has it: \r\n and \r are \n. */
static int run(struct reader *reader, const char *stops, put *text)
{
	const char *from = reader->at;
	while (reader->at < reader->end && !is_one_of(*reader->at, stops)) {
		size_t size = *reader->at >= ' ' ? 1 : character(reader->at, reader->end);
		if (!size)
			return wrong(reader, "a character that may not be there, or no UTF-8");
		if (*reader->at == '\r') {
			int status = text && reader->at > from ? text(reader->to, from, (size_t)(reader->at - from)) : 0;
			if (status)
				return status;
			reader->at++;
			if (!(reader->at < reader->end && *reader->at == '\n') && text && (status = text(reader->to, "\n", 1)))
				return status;
			from = reader->at;
			continue;
		}
		reader->at += size;
	}
	return text && reader->at > from ? text(reader->to, from, (size_t)(reader->at - from)) : 0;
}

/* Everything up to `end`, and that. */
static int until(struct reader *reader, const char *end, put *text, const char *reason)
{
	char stops[2] = {end[0], 0};
	for (;;) {
		int status = run(reader, stops, text);
		if (status)
			return status;
		if (reader->at == reader->end)
			return wrong(reader, reason);
		if (skip(reader, end))
			return 0;
		if (text && (status = text(reader->to, reader->at, 1)))
			return status;
		reader->at++;
	}
}

/* A comment, behind its `<!--`. */
static int comment(struct reader *reader)
{
	int status = until(reader, "--", NULL, "a comment without an end");
	if (!status && !skip(reader, ">"))
		return wrong(reader, "`--` inside a comment");
	return status;
}

/* Whether a value in quotation marks comes, one of these, in letters of any size. */
static int is_said(struct reader *reader, const char *const *allowed, size_t count)
{
	char quote = left(reader) ? *reader->at : 0;
	if (quote != '"' && quote != '\'')
		return 0;
	struct xml_text value = {++reader->at, 0};
	while (reader->at < reader->end && *reader->at != quote)
		reader->at++, value.size++;
	if (reader->at++ == reader->end)
		return --reader->at, 0;
	for (size_t i = 0; i < count; i++)
		if (strlen(allowed[i]) == value.size && !strncasecmp(allowed[i], value.at, value.size))
			return 1;
	return 0;
}

/* The declaration, behind its `<?xml`: which version, perhaps in which encoding, and by itself. */
static int declaration(struct reader *reader)
{
	static const char *const versions[] = {"1.0", "1.1"}, *const encodings[] = {"UTF-8", "US-ASCII"}, *const alone[] = {"yes", "no"};
	static const struct {
		const char *key;
		const char *const *allowed;
	} parts[] = {{"version", versions}, {"encoding", encodings}, {"standalone", alone}};
	size_t space = skip_space(reader);
	for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
		if (!space || !skip(reader, parts[i].key)) {
			if (i == 0)
				return wrong(reader, "a declaration without a version");
			continue;
		}
		skip_space(reader);
		if (!skip(reader, "=") || (skip_space(reader), !is_said(reader, parts[i].allowed, 2)))
			return wrong(reader, "a declaration of what is not read here: version 1.0, in UTF-8");
		space = skip_space(reader);
	}
	return skip(reader, "?>") ? 0 : wrong(reader, "a declaration with something else in it");
}

/* An instruction, behind its `<?`. Only a document's first bytes may be its declaration. */
static int instruction(struct reader *reader)
{
	int first = reader->at - 2 == reader->begin;
	struct xml_text target = name(reader);
	if (!target.size)
		return wrong(reader, "an instruction without a name");
	int reserved = target.size == 3 && (target.at[0] | 32) == 'x' && (target.at[1] | 32) == 'm' && (target.at[2] | 32) == 'l';
	if (reserved && (!first || memcmp(target.at, "xml", 3)))
		return wrong(reader, "the declaration `<?xml` is not at the beginning");
	if (reserved)
		return declaration(reader);
	if (!skip_space(reader) && (left(reader) < 2 || memcmp(reader->at, "?>", 2)))
		return wrong(reader, "no space behind the name of an instruction");
	return until(reader, "?>", NULL, "an instruction without an end");
}

/* A document type, behind its `<!DOCTYPE`: skipped, with what is in brackets. */
static int document_type(struct reader *reader)
{
	int inside = 0;
	if (!skip_space(reader) || !name(reader).size)
		return wrong(reader, "a document type without a name");
	while (reader->at < reader->end) {
		int status = 0;
		if (skip(reader, "<!--"))
			status = comment(reader);
		else if (skip(reader, "<?"))
			status = instruction(reader);
		else if (*reader->at == '"' || *reader->at == '\'') {
			char quote[2] = {*reader->at++, 0};
			status = until(reader, quote, NULL, "a text without an end in the document type");
		} else {
			char c = *reader->at++;
			inside += c == '[' ? 1 : c == ']' ? -1 : 0;
			if (c == '>' && inside <= 0)
				return 0;
		}
		if (status)
			return status;
	}
	return wrong(reader, "a document type without an end");
}

/* The attributes and the end of a tag: 1 if it ends the element, too. */
static int attributes(struct reader *reader, struct xml_attributes *all)
{
	all->count = 0;
	for (;;) {
		size_t space = skip_space(reader);
		if (skip(reader, ">"))
			return 0;
		if (skip(reader, "/>"))
			return 1;
		struct xml_text key = name(reader);
		if (!key.size || !space)
			return wrong(reader, "a tag that is none: no name, no space, or no `>`");
		for (size_t i = 0; i < all->count; i++)
			if (same(all->names[i], key))
				return wrong(reader, "an attribute comes twice");
		if (all->count == XML_ATTRIBUTES)
			return wrong(reader, "too many attributes");
		skip_space(reader);
		if (!skip(reader, "="))
			return wrong(reader, "an attribute without a value");
		skip_space(reader);
		const char *quote = skip(reader, "\"") ? "\"&<" : skip(reader, "'") ? "'&<" : NULL;
		if (!quote)
			return wrong(reader, "a value without quotation marks");
		const char *from = reader->at;
		for (;;) {
			int status = run(reader, quote, NULL);
			if (status)
				return status;
			if (reader->at == reader->end || *reader->at == '<')
				return wrong(reader, "a value without an end, or with a `<`");
			if (*reader->at == quote[0])
				break;
			if ((status = refer(reader, NULL)))
				return status;
		}
		all->names[all->count] = key;
		all->values[all->count] = (struct xml_text){from, (size_t)(reader->at - from)};
		all->count++;
		reader->at++;
	}
}

/* A tag that begins an element, behind its `<`. */
static int begin(struct reader *reader)
{
	struct xml_attributes all;
	struct xml_text own = name(reader);
	if (!own.size)
		return wrong(reader, "a `<` that begins nothing");
	if (reader->depth == XML_DEPTH)
		return wrong(reader, "elements nest too deeply");
	int empty = attributes(reader, &all);
	if (empty < 0)
		return empty;
	int status = reader->events->begin(reader->to, own, &all);
	if (!status && empty)
		return reader->events->end(reader->to, own);
	reader->open[reader->depth++] = own;
	return status;
}

/* A tag that ends one, behind its `</`. */
static int end(struct reader *reader)
{
	struct xml_text own = name(reader);
	skip_space(reader);
	if (!reader->depth || !same(reader->open[reader->depth - 1], own) || !skip(reader, ">"))
		return wrong(reader, "a tag ends another element than the last that began");
	reader->depth--;
	return reader->events->end(reader->to, own);
}

/* Text of an element, up to a `<`. */
static int content(struct reader *reader)
{
	for (;;) {
		int status = run(reader, "<&]", reader->events->text);
		if (status || reader->at == reader->end || *reader->at == '<')
			return status;
		if (*reader->at == '&')
			status = refer(reader, reader->events->text);
		else if (skip(reader, "]]>"))
			return wrong(reader, "`]]>` outside of CDATA");
		else {
			status = reader->events->text(reader->to, reader->at, 1);
			reader->at++;
		}
		if (status)
			return status;
	}
}

static int document(struct reader *reader)
{
	int roots = 0, typed = 0, status = 0;
	skip(reader, "\xef\xbb\xbf");
	reader->begin = reader->at;
	while (!status) {
		if (!reader->depth) {
			skip_space(reader);
			if (reader->at == reader->end)
				return roots ? 0 : wrong(reader, "no element");
			if (*reader->at != '<')
				return wrong(reader, "text outside of the element");
		} else if (reader->at == reader->end) {
			return wrong(reader, "the document ends inside of an element");
		}
		if (skip(reader, "<!--")) {
			status = comment(reader);
		} else if (skip(reader, "<?")) {
			status = instruction(reader);
		} else if (reader->depth && skip(reader, "<![CDATA[")) {
			status = until(reader, "]]>", reader->events->text, "CDATA without an end");
		} else if (!reader->depth && !roots && !typed && skip(reader, "<!DOCTYPE")) {
			typed = 1;
			status = document_type(reader);
		} else if (skip(reader, "</")) {
			status = end(reader);
		} else if (skip(reader, "<")) {
			if (!reader->depth && roots++)
				return wrong(reader, "a second element");
			status = begin(reader);
		} else {
			status = content(reader);
		}
	}
	return status;
}

int xml_read(const char *text, size_t size, const struct xml_events *events, void *to, struct xml_error *error)
{
	struct reader reader = {.begin = text, .at = text, .end = text + size, .events = events, .to = to};
	int status = document(&reader);
	if (status == UNREADABLE && reader.reason) {
		error->reason = reader.reason;
		error->line = 1;
		for (const char *at = text; at < reader.at; at++)
			error->line += *at == '\n';
	}
	return status;
}

int xml_value(struct xml_text value, int (*text)(void *to, const char *at, size_t size), void *to)
{
	const char *at = value.at, *end = at + value.size;
	int status = 0;
	while (at < end && !status) {
		const char *from = at, *reason;
		while (at < end && *at != '&' && !is_space(*at))
			at++;
		if (at > from && (status = text(to, from, (size_t)(at - from))))
			break;
		if (at == end)
			break;
		char means[4] = " ";
		size_t size = 1, length = 1;
		/* White space of any kind is a space, and a line end is one. */
		if (*at == '&')
			length = reference(at, end, means, &size, &reason);
		else if (*at == '\r' && end - at > 1 && at[1] == '\n')
			length = 2;
		if (!length)
			return UNREADABLE;
		at += length;
		status = text(to, means, size);
	}
	return status;
}
