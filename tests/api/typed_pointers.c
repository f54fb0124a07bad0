/* What dm_read and its like take for a pointer: case 0 compiles, the others must not. */
#include <dmath/dmath.h>

dm_status take(dm_session *s, dm_array a);

dm_status take(dm_session *s, dm_array a)
{
#if CASE == 0
    static const float constant[3];
    static double row[3];
    uint16_t *half = 0;
    return dm_write(s, a, constant) | dm_read_as(s, a, row) | dm_read(s, a, half);
#elif CASE == 1
    static uint16_t half[3]; /* f16 or bf16? */
    return dm_read_as(s, a, half);
#elif CASE == 2
    void *any = 0;
    return dm_read(s, a, any);
#elif CASE == 3
    static char text[3];
    return dm_write(s, a, text);
#else
    static const float constant[3];
    return dm_read(s, a, constant);
#endif
}
