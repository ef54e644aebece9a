# Who runs, and what it has: inside the machine alone, which ends with it.
spin() { while :; do :; done; }
ps | grep -c PID
spin & spins=$!
sleep 1000 &
until [ "$(ps | grep -c ' sleep$')" = 1 ]; do :; done
ps | while read pid parent state slices children pages name; do
	case $name in sleep) [ $parent = $$ ] && [ $pages -gt 10 ] && echo "sleep: $state";; esac
done
# Of a process that computes top says that it has a share, of one that waits that it has none.
top -b -n 2 -d 0.2 | grep -c '^ *PID'
top -b -n 2 -d 0.5 | tail -n +4 | grep " R .* sh$" | {
	last=0
	while read pid state share slices pages name; do
		[ $pid = $spins ] && last=${share%.*}
	done
	[ $last -gt 10 ] && [ $last -lt 120 ] && echo it spins
}
ps | while read pid parent state slices rest; do
	case $rest in *sleep) [ $slices -lt 100 ] && echo it waits;; esac
done
kill sleep; wait $! 2>/dev/null; echo $?
kill nobody 2>/dev/null; echo $?
kill -STOP $spins; ps | while read pid parent state rest; do [ $pid = $spins ] && echo "stopped: $state"; done
kill -s KILL -- $spins; wait $spins 2>/dev/null; echo $?
free | { read total used free; read total used free; [ $total = $((used + free)) ] && echo pages; }
free -m | tail -n 1 | { read total rest; [ $total -gt 50 ] && [ $total -lt 500 ] && echo MiB; }
case $(uptime) in "up 0:00:"*"processors") echo up;; esac
which ls sh; which nothing; echo $?
hostname; uname -s
{ time -p sleep 0; } 2>&1 | while read what seconds; do echo $what; done
time true
ls --help
