/* Text to words and signs. A word is kept as it was written, with its quotes: `expand` takes them
   away. */
#include "sh.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

/* Of `$(` and `${` in each other. */
enum { DEEPEST = 64 };

/* The ends below are behind what is asked for; SIZE_MAX: it is not closed. */

/* From behind a double quote. */
size_t quoted_end(const char *text, size_t at)
{
	while (text[at] != '"') {
		if (!text[at] || (text[at] == '\\' && !text[at + 1]))
			return SIZE_MAX;
		if (text[at] == '\\')
			at += 2;
		else if (text[at] == '$' || text[at] == '`')
			at = dollar_end(text, at);
		else
			at++;
		if (at == SIZE_MAX)
			return at;
	}
	return at + 1;
}

/* From one of `'`, `"`, `\`, `$`, `` ` `` on, which is skipped with what belongs to it; any other is
   one byte. */
static size_t piece_end(const char *text, size_t at)
{
	switch (text[at]) {
	case '\'': {
		const char *end = strchr(text + at + 1, '\'');
		return end ? (size_t)(end - text) + 1 : SIZE_MAX;
	}
	case '"':
		return quoted_end(text, at + 1);
	case '\\':
		return text[at + 1] ? at + 2 : SIZE_MAX;
	case '$':
	case '`':
		return dollar_end(text, at);
	default:
		return at + 1;
	}
}

/* The end of `$(...)`, behind its beginning: commands are taken apart to find it, since a `)` may be
   one of `case`, in a comment or in a document. */
static size_t command_end(const char *text, size_t at, int *wrong)
{
	struct arena arena = {0};
	struct lexer lexer = {.arena = &arena, .text = text, .at = at};
	int closed = parse_inside(&lexer);
	arena_clear(&arena);
	*wrong = lexer.wrong != NULL;
	return closed ? lexer.at : SIZE_MAX;
}

/* Behind the sign that closes what was opened before, by counting. */
static size_t counted_end(const char *text, size_t at, char open, char close)
{
	for (int depth = 1; depth;) {
		if (!text[at])
			return SIZE_MAX;
		depth += open == '(' && text[at] == '(';
		depth -= text[at] == close;
		at = piece_end(text, at);
		if (at == SIZE_MAX)
			return at;
	}
	return at;
}

static size_t bracket_end(const char *text, size_t at)
{
	char open = text[at + 1];
	if (open == '{')
		return counted_end(text, at + 2, open, '}');
	if (text[at + 2] == '(') {
		size_t end = counted_end(text, at + 2, open, ')');
		/* A sum, or a command that begins with parentheses. */
		if (end == SIZE_MAX || text[end - 2] == ')')
			return end;
	}
	int wrong;
	size_t end = command_end(text, at + 2, &wrong);
	/* What is wrong there is said when it is run. */
	return wrong ? counted_end(text, at + 2, open, ')') : end;
}

/* From `$` or `` ` `` on. */
size_t dollar_end(const char *text, size_t at)
{
	static int depth;
	if (text[at] == '`') {
		for (at++; text[at] != '`'; at++)
			if (!text[at] || (text[at] == '\\' && !text[++at]))
				return SIZE_MAX;
		return at + 1;
	}
	if (text[at + 1] != '(' && text[at + 1] != '{')
		return at + 1;
	if (depth == DEEPEST)
		return SIZE_MAX;
	depth++;
	size_t end = bracket_end(text, at);
	depth--;
	return end;
}

size_t word_end(const char *text, size_t at)
{
	while (text[at] && !strchr(" \t\n;&|<>()", text[at])) {
		at = piece_end(text, at);
		if (at == SIZE_MAX)
			return at;
	}
	return at;
}

/* A document's end is a line that is this word, without its quotes. */
static void take_document(struct lexer *lexer, struct redirect *redirect)
{
	const char *word = redirect->word, *text = lexer->text;
	int dash = word[0] == '-';
	char *end, *to;
	end = keep(lexer->arena, strlen(word) + 1);
	to = end;
	for (const char *from = word + dash; *from; from++)
		if (!strchr("'\"\\", *from))
			*to++ = *from;
	if (strpbrk(word, "'\"\\"))
		redirect->direction = DOCUMENT_AS_IS;
	char *body = keep(lexer->arena, strlen(text + lexer->at) + 1);
	size_t length = 0, ends = strlen(end);
	for (;;) {
		const char *line = text + lexer->at;
		if (!*line) {
			lexer->open = 1;
			break;
		}
		if (dash)
			line += strspn(line, "\t");
		size_t here = strcspn(line, "\n");
		lexer->at = line - text + here + (line[here] == '\n');
		if (here == ends && !memcmp(line, end, ends))
			break;
		memcpy(body + length, line, here);
		length += here;
		body[length++] = '\n';
	}
	redirect->word = body;
}

void expect_document(struct lexer *lexer, struct redirect *redirect)
{
	if (lexer->waits == sizeof lexer->waiting / sizeof *lexer->waiting)
		lexer->wrong = "too many documents";
	else
		lexer->waiting[lexer->waits++] = redirect;
}

static const char *const SIGNS[] = {"<<-", "&&", "||", ";;", "<<", ">>", "<&", ">&", "<>", ">|",
				    "&", "|", ";", "<", ">", "(", ")"};

/* The next one, in `token` and `word`. */
void lex(struct lexer *lexer)
{
	const char *text = lexer->text;
	for (;;) {
		lexer->at += strspn(text + lexer->at, " \t");
		if (text[lexer->at] == '\\' && text[lexer->at + 1] == '\n')
			lexer->at += 2;
		else
			break;
	}
	if (text[lexer->at] == '#')
		lexer->at += strcspn(text + lexer->at, "\n");
	const char *here = text + lexer->at;
	lexer->word = "newline";
	if (!*here) {
		/* Without its documents a line is not whole. */
		lexer->open |= lexer->waits > 0;
		lexer->token = END;
		return;
	}
	if (*here == '\n') {
		lexer->at++;
		for (int each = 0; each < lexer->waits; each++)
			take_document(lexer, lexer->waiting[each]);
		lexer->waits = 0;
		lexer->token = NEWLINE;
		return;
	}
	for (size_t each = 0; each < sizeof SIGNS / sizeof *SIGNS; each++) {
		size_t length = strlen(SIGNS[each]);
		if (!strncmp(here, SIGNS[each], length)) {
			lexer->at += length;
			lexer->token = SIGN;
			lexer->word = (char *)SIGNS[each];
			return;
		}
	}
	size_t end = word_end(text, lexer->at);
	if (end == SIZE_MAX) {
		lexer->open = 1;
		lexer->token = END;
		return;
	}
	lexer->word = keep_text(lexer->arena, here, end - lexer->at);
	lexer->at = end;
	int digits = strspn(lexer->word, "0123456789") == strlen(lexer->word);
	lexer->token = digits && (text[end] == '<' || text[end] == '>') ? NUMBER : WORD;
}
