/* In a function that returns a dm_status: ends it where a call fails. */
#ifndef DMT_TRY_H
#define DMT_TRY_H

#define TRY(call)                                                                                              \
    do {                                                                                                       \
        dm_status status_ = (call);                                                                            \
        if (status_ != DM_OK) {                                                                                \
            return status_;                                                                                    \
        }                                                                                                      \
    } while (0)

#endif
