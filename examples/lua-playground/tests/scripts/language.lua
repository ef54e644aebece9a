-- What a script can do without the outside: closures, metatables, coroutines, strings, sorting, integers, floats.
local function fibonacci(n)
	if n < 2 then return n end
	return fibonacci(n - 1) + fibonacci(n - 2)
end
print("fibonacci", fibonacci(22))

local Vector = {}
Vector.__index = Vector
Vector.__add = function(a, b) return setmetatable({ x = a.x + b.x, y = a.y + b.y }, Vector) end
Vector.__eq = function(a, b) return a.x == b.x and a.y == b.y end
Vector.__tostring = function(v) return string.format("(%g, %g)", v.x, v.y) end
local v = setmetatable({ x = 1, y = 2.5 }, Vector)
print(v + v, v + v == setmetatable({ x = 2, y = 5 }, Vector))

local generator = coroutine.wrap(function(n)
	for i = 1, n do coroutine.yield(i * i) end
	return "end"
end)
for _ = 1, 4 do io.write(tostring(generator(3)), " ") end
print()

print(("The quick brown fox"):gsub("%w+", function(word) return word:reverse() end))
print(string.format("%5.2f|%-8s|%08x|%q|%a", math.pi, "left", 48879, "a\nb\0c", 0.1))
print(string.pack("<i4z", 77, "text"):byte(1, -1))
print(#utf8.char(8364, 128169), utf8.len("héllo"), utf8.codepoint("é", 1))

local words = {}
for word in ("one two three four five six seven"):gmatch("%a+") do words[#words + 1] = word end
table.sort(words, function(a, b) return #a < #b or #a == #b and a < b end)
print(table.concat(words, ","), select("#", table.unpack(words)))

print(7 // 2, -7 // 2, 7 % -3, 7.5 // 2, 1 / 0, -1 / 0, 2 ^ 0.5, 1e300 * 1e10)
print(math.maxinteger + 1 == math.mininteger, 1 << 63, ~0, 5 & 3 | 8 ~ 1, math.tointeger("8"), 3 | 0)
print(math.sin(1), math.exp(1.5), math.log(10, 2), math.fmod(-7, 3), math.ult(1, -1))
math.randomseed(42)
print(math.random(1000), math.random(1000), math.random())

local ok, message = pcall(function() local t = nil; return t.x end)
print(ok, message)
print(pcall(error, { code = 7 }) == false, select(2, pcall(error, "text", 0)))
print(xpcall(function() error("inner") end, function(m) return "handled: " .. m end))
local guarded <close> = setmetatable({}, { __close = function() print("closed") end })
goto done
print("never")
::done::

local weak = setmetatable({}, { __mode = "k" })
for i = 1, 1000 do weak[{}] = i end
collectgarbage()
local left = 0
for _ in pairs(weak) do left = left + 1 end
print("weak", left, collectgarbage("count") < 10000)

print(load("return 6 * 7")(), load("return ="), tostring(nil), tonumber("0x1p4"), tonumber("z", 36))
print(os.time({ year = 2020, month = 2, day = 29, hour = 12 }) - os.time({ year = 2020, month = 2, day = 28, hour = 12 }))
print(os.date("!%Y-%m-%d %H:%M:%S", 86400 * 365))
for key, value in pairs({ 10, 20, 30, a = 1, b = 2, c = 3, d = 4 }) do io.write(tostring(key), "=", value, " ") end
print()
