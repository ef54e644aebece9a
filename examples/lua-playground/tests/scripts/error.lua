-- An error in a function that was called through others; both builds say it the same way.
local function inner(n)
	if n == 0 then
		error("at the bottom")
	end
	inner(n - 1)
end
print("before")
local thread = coroutine.create(function() inner(2) end)
print(coroutine.resume(thread))
inner(3)
