/* For LD_PRELOAD: a file is on the disk no sooner than four seconds after it was asked for. */
#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

int fdatasync(int fd)
{
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    struct stat status;

    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode))
        sleep(4);
    return real(fd);
}
