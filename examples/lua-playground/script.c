/* Lua as functions of numbers and buffers. The interpreter's state lives until the domain is reset. */
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdio.h>
#include <postern/extension.h>

static lua_State *state;
static const char *message = "";

/* An error with the calls that led to it. Error objects that are no text are named by their type. */
static int with_traceback(lua_State *L)
{
	const char *text = lua_tostring(L, 1);
	if (!text && luaL_callmeta(L, 1, "__tostring") && lua_type(L, -1) == LUA_TSTRING)
		return 1;
	if (!text)
		text = lua_pushfstring(L, "(error object is a %s value)", luaL_typename(L, 1));
	luaL_traceback(L, L, text, 1);
	return 1;
}

/* Keeps the error on top of the stack as the message, and leaves nothing else. */
static int finish(int status)
{
	fflush(stdout);
	message = "";
	if (status != LUA_OK) {
		message = lua_tostring(state, -1);
		if (!message)
			message = "(no message)";
		lua_replace(state, 1); /* it must not be collected */
		lua_settop(state, 1);
	} else {
		lua_settop(state, 0);
	}
	return status;
}

static int open_libraries(lua_State *L)
{
	luaL_openlibs(L);
	return 0;
}

static int begin(void)
{
	if (!state) {
		state = luaL_newstate();
		if (!state) {
			message = "not enough memory";
			return LUA_ERRMEM;
		}
		lua_pushcfunction(state, open_libraries);
		int status = lua_pcall(state, 0, 0, 0);
		if (status != LUA_OK)
			return finish(status);
	}
	lua_settop(state, 0);
	lua_pushcfunction(state, with_traceback);
	return LUA_OK;
}

/* Runs a script; `name` is what its errors call it. Returns 0, or Lua's status with script_message() to say why. */
POSTERN_EXPORT int script_run(const char *text, unsigned long size, const char *name)
{
	int status = begin();
	if (status != LUA_OK)
		return status;
	/* "t": text only. Lua's byte code is not checked by Lua; here it could harm the script itself only, but why allow it? */
	status = luaL_loadbufferx(state, text, size, name, "t");
	if (status == LUA_OK)
		status = lua_pcall(state, 0, 0, 1);
	return finish(status);
}

/* As script_run, for a line that somebody types: the values of an expression are printed. */
POSTERN_EXPORT int script_line(const char *text, unsigned long size)
{
	int status = begin();
	if (status != LUA_OK)
		return status;
	lua_pushliteral(state, "return ");
	lua_pushlstring(state, text, size);
	lua_concat(state, 2);
	size_t length;
	const char *expression = lua_tolstring(state, -1, &length);
	status = luaL_loadbufferx(state, expression, length, "=line", "t");
	if (status != LUA_OK) {
		lua_settop(state, 1);
		status = luaL_loadbufferx(state, text, size, "=line", "t");
	} else {
		lua_remove(state, 2);
	}
	if (status == LUA_OK)
		status = lua_pcall(state, 0, LUA_MULTRET, 1);
	if (status == LUA_OK && lua_gettop(state) > 1) {
		int values = lua_gettop(state) - 1;
		lua_getglobal(state, "print");
		lua_insert(state, 2);
		status = lua_pcall(state, values, 0, 1);
	}
	return finish(status);
}

/* Why the last script ended. */
POSTERN_EXPORT const char *script_message(void)
{
	return message;
}
