// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include "fail.h"
#include "guest.h"
#include "scenario.h"

void must(int error, const char *what)
{
	if (error)
		fail("%s: %m", what);
}

void write_file(const char *name, const char *text)
{
	int file = open(name, O_WRONLY);

	if (file < 0 || write(file, text, strlen(text)) < 0)
		fail("%s = %s: %m", name, text);
	close(file);
}

int run(char *const words[], const char *output)
{
	int status;
	pid_t child = fork();

	if (!child) {
		if (output && dup2(open(output, O_CREAT | O_WRONLY | O_TRUNC, 0644), 1) < 0)
			_exit(1);
		execv(words[0], words);
		_exit(1);
	}
	return waitpid(child, &status, 0) == child && status == 0;
}

void batch(char *program, const char *lines)
{
	char *words[] = { program, "-batch", "/run/batch", NULL };
	FILE *file = fopen(words[2], "w");

	if (!file || fputs(lines, file) < 0 || fclose(file) || !run(words, NULL))
		fail("%s refused one of:\n%s", program, lines);
}

enum { MAX_NAMESPACES = 1 + MAX_NODES + MAX_FLOWS + 2 * MAX_SOURCES };

static struct {
	char name[16];
	int fd;
} namespaces[MAX_NAMESPACES];
static int namespace_count;

void enter(const char *name)
{
	for (int i = 0; i < namespace_count; i++)
		if (!strcmp(namespaces[i].name, name)) {
			must(setns(namespaces[i].fd, CLONE_NEWNET), name);
			return;
		}
	fail("no namespace %s", name);
}

void make_namespace(const char *name)
{
	char file[64];

	must(unshare(CLONE_NEWNET), name);
	snprintf(file, sizeof file, "/run/netns/%s", name);
	close(open(file, O_CREAT | O_RDONLY, 0444));
	must(mount("/proc/self/ns/net", file, NULL, MS_BIND, NULL), file);
	snprintf(namespaces[namespace_count].name, sizeof namespaces[0].name, "%s", name);
	namespaces[namespace_count++].fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
}

void set_sysctl(const char *name, const char *value)
{
	char file[200] = "/proc/sys/";
	char *dot = file + strlen(file);

	snprintf(dot, sizeof file - strlen(file), "%s", name);
	for (; *dot; dot++)
		if (*dot == '.')
			*dot = '/';
	write_file(file, value);
}
