-- What the language and its libraries say, in the machine and on the host.
local t = {}
for i = 1, 20 do t[#t+1] = i*i end
print(table.concat(t, ","), #arg, 10//3, 7.5 % 2, 1/3, 2^53)
print(string.format("%5.2f|%q|%x", math.pi, "a\nb", 255), ("hello"):rep(3, "-"), _VERSION)
print(pcall(error, {1}), select('#', 1, nil, 3), os.time{year=2001,month=9,day=9,hour=1,min=46,sec=40})
local co = coroutine.wrap(function() for i=1,3 do coroutine.yield(i) end end)
print(co(), co(), co(), utf8.char(228, 8364), ("x=1, y=2"):gsub("(%w)=(%w)", "%2=%1"))
for l in io.lines("language.lua") do io.write(#l, " ") break end print()
local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end
print(fib(20), tostring(nil), math.maxinteger, math.mininteger // -1, 0x7p-2, -7 // 2, -7 % 3)
local words = {} for word in ("the quick brown fox"):gmatch("%a+") do words[#words + 1] = word end
table.sort(words) print(table.unpack(words))
print(string.pack("<i4z", 7, "x"):byte(1, -1))
local m = setmetatable({}, {__index = function(_, key) return key .. "!" end, __len = function() return 42 end})
print(m.hello, #m, rawlen(m), next({}), type(print), load("return 1 + 1")())
print(select(2, pcall(function() local x = nil; return x.y end)))
goto done
print("never")
::done:: print(os.date("!%Y-%m-%d", 86400), tostring(1e100), 1e15, 123456789012345678)
