/* Lua's own main is not among the sources of the crate; this is as much of it as scripts need:
   lua [-e TEXT] [-v] [FILE [WORD...]], and what comes in without a file. */
#include <stdio.h>
#include <string.h>

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

static int traced(lua_State *state)
{
	const char *message = lua_tostring(state, 1);
	if (!message)
		message = luaL_tolstring(state, 1, NULL);
	luaL_traceback(state, state, message, 1);
	return 1;
}

/* Runs what was loaded, with so many arguments above it. */
static int run(lua_State *state, int loaded, int arguments)
{
	if (loaded == LUA_OK) {
		int base = lua_gettop(state) - arguments;
		lua_pushcfunction(state, traced);
		lua_insert(state, base);
		loaded = lua_pcall(state, arguments, 0, base);
		lua_remove(state, base);
	}
	if (loaded == LUA_OK)
		return 0;
	fflush(stdout);
	fprintf(stderr, "lua: %s\n", lua_tostring(state, -1));
	lua_pop(state, 1);
	return 1;
}

int main(int count, char **words)
{
	lua_State *state = luaL_newstate();
	int at = 1, failed = 0, texts = 0;
	if (!state) {
		fputs("lua: there is no memory for it\n", stderr);
		return 1;
	}
	luaL_openlibs(state);
	for (; at < count && !failed && words[at][0] == '-' && words[at][1]; at++) {
		texts = 1;
		if (!strcmp(words[at], "-v"))
			puts(LUA_COPYRIGHT);
		else if (!strcmp(words[at], "-e") && at + 1 < count)
			failed = run(state, luaL_loadbuffer(state, words[at + 1], strlen(words[at + 1]), "=(command line)"), 0), at++;
		else
			failed = fputs("lua: lua [-e TEXT] [-v] [FILE [WORD...]]\n", stderr), 1;
	}
	if (!failed && (at < count || !texts)) {
		const char *file = at < count && strcmp(words[at], "-") ? words[at] : NULL;
		lua_createtable(state, count - at, at + 1);
		for (int each = 0; each < count; each++) {
			lua_pushstring(state, words[each]);
			lua_rawseti(state, -2, each - at);
		}
		lua_setglobal(state, "arg");
		int loaded = luaL_loadfile(state, file), more = 0;
		for (int each = at + 1; loaded == LUA_OK && each < count; each++, more++)
			lua_pushstring(state, words[each]);
		failed = run(state, loaded, more);
	}
	lua_close(state);
	return failed;
}
