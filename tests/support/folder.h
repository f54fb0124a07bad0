/* Removes a folder and all that is in it. */
#ifndef DMT_FOLDER_H
#define DMT_FOLDER_H

#include <ftw.h>
#include <stdio.h>

static inline int dmt_remove_one(const char *path, const struct stat *is, int type, struct FTW *at)
{
    (void)is;
    (void)type;
    (void)at;
    return remove(path);
}

static inline int dmt_remove_folder(const char *path)
{
    return nftw(path, dmt_remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

#endif
