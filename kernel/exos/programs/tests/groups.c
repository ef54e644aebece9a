/* Process groups, and children that are stopped and go on. */
#include "check.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t got, children;

static void note(int number)
{
	got = number;
	children += number == SIGCHLD;
}

static pid_t sleeper(void)
{
	pid_t pid = fork();

	if (pid == 0)
		for (;;)
			usleep(1000);
	return pid;
}

static void numbers(void)
{
	pid_t own = getpgrp(), pid;
	int status;

	CHECK(own > 0 && getpgid(0) == own && getpgid(getpid()) == own);
	CHECK(getpgid(50000) == -1 && errno == ESRCH);
	pid = sleeper();
	CHECK(getpgid(pid) == own);
	CHECK(setpgid(pid, 50000) == -1 && errno == EPERM);
	CHECK(setpgid(getppid(), 0) == -1 && errno == ESRCH);
	CHECK(setpgid(pid, 0) == 0 && getpgid(pid) == pid);
	CHECK(setpgid(pid, own) == 0 && getpgid(pid) == own);
	CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, &status, 0) == pid);
	pid = fork();
	if (pid == 0)
		_exit(setsid() == getpid() && getpgrp() == getpid() && setsid() == -1 && errno == EPERM ? 3 : 4);
	CHECK(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 3);
}

static void groups_get_signals(void)
{
	pid_t first = sleeper(), second = sleeper(), other = sleeper();
	int status;

	CHECK(setpgid(first, 0) == 0 && setpgid(second, first) == 0);
	CHECK(kill(-first, 0) == 0 && killpg(first, SIGTERM) == 0);
	CHECK(waitpid(-first, &status, 0) > 0 && WTERMSIG(status) == SIGTERM);
	CHECK(waitpid(-first, &status, 0) > 0 && WTERMSIG(status) == SIGTERM);
	CHECK(waitpid(-first, &status, 0) == -1 && errno == ECHILD);
	CHECK(kill(-first, SIGTERM) == -1 && errno == ESRCH);
	CHECK(waitpid(other, &status, WNOHANG) == 0);
	/* The caller's own group, by 0: in a child, whose group is its own. */
	pid_t leader = fork();
	if (leader == 0) {
		setpgid(0, 0);
		pid_t child = sleeper();
		signal(SIGUSR1, note);
		if (kill(0, SIGUSR1) || got != SIGUSR1 || waitpid(0, &status, 0) != child)
			_exit(1);
		_exit(WTERMSIG(status) == SIGUSR1 ? 7 : 2);
	}
	CHECK(waitpid(leader, &status, 0) == leader && WEXITSTATUS(status) == 7);
	CHECK(kill(other, SIGKILL) == 0 && waitpid(other, NULL, 0) == other);
}

static void stops_are_told(void)
{
	pid_t pid;
	int status;

	children = 0;
	signal(SIGCHLD, note);
	pid = sleeper();
	CHECK(waitpid(pid, &status, WUNTRACED | WCONTINUED | WNOHANG) == 0);
	CHECK(kill(pid, SIGSTOP) == 0);
	CHECK(waitpid(pid, &status, WNOHANG) == 0);
	CHECK(waitpid(pid, &status, WUNTRACED) == pid);
	CHECK(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP && !WIFEXITED(status));
	CHECK(!WIFSIGNALED(status) && !WIFCONTINUED(status));
	/* Once. */
	CHECK(waitpid(pid, &status, WUNTRACED | WNOHANG) == 0);
	CHECK(kill(pid, SIGCONT) == 0);
	CHECK(waitpid(-1, &status, WUNTRACED | WNOHANG) == 0);
	CHECK(waitpid(-1, &status, WCONTINUED) == pid && WIFCONTINUED(status));
	CHECK(!WIFSTOPPED(status) && !WIFEXITED(status) && !WIFSIGNALED(status));
	CHECK(children >= 1);
	/* The default action of other signals, which says so. */
	CHECK(kill(pid, SIGTSTP) == 0);
	CHECK(waitpid(pid, &status, WUNTRACED) == pid);
	CHECK(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTSTP);
	/* One that is stopped ends by SIGKILL. */
	CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, &status, 0) == pid && WTERMSIG(status) == SIGKILL);
	signal(SIGCHLD, SIG_DFL);
}

static void stops_can_be_no_news(void)
{
	struct sigaction action = { .sa_flags = SA_NOCLDSTOP };
	int status;
	pid_t pid;

	action.sa_handler = note;
	sigaction(SIGCHLD, &action, NULL);
	pid = sleeper();
	children = 0;
	CHECK(kill(pid, SIGSTOP) == 0 && waitpid(pid, &status, WUNTRACED) == pid);
	usleep(3000);
	CHECK(children == 0);
	CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, &status, 0) == pid);
	usleep(3000);
	CHECK(children == 1);
	signal(SIGCHLD, SIG_DFL);
}

static void who_goes_on_can_know(void)
{
	int status, ends[2];
	char byte;
	pid_t pid;

	CHECK(pipe(ends) == 0);
	pid = fork();
	if (pid == 0) {
		signal(SIGCONT, note);
		write(ends[1], "r", 1);
		while (got != SIGCONT)
			usleep(1000);
		_exit(9);
	}
	CHECK(read(ends[0], &byte, 1) == 1);
	CHECK(kill(pid, SIGSTOP) == 0 && waitpid(pid, &status, WUNTRACED) == pid);
	CHECK(kill(pid, SIGCONT) == 0);
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 9);
	close(ends[0]);
	close(ends[1]);
}

static void options_are_known(void)
{
	CHECK(waitpid(-1, NULL, 64) == -1 && errno == EINVAL);
	CHECK(tcgetpgrp(77) == -1 && errno == EBADF);
	CHECK(tcsetpgrp(STDIN_FILENO, 50000) == -1 && errno == EPERM);
}

int main(void)
{
	RUN(numbers);
	RUN(groups_get_signals);
	RUN(stops_are_told);
	RUN(stops_can_be_no_news);
	RUN(who_goes_on_can_know);
	RUN(options_are_known);
	return failures != 0;
}
