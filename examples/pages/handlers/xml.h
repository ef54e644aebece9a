/* xml.h: a reader of XML 1.0 documents in UTF-8, which calls functions for what it finds.
 *
 * It checks what a document must be to be well-formed: names, tags that belong together, attributes
 * that come once, references, characters. It knows no DTD: one is skipped, and what it might declare
 * (entities, defaults of attributes) is not known. Namespaces are letters of a name.
 *
 * It takes no memory but the stack's, never more than XML_DEPTH elements are open, and it believes
 * nothing of the text. */
#ifndef XML_H
#define XML_H

#include <stddef.h>

/* Elements that may be open at once, and attributes of one. */
#define XML_DEPTH 64
#define XML_ATTRIBUTES 32

/* A part of the document. */
struct xml_text {
	const char *at;
	size_t size;
};

/* Attributes of an element, in their order; their values as they stand in the document, with
 * references: xml_value puts out what they mean. */
struct xml_attributes {
	size_t count;
	struct xml_text names[XML_ATTRIBUTES], values[XML_ATTRIBUTES];
};

/* What is called for what is found. Any of them may return something else than 0, which ends the
 * reading with that. Text comes in pieces, and is what it means: no references in it. */
struct xml_events {
	int (*begin)(void *to, struct xml_text name, const struct xml_attributes *attributes);
	int (*end)(void *to, struct xml_text name);
	int (*text)(void *to, const char *at, size_t size);
};

/* Why a document was not read: a line, from 1, and a reason. */
struct xml_error {
	unsigned long line;
	const char *reason;
};

/* Reads a document. 0 if all of it was well-formed; -1 with `error` filled in; or what a function
 * returned. */
int xml_read(const char *document, size_t size, const struct xml_events *events, void *to, struct xml_error *error);

/* Puts out what the value of an attribute means, in pieces. It was checked by xml_read. */
int xml_value(struct xml_text value, int (*text)(void *to, const char *at, size_t size), void *to);

#endif
