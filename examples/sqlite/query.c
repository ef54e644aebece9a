/* SQL as functions of texts: one database, one result. */
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <postern/extension.h>

/* What the C library of extensions lacks of SQLite's file layer. It is for lock files of a kind that is not used here. */
__attribute__((weak)) int utimes(const char *path, const struct timeval times[2])
{
	struct timespec both[2];
	for (int k = 0; times && k < 2; k++)
		both[k] = (struct timespec){ times[k].tv_sec, times[k].tv_usec * 1000 };
	return utimensat(AT_FDCWD, path, times ? both : NULL, 0);
}

static sqlite3 *database;

/* The rows of the last query, or the error's message. */
static char *text;
static size_t size, room;

static int append(const void *bytes, size_t count)
{
	if (count > room - size) {
		size_t wanted = (size + count) * 2;
		char *larger = realloc(text, wanted);
		if (!larger)
			return SQLITE_NOMEM;
		text = larger;
		room = wanted;
	}
	memcpy(text + size, bytes, count);
	size += count;
	return SQLITE_OK;
}

static int fail(int status, const char *message)
{
	size = 0;
	append(message, strlen(message));
	return status;
}

/* Opens a database, in place of one that was open. ":memory:" is one without a file. */
POSTERN_EXPORT int query_open(const char *path)
{
	if (database)
		sqlite3_close_v2(database);
	int status = sqlite3_open(path, &database);
	if (status != SQLITE_OK)
		return fail(status, database ? sqlite3_errmsg(database) : "out of memory");
	/* No folder for temporary files is granted. */
	status = sqlite3_exec(database, "pragma temp_store = memory", NULL, NULL, NULL);
	if (status != SQLITE_OK)
		return fail(status, sqlite3_errmsg(database));
	size = 0;
	return SQLITE_OK;
}

static int one_row(sqlite3_stmt *statement)
{
	int columns = sqlite3_column_count(statement);
	for (int k = 0; k < columns; k++) {
		if (k && append("|", 1))
			return SQLITE_NOMEM;
		const void *value = sqlite3_column_text(statement, k);
		size_t count = sqlite3_column_bytes(statement, k);
		if (value && append(value, count))
			return SQLITE_NOMEM;
	}
	return append("\n", 1);
}

/* Runs statements up to the first that fails. Rows become lines; columns are separated by `|`. */
POSTERN_EXPORT int query_run(const char *statements)
{
	if (!database)
		return fail(SQLITE_MISUSE, "no database is open");
	size = 0;
	while (*statements) {
		sqlite3_stmt *statement = NULL;
		int status = sqlite3_prepare_v2(database, statements, -1, &statement, &statements);
		if (status == SQLITE_OK && !statement)
			continue; /* white space, or a comment */
		while (status == SQLITE_OK && (status = sqlite3_step(statement)) == SQLITE_ROW)
			status = one_row(statement);
		sqlite3_finalize(statement);
		if (status == SQLITE_NOMEM)
			return fail(status, "out of memory");
		if (status != SQLITE_DONE)
			return fail(status, sqlite3_errmsg(database));
	}
	return SQLITE_OK;
}

POSTERN_EXPORT const char *query_text(void)
{
	return text;
}

POSTERN_EXPORT size_t query_size(void)
{
	return size;
}

/* Closes the database: its file is complete. */
POSTERN_EXPORT int query_close(void)
{
	int status = sqlite3_close(database);
	if (status == SQLITE_OK)
		database = NULL;
	return status;
}
