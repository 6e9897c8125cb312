/* The floor: start one command N times, at most SLOTS at once, and keep nothing.
 *
 *     cloop SLOTS N COMMAND [ARGUMENT]...
 *
 * posix_spawnp (vfork underneath in glibc) and waitid, one thread, standard streams on
 * /dev/null as a detached task's are. Ends with 0 when every child did, 1 when one
 * did not, 2 when it could not work at all.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void fail(const char *what, int error)
{
    fprintf(stderr, "cloop: %s: %s\n", what, strerror(error));
    exit(2);
}

static void give_children_dev_null(posix_spawn_file_actions_t *actions)
{
    posix_spawn_file_actions_init(actions);
    for (int fd = 0; fd < 3; fd++)
        posix_spawn_file_actions_addopen(actions, fd, "/dev/null", O_RDWR, 0);
}

static int wait_for_one(void)
{
    siginfo_t info;
    while (waitid(P_ALL, 0, &info, WEXITED) < 0)
        if (errno != EINTR)
            fail("waitid", errno);
    return info.si_code == CLD_EXITED && info.si_status == 0;
}

int main(int argc, char **argv)
{
    if (argc < 4)
        fail("usage: cloop SLOTS N COMMAND [ARGUMENT]...", EINVAL);
    long slots = atol(argv[1]), left = atol(argv[2]), running = 0;
    int all_right = 1;
    posix_spawn_file_actions_t actions;
    give_children_dev_null(&actions);
    while (left > 0 || running > 0) {
        while (left > 0 && running < slots) {
            pid_t pid;
            int error = posix_spawnp(&pid, argv[3], &actions, NULL, argv + 3, environ);
            if (error)
                fail(argv[3], error);
            left--, running++;
        }
        all_right &= wait_for_one();
        running--;
    }
    return !all_right;
}
