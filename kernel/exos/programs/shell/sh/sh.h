/* What the parts of the shell know of each other.

	memory.c    lists of strings, and what lives as long as a command
	input.c     lines: of the terminal, a file, a string
	lex.c       text to words and signs
	parse.c     words and signs to a tree
	expand.c    a word as it was written to fields
	sum.c       $((...))
	variables.c names and values
	run.c       the tree, run
	redirect.c  < and >, here-documents
	builtin.c   commands that change the shell itself
	options.c   set and getopts
	trap.c      signals, and how the shell ends
	test.c      [ and test
	edit.c      lines with history, at a terminal */
#ifndef SH_H
#define SH_H

#include <stddef.h>
#include <sys/types.h>

/* Strings, each its own to free. */
struct list {
	char **item;
	int count, room;
};

void *get(size_t size);
char *copied(const char *text, size_t length);
void list_add(struct list *list, char *item);
void list_clear(struct list *list);

/* What a tree is made of: freed all at once. */
struct arena {
	struct block *blocks;
};

void *keep(struct arena *arena, size_t size);
char *keep_text(struct arena *arena, const char *text, size_t length);
void arena_clear(struct arena *arena);

/* Lines. `next` gives one without its newline, to be freed; NULL: there is none. `again` says that
   it goes on with a command that has begun. */
struct input {
	char *(*next)(struct input *input, int again);
	int file;
	const char *text;
};

struct input input_of_file(int file);
struct input input_of_text(const char *text);
struct input input_of_terminal(void);
char *edited_line(const char *prompt);

/* A redirection. A document's text stands in `word`. */
enum direction { FROM, INTO, OVER, BEHIND, BOTH_WAYS, SAME, DOCUMENT, DOCUMENT_AS_IS };

struct redirect {
	struct redirect *next;
	enum direction direction;
	int number;
	char *word;
};

enum kind {
	COMMAND, PIPELINE, NOT, TIMED, AND, OR, SEQUENCE, BACKGROUND,
	IF, WHILE, UNTIL, FOR, CASE, GROUP, SUBSHELL, FUNCTION
};

/* A command. Of a list (SEQUENCE, PIPELINE, CASE) the parts begin at `first` and go on by `next`. */
struct node {
	enum kind kind;
	struct node *next;
	struct redirect *redirects;
	/* A command's words, a loop's list, the patterns of a branch. */
	char **words;
	int count;
	/* Words at the beginning that are assignments; of FOR: whether it has a list; of TIMED: as POSIX
	   prints it. */
	int special;
	char *name;
	struct node *first, *second, *third;
};

/* Text that is taken apart. */
enum token { END, NEWLINE, WORD, NUMBER, SIGN };

struct lexer {
	struct arena *arena;
	const char *text;
	size_t at;
	/* It ends within something. */
	int open;
	const char *wrong;
	enum token token;
	char *word;
	/* Redirections whose documents begin with the next line. */
	struct redirect *waiting[8];
	int waits;
};

void lex(struct lexer *lexer);
size_t word_end(const char *text, size_t at);
size_t quoted_end(const char *text, size_t at);
size_t dollar_end(const char *text, size_t at);
void expect_document(struct lexer *lexer, struct redirect *redirect);

struct node *parse_line(struct lexer *lexer);
/* Commands up to the `)` that closes them; 0: there is none. */
int parse_inside(struct lexer *lexer);
/* Whether a word is an assignment: where its value begins, or 0. */
size_t is_assignment(const char *word);

/* Variables. */
const char *variable(const char *name);
void set_variable(const char *name, const char *value);
void unset_variable(const char *name);
void export_variable(const char *name);
char **environment(void);
void print_variables(int exported);
void print_quoted(const char *text);
void make_readonly(const char *name);
void import_variables(char **from);

/* A word as it was written. What fails has said so, and set `failed`. */
void expand(char **words, int count, struct list *fields);
char *expand_one(const char *word);
char *expand_pattern(const char *word);
char *expand_document(const char *text);
long long sum(const char *text);

int run(struct node *node, int last);
int run_input(struct input input);
void *find_function(const char *name);
void forget_function(const char *name);
int redirect(struct redirect *redirects, struct list *saved);
void restore(struct list *saved);
typedef int builtin(char **word, int count);
builtin *find_builtin(const char *name);
builtin test_command, trap_command, getopts_command;
int set_option(char letter, int on);
int set_named_option(const char *name, int on);
void option_letters(char letters[16]);
void print_options(void);
/* Text that a command has, in this shell. */
int run_text(const char *text);
int has_traps(void);
int trap_is_due(void);
void run_traps(void);
void become_child(void);
_Noreturn void leave_shell(int status);
int complain(const char *what, const char *why);
int wait_for(pid_t pid, const char *name);
void execute(char **word);

/* The state of the shell. */
struct shell {
	int status;
	/* That of the last `$(...)`. */
	int substituted;
	/* Somebody sits there: each pipeline is a group of its own, which has the console while it runs. */
	int asks;
	/* `set -e`, `-u`, `-x`, `-f`, `-a`, `-C`, `-n`. */
	int strict, bound, traced, plain, exports, keeps, reads;
	/* Commands whose failure is looked at: `set -e` does not hold. */
	int looked_at;
	/* An expansion that failed. */
	int failed;
	/* The ways out: of so many loops, to the next round, of a function. */
	int loops, breaks, continues, returns;
	int depth;
	/* Of the function that runs: names and values of others that are to be put back. */
	struct list *locals;
	pid_t background;
	pid_t self;
	const char *name;
	char **arguments;
	int count;
};

extern struct shell shell;

#endif
