/* [ and test. */
#include "sh.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct words {
	char **word;
	int at, count;
	int wrong;
};

static int any(struct words *words);

static const char *peek(const struct words *words, int ahead)
{
	return words->at + ahead < words->count ? words->word[words->at + ahead] : "";
}

static long long number(struct words *words, const char *text)
{
	char *end;
	long long value = strtoll(text, &end, 10);
	int digits = end != text;
	if (!digits || end[strspn(end, " \t\n")]) {
		complain(text, "it is no number");
		words->wrong = 1;
	}
	return value;
}

static int of_file(char what, const char *name)
{
	struct stat status;
	if (what == 'L' || what == 'h')
		return lstat(name, &status) == 0 && S_ISLNK(status.st_mode);
	if (what == 't')
		return isatty(atoi(name));
	if (stat(name, &status))
		return 0;
	switch (what) {
	case 'f': return S_ISREG(status.st_mode);
	case 'd': return S_ISDIR(status.st_mode);
	case 'c': return S_ISCHR(status.st_mode);
	case 'p': return S_ISFIFO(status.st_mode);
	case 's': return status.st_size > 0;
	case 'r': return access(name, R_OK) == 0;
	case 'w': return access(name, W_OK) == 0;
	case 'x': return access(name, X_OK) == 0;
	default: return 1;
	}
}

static long long changed(const char *name)
{
	struct stat status;
	return stat(name, &status) ? -1 : (long long)status.st_mtime;
}

static int compared(struct words *words, const char *left, const char *sign, const char *right)
{
	static const char *const NUMBERS[] = {"-eq", "-ne", "-lt", "-le", "-gt", "-ge"};
	if (!strcmp(sign, "="))
		return !strcmp(left, right);
	if (!strcmp(sign, "!="))
		return strcmp(left, right) != 0;
	if (!strcmp(sign, "<"))
		return strcmp(left, right) < 0;
	if (!strcmp(sign, ">"))
		return strcmp(left, right) > 0;
	if (!strcmp(sign, "-nt"))
		return changed(left) > changed(right);
	if (!strcmp(sign, "-ot"))
		return changed(left) < changed(right);
	for (int each = 0; each < 6; each++) {
		if (strcmp(sign, NUMBERS[each]))
			continue;
		long long a = number(words, left), b = number(words, right);
		return each == 0 ? a == b : each == 1 ? a != b : each == 2 ? a < b : each == 3 ? a <= b : each == 4 ? a > b : a >= b;
	}
	return -1;
}

static int one(struct words *words)
{
	const char *word = peek(words, 0), *next = peek(words, 1);
	int left = words->count - words->at;
	if (left >= 3) {
		int holds = compared(words, word, next, peek(words, 2));
		if (holds >= 0) {
			words->at += 3;
			return holds;
		}
	}
	if (left >= 2 && !strcmp(word, "!")) {
		words->at++;
		return !one(words);
	}
	if (left >= 3 && !strcmp(word, "(")) {
		words->at++;
		int holds = any(words);
		if (strcmp(peek(words, 0), ")"))
			words->wrong = 1;
		words->at++;
		return holds;
	}
	if (left >= 2 && word[0] == '-' && word[1] && !word[2] && strchr("nzedfLhrwxsctp", word[1])) {
		words->at += 2;
		return word[1] == 'n' ? *next != 0 : word[1] == 'z' ? !*next : of_file(word[1], next);
	}
	words->at++;
	return *word != 0;
}

static int both(struct words *words)
{
	int holds = one(words);
	while (!strcmp(peek(words, 0), "-a") && words->at < words->count) {
		words->at++;
		holds &= one(words);
	}
	return holds;
}

static int any(struct words *words)
{
	int holds = both(words);
	while (!strcmp(peek(words, 0), "-o") && words->at < words->count) {
		words->at++;
		holds |= both(words);
	}
	return holds;
}

int test_command(char **word, int count)
{
	struct words words = {.word = word, .at = 1, .count = count};
	if (!strcmp(word[0], "[")) {
		if (strcmp(word[count - 1], "]")) {
			complain("[", "`]` is missing");
			return 2;
		}
		words.count--;
	}
	if (words.at == words.count)
		return 1;
	int holds = any(&words);
	if (!words.wrong && words.at < words.count) {
		complain(words.word[words.at], "not expected here");
		words.wrong = 1;
	}
	return words.wrong ? 2 : !holds;
}
