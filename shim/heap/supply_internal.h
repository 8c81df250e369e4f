/* SPDX-License-Identifier: BSD-2-Clause
 * Between the files of the supply. */
#ifndef HYBRID_HEAP_SUPPLY_INTERNAL_H
#define HYBRID_HEAP_SUPPLY_INTERNAL_H

#include "heap/supply.h"
#include "sys/os.h"

#define SUPPLY_PIECES  64
#define SUPPLY_GRANULE ((size_t)HY_PAGE)     /* what is purged and restored are multiples */
#define SUPPLY_UNIT    ((size_t)64 * HY_KIB) /* and what is taken */
/* Larger pieces of a file are reserved as they are used: a part may only be there for an alignment.
 */
#define SUPPLY_AT_ONCE ((size_t)4 * HY_MIB)

struct chunk {
    char *base;
    size_t bytes;
    /* Files. `file` 0: anonymous. Else pages of our file of that number, each address at its own
     * place in a view of the file that is as long as the range; view `view` follows view - 1.
     * Shared, or since a fork private; where it is anonymous, the view that it was in. */
    uint32_t file, view;
    bool shared, anon;
    bool released; /* anon, and not mapped */
    bool advised;  /* anonymous, and in use (supply_leave_file) */
    bool full;     /* shared, and all its blocks are reserved */
};

/* Blocks of our file that nobody here looks at, but a child may. */
struct shed {
    uint64_t offset;
    size_t bytes;
};

/* What memkind has given and the heaps have not taken: [at, end). */
struct piece {
    char *at, *end;
    bool released; /* no address of it is mapped */
};

struct tier_supply {
    char *base;
    size_t bytes;
    size_t own;    /* of the range, from its start: mapped by us, part by part */
    size_t mapped; /* of that */
    size_t opened; /* PM, of the range: `own`, and memkind's segments behind it */
    bool tight;    /* what is free has no addresses */
    struct supply_backing backing;
    int fd;                  /* backing file, -1 not open */
    uint32_t file;           /* its number: every file that is opened has another */
    bool keeps;              /* blocks cannot be given back before the end */
    struct os_file_id fd_id; /* the program may close our fd and reuse its number */
    int kin;                 /* tells whether children still see the file; -1: none do */
    struct os_file_id kin_id;
    void *kin_page; /* a child's, while it is being made */
    struct shed *shed;
    size_t n_shed, cap_shed;
    uint64_t shed_bytes, file_bytes; /* waiting for the children's end; of all that was taken */
    bool dir_failed, inherited;      /* its parent had one: helpers say nothing */
    struct chunk *chunk;             /* all that was taken */
    size_t n_chunks, cap_chunks;
    uint32_t *chunk_of; /* files: of each granule of the range the chunk's number + 1 */
    size_t indexed;     /* granules of it that can be written to */
    unsigned n_pieces;
    struct piece piece[SUPPLY_PIECES]; /* PM; made by the filler, used up under the pages lock */
};
extern struct tier_supply hy_supply[HY_TIERS];

/* Room for `more` chunks. */
bool supply_grow_chunks(struct tier_supply *s, size_t more);

/* What was released is memory of this tier again. */
bool supply_map_again(const struct tier_supply *s, void *base, size_t bytes);

/* Pages of a file are no data to RLIMIT_DATA until a fork makes them private. If that is refused
 * the child would write to its parent's memory: under such a limit there are none. */
bool supply_may_share(const struct tier_supply *s);

/* The heaps' range is not counted by the kernel, which refuses to others what it can never serve:
 * so it is asked for as much elsewhere. What lies on files is limited by them. */
bool supply_is_promised(const struct tier_supply *s, size_t bytes);

/* supply_file.c */
/* The chunk that an address is in; its part of [at, end). */
struct chunk *supply_chunk_at(const struct tier_supply *s, const char *at, const char *end,
                              size_t *ret_bytes);
/* A part of a chunk becomes one of its own. Room for two more must be there. */
struct chunk *supply_split_chunk(struct tier_supply *s, struct chunk *c, char *at, size_t bytes);
/* Blocks that nobody here looks at any more; supply_shed after supply_can_shed. */
bool supply_can_shed(struct tier_supply *s);
void supply_shed(struct tier_supply *s, const char *at, size_t bytes, uint32_t view);
void supply_index_chunk(struct tier_supply *s, size_t i);
/* Fresh memory; ret_full: all of it is reserved. */
bool supply_file_put(struct tier_supply *s, char *base, size_t bytes, bool *ret_full);
int supply_file_purge(struct tier_supply *s, char *base, size_t bytes);
bool supply_file_restore(struct tier_supply *s, char *base, size_t bytes);

/* The rest of what is mapped by us; any thread may ask. */
size_t supply_own_left(const struct tier_supply *s);

/* supply_memkind.c: `bytes` of the stock, and the piece that they came from; NULL: it is short. */
char *supply_from_stock(struct tier_supply *s, size_t bytes, struct piece **ret_from);
/* What is ready gives its addresses back until it is taken. memkind does not look at blocks that it
 * has given. */
void supply_release_stock(struct tier_supply *s);

/* supply_advice.c: free memory gives its addresses and its blocks back. 0 or -errno. */
int supply_file_release(struct tier_supply *s, char *base, size_t bytes);
/* Whatever is mapped there gives way to memory, which leaves the file. */
int supply_file_renew(struct tier_supply *s, char *base, size_t bytes, bool in_use);

#endif
