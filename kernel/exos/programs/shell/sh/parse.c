/* Words and signs to a tree. */
#include "sh.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH = 200 };

static struct node *and_or(struct lexer *lexer);

static struct node *fail(struct lexer *lexer, const char *why)
{
	if (lexer->token == END)
		lexer->open = 1;
	else if (!lexer->wrong)
		lexer->wrong = why;
	return NULL;
}

static int stops(const struct lexer *lexer)
{
	return lexer->open || lexer->wrong;
}

static struct node *make(struct lexer *lexer, enum kind kind)
{
	struct node *node = keep(lexer->arena, sizeof *node);
	node->kind = kind;
	return node;
}

static int is_sign(const struct lexer *lexer, const char *sign)
{
	return lexer->token == SIGN && !strcmp(lexer->word, sign);
}

static int is_word(const struct lexer *lexer, const char *word)
{
	return lexer->token == WORD && !strcmp(lexer->word, word);
}

static int is_name(const char *word, size_t length)
{
	if (!length || isdigit((unsigned char)*word))
		return 0;
	for (; length; length--, word++)
		if (!isalnum((unsigned char)*word) && *word != '_')
			return 0;
	return 1;
}

size_t is_assignment(const char *word)
{
	size_t length = strcspn(word, "=");
	return word[length] && is_name(word, length) ? length + 1 : 0;
}

static void skip_newlines(struct lexer *lexer)
{
	while (lexer->token == NEWLINE && !stops(lexer))
		lex(lexer);
}

/* The word that has to come now. */
static int expect(struct lexer *lexer, const char *word)
{
	if (stops(lexer))
		return 0;
	if (!is_word(lexer, word) && !is_sign(lexer, word)) {
		fail(lexer, word);
		return 0;
	}
	lex(lexer);
	return 1;
}

/* Adds a word to a node. */
static void add(struct lexer *lexer, struct node *node, char *word)
{
	if ((node->count & (node->count + 1)) == 0) {
		char **more = keep(lexer->arena, (2 * node->count + 2) * sizeof *more);
		if (node->count)
			memcpy(more, node->words, node->count * sizeof *more);
		node->words = more;
	}
	node->words[node->count++] = word;
}

/* A redirection, if there is one; 0: there is none. */
static int redirection(struct lexer *lexer, struct node *node)
{
	static const struct { const char *sign; enum direction direction; int number; } ALL[] = {
		{"<", FROM, 0}, {">", INTO, 1}, {">|", OVER, 1}, {">>", BEHIND, 1}, {"<>", BOTH_WAYS, 0},
		{"<&", SAME, 0}, {">&", SAME, 1}, {"<<", DOCUMENT, 0}, {"<<-", DOCUMENT, 0},
	};
	int number = -1;
	if (lexer->token == NUMBER) {
		number = atoi(lexer->word);
		lex(lexer);
	}
	if (lexer->token != SIGN)
		return 0;
	for (size_t each = 0; each < sizeof ALL / sizeof *ALL; each++) {
		if (strcmp(lexer->word, ALL[each].sign))
			continue;
		int dash = !strcmp(lexer->word, "<<-");
		lex(lexer);
		if (lexer->token != WORD && lexer->token != NUMBER) {
			fail(lexer, "a name is missing behind < or >");
			return 0;
		}
		struct redirect *redirect = keep(lexer->arena, sizeof *redirect), **last = &node->redirects;
		redirect->direction = ALL[each].direction;
		redirect->number = number < 0 ? ALL[each].number : number;
		redirect->word = lexer->word;
		if (redirect->direction == DOCUMENT) {
			if (dash) {
				redirect->word = keep(lexer->arena, strlen(lexer->word) + 2);
				strcat(strcpy(redirect->word, "-"), lexer->word);
			}
			expect_document(lexer, redirect);
		}
		while (*last)
			last = &(*last)->next;
		*last = redirect;
		lex(lexer);
		return 1;
	}
	return 0;
}

static int ends_list(const struct lexer *lexer)
{
	static const char *const WORDS[] = {"then", "else", "elif", "fi", "do", "done", "esac", "}"};
	if (is_sign(lexer, ")") || is_sign(lexer, ";;"))
		return 1;
	for (size_t each = 0; each < sizeof WORDS / sizeof *WORDS; each++)
		if (is_word(lexer, WORDS[each]))
			return 1;
	return 0;
}

/* Commands with `;`, `&` and, if they stand in something, newlines between them. */
static struct node *list(struct lexer *lexer, int inside)
{
	struct node *list = make(lexer, SEQUENCE), **last = &list->first;
	for (;;) {
		if (inside)
			skip_newlines(lexer);
		if (stops(lexer) || ends_list(lexer) || lexer->token == NEWLINE)
			break;
		struct node *command = and_or(lexer);
		if (!command)
			break;
		if (is_sign(lexer, "&")) {
			struct node *background = make(lexer, BACKGROUND);
			background->first = command;
			command = background;
		}
		*last = command;
		last = &command->next;
		if (is_sign(lexer, "&") || is_sign(lexer, ";"))
			lex(lexer);
		else if (!inside || lexer->token != NEWLINE)
			break;
	}
	if (inside && lexer->token == END && !stops(lexer))
		lexer->open = 1;
	if (inside && !list->first && !stops(lexer))
		return fail(lexer, "a command is missing");
	return list;
}

static struct node *if_command(struct lexer *lexer)
{
	struct node *node = make(lexer, IF);
	lex(lexer);
	node->first = list(lexer, 1);
	expect(lexer, "then");
	node->second = list(lexer, 1);
	if (!stops(lexer) && is_word(lexer, "elif"))
		node->third = if_command(lexer);
	else if (!stops(lexer) && is_word(lexer, "else")) {
		lex(lexer);
		node->third = list(lexer, 1);
		expect(lexer, "fi");
	} else {
		expect(lexer, "fi");
	}
	return node;
}

static struct node *while_command(struct lexer *lexer, enum kind kind)
{
	struct node *node = make(lexer, kind);
	lex(lexer);
	node->first = list(lexer, 1);
	expect(lexer, "do");
	node->second = list(lexer, 1);
	expect(lexer, "done");
	return node;
}

static struct node *for_command(struct lexer *lexer)
{
	struct node *node = make(lexer, FOR);
	lex(lexer);
	if (lexer->token != WORD || !is_name(lexer->word, strlen(lexer->word)))
		return fail(lexer, "a name is missing behind `for`");
	node->name = lexer->word;
	lex(lexer);
	skip_newlines(lexer);
	if (is_word(lexer, "in")) {
		node->special = 1;
		for (lex(lexer); lexer->token == WORD || lexer->token == NUMBER; lex(lexer))
			add(lexer, node, lexer->word);
	}
	if (is_sign(lexer, ";"))
		lex(lexer);
	skip_newlines(lexer);
	expect(lexer, "do");
	node->first = list(lexer, 1);
	expect(lexer, "done");
	return node;
}

static struct node *case_command(struct lexer *lexer)
{
	struct node *node = make(lexer, CASE), **last = &node->first;
	lex(lexer);
	if (lexer->token != WORD && lexer->token != NUMBER)
		return fail(lexer, "a word is missing behind `case`");
	node->name = lexer->word;
	lex(lexer);
	skip_newlines(lexer);
	expect(lexer, "in");
	for (;;) {
		skip_newlines(lexer);
		if (stops(lexer) || is_word(lexer, "esac"))
			break;
		struct node *branch = make(lexer, SEQUENCE);
		if (is_sign(lexer, "("))
			lex(lexer);
		while (lexer->token == WORD || lexer->token == NUMBER) {
			add(lexer, branch, lexer->word);
			lex(lexer);
			if (!is_sign(lexer, "|"))
				break;
			lex(lexer);
		}
		expect(lexer, ")");
		skip_newlines(lexer);
		if (!stops(lexer) && !is_sign(lexer, ";;") && !is_word(lexer, "esac"))
			branch->first = list(lexer, 1);
		*last = branch;
		last = &branch->next;
		if (!is_sign(lexer, ";;"))
			break;
		lex(lexer);
	}
	expect(lexer, "esac");
	return node;
}

/* Words, assignments and redirections; or a function. */
static struct node *simple(struct lexer *lexer)
{
	struct node *node = make(lexer, COMMAND);
	while (!stops(lexer)) {
		if (redirection(lexer, node))
			continue;
		if (lexer->token != WORD && lexer->token != NUMBER)
			break;
		if (node->special == node->count && is_assignment(lexer->word))
			node->special++;
		add(lexer, node, lexer->word);
		lex(lexer);
		if (node->count == 1 && !node->redirects && is_sign(lexer, "(")) {
			char *name = node->words[0];
			lex(lexer);
			if (!expect(lexer, ")") || !is_name(name, strlen(name)))
				return fail(lexer, "(");
			skip_newlines(lexer);
			node = make(lexer, FUNCTION);
			node->name = name;
			node->first = and_or(lexer);
			return node;
		}
	}
	if (!node->count && !node->redirects)
		return fail(lexer, lexer->word);
	return node;
}

/* Something in parentheses or braces, a loop, or a simple command. */
static struct node *command(struct lexer *lexer)
{
	struct node *node;
	static int depth;
	if (++depth > DEPTH)
		node = fail(lexer, "too deep");
	else if (is_word(lexer, "if"))
		node = if_command(lexer);
	else if (is_word(lexer, "while"))
		node = while_command(lexer, WHILE);
	else if (is_word(lexer, "until"))
		node = while_command(lexer, UNTIL);
	else if (is_word(lexer, "for"))
		node = for_command(lexer);
	else if (is_word(lexer, "case"))
		node = case_command(lexer);
	else if (is_word(lexer, "{") || is_sign(lexer, "(")) {
		int braces = is_word(lexer, "{");
		node = make(lexer, braces ? GROUP : SUBSHELL);
		lex(lexer);
		node->first = list(lexer, 1);
		expect(lexer, braces ? "}" : ")");
	} else if (ends_list(lexer)) {
		node = fail(lexer, lexer->word);
	} else {
		depth--;
		return simple(lexer);
	}
	depth--;
	while (!stops(lexer) && redirection(lexer, node))
		continue;
	return node;
}

static struct node *pipeline(struct lexer *lexer)
{
	if (is_word(lexer, "!") || is_word(lexer, "time")) {
		struct node *node = make(lexer, is_word(lexer, "!") ? NOT : TIMED);
		lex(lexer);
		if (node->kind == TIMED && is_word(lexer, "-p")) {
			node->special = 1;
			lex(lexer);
		}
		node->first = pipeline(lexer);
		return node;
	}
	struct node *first = command(lexer);
	if (!is_sign(lexer, "|"))
		return first;
	struct node *all = make(lexer, PIPELINE), *last = first;
	all->first = first;
	while (!stops(lexer) && last && is_sign(lexer, "|")) {
		lex(lexer);
		skip_newlines(lexer);
		last->next = command(lexer);
		last = last->next;
	}
	return all;
}

static struct node *and_or(struct lexer *lexer)
{
	struct node *node = pipeline(lexer);
	while (!stops(lexer) && node && (is_sign(lexer, "&&") || is_sign(lexer, "||"))) {
		struct node *both = make(lexer, is_sign(lexer, "&&") ? AND : OR);
		lex(lexer);
		skip_newlines(lexer);
		both->first = node;
		both->second = pipeline(lexer);
		node = both;
	}
	return node;
}

/* What stands on a line; it may go on over several. */
struct node *parse_line(struct lexer *lexer)
{
	lex(lexer);
	struct node *node = list(lexer, 0);
	if (!stops(lexer) && lexer->token != NEWLINE && lexer->token != END)
		fail(lexer, lexer->word);
	if (!stops(lexer) && lexer->token == END)
		lexer->open = 1;
	return stops(lexer) ? NULL : node;
}

int parse_inside(struct lexer *lexer)
{
	lex(lexer);
	skip_newlines(lexer);
	if (!is_sign(lexer, ")"))
		list(lexer, 1);
	return !stops(lexer) && is_sign(lexer, ")");
}
