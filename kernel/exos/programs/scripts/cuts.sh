# What a disk goes through while its writes are recorded: trees that are made, changed and taken away
# by tools, and promises of what is on it for good in between.
promise begin / || exit 1
mkdir /kept /work
seq 20000 > /kept/numbers
echo before > /kept/word
promise tree
for round in 1 2 3; do
	promise begin /work
	mkdir -p /work/$round/a/b
	cp /kept/numbers /work/$round/numbers
	cp /bin/sh /work/$round/sh
	for name in one two three four five six seven eight nine ten; do
		echo $round $name > /work/$round/a/$name
		ln -s ../a/$name /work/$round/a/b/$name
	done
	promise tree
	promise begin /work
	for name in one three five seven nine; do
		mv /work/$round/a/$name /work/$round/a/b/moved-$name
		rm /work/$round/a/b/$name
	done
	ln /work/$round/numbers /work/$round/again
	promise churn /work/$round/a $round ${COUNT:-60} || exit 1
	promise tree
	promise begin /kept/word /work/$round/sh
	echo word $round > /kept/word
	rm /work/$round/sh
	promise tree
done
promise begin /work
rm -r /work/1
promise tree
promise begin /work
cp /bin/lua /work/large || cp /bin/sh /work/large
rm -r /work/2
promise tree
echo cuts are over
