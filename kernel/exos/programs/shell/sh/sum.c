/* $((...)): numbers of 64 bits, names, C's operators but `++`, `--` and the comma. */
#include "sh.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct place {
	const char *at;
	const char *wrong;
	int depth;
	/* Within what `&&`, `||` or `?` pass by: nothing is stored there, and nothing divided. */
	int passed;
};

static const struct { const char *sign; int level; } SIGNS[] = {
	{"||", 1}, {"&&", 2}, {"==", 6}, {"!=", 6}, {"<<", 8}, {">>", 8}, {"<=", 7}, {">=", 7},
	{"|", 3}, {"^", 4}, {"&", 5}, {"<", 7}, {">", 7}, {"+", 9}, {"-", 9}, {"*", 10}, {"/", 10}, {"%", 10},
};

static long long level(struct place *place, int least);
static long long choice(struct place *place);

static void skip(struct place *place)
{
	place->at += strspn(place->at, " \t\n");
}

static long long wrong(struct place *place, const char *why)
{
	if (!place->wrong)
		place->wrong = why;
	return 0;
}

static long long apply(struct place *place, const char *sign, long long left, long long right);

/* A variable's value, or that which is stored there now. */
static long long named(struct place *place, const char *name)
{
	const char *text = variable(name);
	long long value = text ? strtoll(text, NULL, 0) : 0;
	char sign[3] = "", digits[24];
	skip(place);
	const char *at = place->at;
	size_t length = strcspn(at, "=");
	/* `=`, but not `==`; what may stand before it is a sign. */
	if (!at[length] || length > 2 || at[length + 1] == '=')
		return value;
	memcpy(sign, at, length);
	if (length == 1 ? !strchr("*/%+-&^|", *sign) : length == 2 && strcmp(sign, "<<") && strcmp(sign, ">>"))
		return value;
	place->at += length + 1;
	long long right = choice(place);
	if (!length)
		value = right;
	else
		value = apply(place, sign, value, right);
	snprintf(digits, sizeof digits, "%lld", value);
	if (!place->passed && !place->wrong)
		set_variable(name, digits);
	return value;
}

static long long one(struct place *place)
{
	skip(place);
	const char *at = place->at;
	if (++place->depth > 100)
		return wrong(place, "too deep");
	long long value = 0;
	if (*at && strchr("!~-+", *at)) {
		place->at++;
		value = one(place);
		value = *at == '!' ? !value : *at == '~' ? ~value : *at == '-' ? (long long)-(unsigned long long)value : value;
	} else if (*at == '(') {
		place->at++;
		value = choice(place);
		skip(place);
		if (*place->at == ')')
			place->at++;
		else
			wrong(place, "a parenthesis is open");
	} else if (isdigit((unsigned char)*at)) {
		value = strtoll(at, (char **)&place->at, 0);
	} else if (isalpha((unsigned char)*at) || *at == '_') {
		size_t length = 0;
		while (isalnum((unsigned char)at[length]) || at[length] == '_')
			length++;
		char *name = copied(at, length);
		place->at += length;
		value = named(place, name);
		free(name);
	} else {
		wrong(place, "a number is missing");
	}
	place->depth--;
	return value;
}

static long long apply(struct place *place, const char *sign, long long left, long long right)
{
	unsigned long long a = left, b = right;
	switch (sign[0] + (sign[1] ? 256 * sign[1] : 0)) {
	case '+': return a + b;
	case '-': return a - b;
	case '*': return a * b;
	case '/': case '%':
		if (right == 0)
			return place->passed ? 0 : wrong(place, "division by zero");
		if (right == -1)
			return *sign == '/' ? (long long)-a : 0;
		return *sign == '/' ? left / right : left % right;
	case '|': return a | b;
	case '^': return a ^ b;
	case '&': return a & b;
	case '<': return left < right;
	case '>': return left > right;
	case '<' + 256 * '=': return left <= right;
	case '>' + 256 * '=': return left >= right;
	case '=' + 256 * '=': return left == right;
	case '!' + 256 * '=': return left != right;
	case '<' + 256 * '<': return a << (b & 63);
	case '>' + 256 * '>': return left >> (b & 63);
	case '&' + 256 * '&': return left && right;
	default: return left || right;
	}
}

static long long level(struct place *place, int least)
{
	long long left = one(place);
	for (;;) {
		size_t each = 0, count = sizeof SIGNS / sizeof *SIGNS;
		skip(place);
		while (each < count && strncmp(place->at, SIGNS[each].sign, strlen(SIGNS[each].sign)))
			each++;
		if (each == count || SIGNS[each].level < least || place->wrong)
			return left;
		/* `a += 1` is none of a sum. */
		if (SIGNS[each].level != 6 && SIGNS[each].level != 7 && place->at[strlen(SIGNS[each].sign)] == '=')
			return left;
		place->at += strlen(SIGNS[each].sign);
		int passes = SIGNS[each].level == 1 ? left != 0 : SIGNS[each].level == 2 && left == 0;
		place->passed += passes;
		long long right = level(place, SIGNS[each].level + 1);
		place->passed -= passes;
		left = apply(place, SIGNS[each].sign, left, right);
	}
}

/* With `?` and `:`, whose right side may have others. */
static long long choice(struct place *place)
{
	long long which = level(place, 1);
	skip(place);
	if (*place->at != '?' || place->wrong)
		return which;
	if (++place->depth > 100)
		return wrong(place, "too deep");
	place->at++;
	place->passed += !which;
	long long yes = choice(place);
	place->passed -= !which;
	skip(place);
	if (*place->at != ':')
		return wrong(place, "`:` is missing");
	place->at++;
	place->passed += which != 0;
	long long no = choice(place);
	place->passed -= which != 0;
	place->depth--;
	return which ? yes : no;
}

long long sum(const char *text)
{
	struct place place = {.at = text};
	long long value = choice(&place);
	skip(&place);
	if (*place.at && !place.wrong)
		place.wrong = "it is no number";
	if (place.wrong) {
		complain(text, place.wrong);
		shell.failed = 1;
		return 0;
	}
	return value;
}
