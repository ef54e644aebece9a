#include "corpus.h"
#include "lua.h"
#include "lauxlib.h"
#include "lualib.h"
#include <string.h>
static const char script[] =
"local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end\n"
"local sum = fib(24)\n"
"local parts = {}\n"
"for i = 1, 20000 do parts[#parts + 1] = 'item ' .. i .. ';' end\n"
"local s = table.concat(parts)\n"
"sum = sum + #s\n"
"for w in s:gmatch('%a+ (%d+)') do sum = sum + #w end\n"
"sum = sum + select(2, s:gsub('1', 'one'))\n"
"local x, t = 42, {}\n"
"for i = 1, 15000 do x = (x * 1103515245 + 12345) % 2147483648; t[i] = x end\n"
"table.sort(t)\n"
"for i = 1, #t, 97 do sum = (sum * 31 + t[i]) % 1000000007 end\n"
"table.sort(t, function(a, b) return a % 1000 < b % 1000 or a % 1000 == b % 1000 and a > b end)\n"
"for i = 1, #t, 97 do sum = (sum * 31 + t[i]) % 1000000007 end\n"
"local Point = {} Point.__index = Point\n"
"function Point.new(x, y) return setmetatable({x = x, y = y}, Point) end\n"
"function Point:add(o) return Point.new(self.x + o.x, self.y + o.y) end\n"
"local p = Point.new(0, 0)\n"
"for i = 1, 60000 do p = p:add(Point.new(i % 7, i % 3)) end\n"
"sum = sum + p.x * 3 + p.y\n"
"local f = {}\n"
"for i = 1, 8000 do f[#f + 1] = string.format('%d:%s:%x', i, 'v' .. i % 10, i * 7) end\n"
"for i, v in ipairs(f) do sum = (sum + #v * i) % 1000000007 end\n"
"local sieve, count = {}, 0\n"
"for i = 2, 60000 do if not sieve[i] then count = count + 1 for j = i * i, 60000, i do sieve[j] = true end end end\n"
"local m = {}\n"
"for i = 1, 40 do m[i] = {} for j = 1, 40 do m[i][j] = i * j % 10 + 0.5 end end\n"
"local tr = 0.0\n"
"for i = 1, 40 do for j = 1, 40 do local a = 0.0 for k = 1, 40 do a = a + m[i][k] * m[k][j] end tr = tr + a end end\n"
"return math.floor(sum + count + tr)\n";
static const luaL_Reg libs[] = {{"_G", luaopen_base}, {"table", luaopen_table}, {"string", luaopen_string}, {"math", luaopen_math}, {0, 0}};
unsigned long long work(void)
{
    lua_State *L = luaL_newstate();
    for (const luaL_Reg *l = libs; l->func; l++) {
        luaL_requiref(L, l->name, l->func, 1);
        lua_pop(L, 1);
    }
    if (luaL_loadbufferx(L, script, sizeof script - 1, "work", 0) || lua_pcall(L, 0, 1, 0))
        return 1;
    unsigned long long result = (unsigned long)lua_tointeger(L, -1);
    lua_close(L);
    return result;
}
