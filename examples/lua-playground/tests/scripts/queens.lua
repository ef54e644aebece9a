-- Eight queens, all solutions, and a sieve.
local N, solutions = 8, 0
local function place(row, columns, left, right)
	if row > N then solutions = solutions + 1 return end
	for column = 1, N do
		if not columns[column] and not left[row + column] and not right[row - column + N] then
			columns[column], left[row + column], right[row - column + N] = true, true, true
			place(row + 1, columns, left, right)
			columns[column], left[row + column], right[row - column + N] = nil, nil, nil
		end
	end
end
place(1, {}, {}, {})
print(solutions)

local prime, count = {}, 0
for i = 2, 20000 do prime[i] = true end
for i = 2, 20000 do
	if prime[i] then
		count = count + 1
		for j = i * i, 20000, i do prime[j] = false end
	end
end
print(count)
local text = {}
for i = 1, 3000 do text[#text + 1] = string.format("%d:%s", i, ("x"):rep(i % 17)) end
local all = table.concat(text, ";")
print(#all, select(2, all:gsub("xx", "")))
