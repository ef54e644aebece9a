# What a disk goes through while its writes are recorded: trees that are made, changed and taken away
# by tools, and promises of what is on it for good in between.
promise begin / || exit 1
mkdir /kept /jobs
seq 20000 > /kept/numbers
echo before > /kept/word
promise tree
for round in 1 2 3; do
	promise begin /jobs
	mkdir -p /jobs/$round/a/b
	cp /kept/numbers /jobs/$round/numbers
	cp /bin/sh /jobs/$round/sh
	for name in one two three four five six seven eight nine ten; do
		echo $round $name > /jobs/$round/a/$name
		ln -s ../a/$name /jobs/$round/a/b/$name
	done
	promise tree
	promise begin /jobs
	for name in one three five seven nine; do
		mv /jobs/$round/a/$name /jobs/$round/a/b/moved-$name
		rm /jobs/$round/a/b/$name
	done
	ln /jobs/$round/numbers /jobs/$round/again
	promise churn /jobs/$round/a $round ${COUNT:-60} || exit 1
	promise tree
	promise begin /kept/word /jobs/$round/sh
	echo word $round > /kept/word
	rm /jobs/$round/sh
	promise tree
done
promise begin /jobs
rm -r /jobs/1
promise tree
promise begin /jobs
cp /bin/lua /jobs/large || cp /bin/sh /jobs/large
rm -r /jobs/2
promise tree
echo cuts are over
