/* scripts/coverage.sh has every C source include this first: a process that ends by _exit, or kills itself, writes its counts
 * before. */
#ifndef COVERAGE_H
#define COVERAGE_H

void __gcov_dump(void);
extern void _exit(int) __attribute__((__noreturn__));
extern int raise(int) __attribute__((__nothrow__));
extern int kill(int, int) __attribute__((__nothrow__));
extern int getpid(void) __attribute__((__nothrow__));
extern long ulimit(int, ...) __attribute__((__nothrow__));

static inline __attribute__((__noreturn__, __unused__)) void coverage_exit(int status)
{
    if (ulimit(1) > 1 << 20) { /* else the system would end the process for the size of its files */
        __gcov_dump();
    }
    (_exit)(status);
}

static inline __attribute__((__unused__)) int coverage_raise(int number)
{
    if (number == 9) {
        __gcov_dump();
    }
    return (raise)(number);
}

static inline __attribute__((__unused__)) int coverage_kill(int process, int number)
{
    if (process == getpid()) {
        __gcov_dump(); /* a process that handles the signal goes on counting */
    }
    return (kill)(process, number);
}
#define kill(process, number) coverage_kill(process, number)
#define _exit(status) coverage_exit(status)
#define raise(number) coverage_raise(number)

#endif
