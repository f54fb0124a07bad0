/* Is the tree of an LMDB whole? The library maps the file and believes every number in it: a damaged page ends
 * the process. So all pages that lead to records are looked at first. The form is that of LMDB 0.9 on 64-bit
 * machines: pages of one size; a head of 16 bytes (number, flags, where the list of nodes ends and the nodes
 * begin); nodes with a head of 8 bytes, a key, and a child's number or the data, which may be on pages of their
 * own. */
#include "data/lmdb_check.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    HEAD = 16,
    NODE = 8,
    BRANCH = 1,
    LEAF = 2,
    OVERFLOW = 4,
    META = 8,
    KINDS = 0x6f,    /* of the flags of a page: which kind it is */
    BIG = 1,         /* of those of a node: its data are elsewhere; */
    NAMED = 2,       /* they are another database */
    MANY = 4,        /* of those of a database: several values to a key */
    DB = 48,         /* bytes of its description, */
    DBS = HEAD + 24, /* which stands there in a meta page; the second one is that of the records */
    LAST_PAGE = DBS + 2 * DB,
    TRANSACTION = LAST_PAGE + 8,
    META_BYTES = TRANSACTION + 8,
    MOST_DEPTH = 32
};
static const uint32_t magic = 0xbeefc0de;

typedef struct tree {
    const char *path;
    const unsigned char *map;
    uint64_t size, pages; /* of a page; how many */
    uint64_t seen;        /* pages: more than there are if one leads back */
    uint64_t records;
    int depth;
} tree;

static uint64_t number(const unsigned char *at, size_t bytes)
{
    uint64_t value = 0;
    for (size_t i = bytes; i-- > 0;) {
        value = value << 8 | at[i];
    }
    return value;
}

static dm_status damaged(const tree *t, uint64_t page)
{
    return dm_error_set(DM_ERR_FORMAT, "%s: the database is damaged: page %llu of its file makes no sense",
                        t->path, (unsigned long long)page);
}

static bool fits_elsewhere(const tree *t, const unsigned char *node, uint64_t keys, uint64_t bytes)
{
    const uint64_t first = number(node + NODE + keys, 8), count = (HEAD + bytes + t->size - 1) / t->size;
    return first >= 2 && first < t->pages && count <= t->pages - first &&
           (number(t->map + first * t->size + 10, 2) & KINDS) == OVERFLOW;
}

static dm_status check_page(tree *t, uint64_t page, int level)
{
    if (page < 2 || page >= t->pages || ++t->seen > t->pages) {
        return damaged(t, page);
    }
    const unsigned char *at = t->map + page * t->size;
    const bool leaf = level == t->depth;
    const uint64_t kind = number(at + 10, 2) & KINDS, end = number(at + 12, 2), begin = number(at + 14, 2),
                   nodes = (end - HEAD) / 2;
    if (number(at, 8) != page || kind != (leaf ? LEAF : BRANCH) || end < HEAD || begin < end ||
        begin > t->size || nodes < (leaf ? 1 : 2)) {
        return damaged(t, page);
    }
    dm_status status = DM_OK;
    t->records += leaf ? nodes : 0;
    for (uint64_t i = 0; status == DM_OK && i < nodes; i++) {
        const uint64_t place = number(at + HEAD + 2 * i, 2);
        if (place < begin || place + NODE > t->size) {
            return damaged(t, page);
        }
        const unsigned char *node = at + place;
        const uint64_t flags = number(node + 4, 2), keys = number(node + 6, 2), room = t->size - place - NODE,
                       low = number(node, 4);
        if (leaf && flags == NAMED) {
            return dm_error_set(DM_ERR_FORMAT, "%s: holds databases with names, no records", t->path);
        }
        if (!leaf) {
            status = keys <= room ? check_page(t, low | flags << 32, level + 1) : damaged(t, page);
        } else if (keys > room || (flags != 0 && flags != BIG) ||
                   (flags == 0 ? low > room - keys : room - keys < 8 || !fits_elsewhere(t, node, keys, low))) {
            return damaged(t, page);
        }
    }
    return status;
}

/* The newer of the two meta pages counts. */
static dm_status check_tree(tree *t, uint64_t bytes)
{
    const unsigned char *meta = t->map;
    t->size = number(meta + DBS, 4);
    if (t->size < 512 || t->size > 1 << 16 || (t->size & (t->size - 1)) || bytes < 2 * t->size) {
        return damaged(t, 0);
    }
    const unsigned char *second = t->map + t->size;
    meta = number(second + TRANSACTION, 8) > number(meta + TRANSACTION, 8) ? second : meta;
    const unsigned char *db = meta + DBS + DB;
    const uint64_t root = number(db + 40, 8), last = number(meta + LAST_PAGE, 8);
    if (number(meta + HEAD, 4) != magic || number(meta + DBS, 4) != t->size) {
        return damaged(t, meta == second);
    }
    if (last >= bytes / t->size) {
        return dm_error_set(DM_ERR_FORMAT, "%s: the database is cut: it has %llu of %llu pages", t->path,
                            (unsigned long long)(bytes / t->size), (unsigned long long)last + 1);
    }
    t->pages = last + 1;
    t->depth = (int)number(db + 6, 2);
    const bool empty = root == UINT64_MAX;
    if (!empty && ((number(db + 4, 2) & MANY) || t->depth < 1 || t->depth > MOST_DEPTH)) {
        return damaged(t, meta == second);
    }
    dm_status status = empty ? DM_OK : check_page(t, root, 1);
    return status == DM_OK && t->records != number(db + 32, 8)
               ? dm_error_set(DM_ERR_FORMAT, "%s: the database does not have the records that it counts",
                              t->path)
               : status;
}

dm_status nn_lmdb_check(const char *folder)
{
    char path[4096];
    struct stat about;
    tree t = {.path = folder};
    const bool named = snprintf(path, sizeof path, "%s/data.mdb", folder) < (int)sizeof path;
    const int file = named && sizeof(size_t) == 8 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) {
        return DM_OK;
    }
    dm_status status = DM_OK;
    if (fstat(file, &about) == 0 && S_ISREG(about.st_mode) && about.st_size >= META_BYTES) {
        void *map = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_SHARED, file, 0);
        t.map = map;
        if (map == MAP_FAILED) {
            status = dm_error_set(DM_ERR_IO, "%s: cannot be mapped", path);
        } else {
            if ((number(t.map + 10, 2) & META) && number(t.map + HEAD, 4) == magic) {
                status = check_tree(&t, (uint64_t)about.st_size);
            }
            munmap(map, (size_t)about.st_size);
        }
    }
    close(file);
    return status;
}
