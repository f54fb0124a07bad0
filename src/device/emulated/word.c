/* Words that streams wait for. The kernel's futexes work across processes that map the same memory. */
#include "device/emulated/emulated.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Time between two checks whether the stream must end. */
enum { SLEEP_NS = 20000000 };

static bool is_behind(uint32_t now, uint32_t value)
{
    return (int32_t)(now - value) < 0;
}

bool dmi_emu_has_reached(const uint32_t *word, uint32_t value)
{
    return !is_behind(__atomic_load_n(word, __ATOMIC_ACQUIRE), value);
}

void dmi_emu_raise(uint32_t *word, uint32_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
    syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

void dmi_emu_sleep_on(const uint32_t *word, uint32_t value)
{
    uint32_t now = __atomic_load_n(word, __ATOMIC_ACQUIRE);
    struct timespec limit = {.tv_nsec = SLEEP_NS};
    if (is_behind(now, value)) { /* a word that has changed since is not slept on */
        syscall(SYS_futex, word, FUTEX_WAIT, now, &limit, NULL, 0);
    }
}
