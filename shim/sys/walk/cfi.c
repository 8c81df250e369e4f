/* SPDX-License-Identifier: BSD-2-Clause
 * DWARF call frame information (DWARF 5, section 6.4; the LSB describes
 * .eh_frame and .eh_frame_hdr). Whatever is not understood ends the walk. */
#include "sys/walk/cfi.h"

#include <string.h>

enum { REG_RBP = 6, REG_RSP = 7, REG_RA = 16 };

/* Encodings of pointers: the low half is the format, the high half the base. */
enum {
    ENC_ABS = 0x00,
    ENC_UDATA4 = 0x03,
    ENC_UDATA8 = 0x04,
    ENC_SDATA4 = 0x0b,
    ENC_SDATA8 = 0x0c,
    ENC_PCREL = 0x10,
    ENC_DATAREL = 0x30,
};

/* A bounded reader; `bad` is sticky and makes every read 0. */
struct cursor {
    uintptr_t at, end;
    bool bad;
};

static uint64_t take(struct cursor *c, unsigned bytes)
{
    uint64_t v = 0;
    if (c->bad || c->end - c->at < bytes) {
        c->bad = true;
        return 0;
    }
    memcpy(&v, (const void *)c->at, bytes);
    c->at += bytes;
    return v;
}

static void skip(struct cursor *c, uint64_t bytes)
{
    if (c->bad || c->end - c->at < bytes)
        c->bad = true;
    else
        c->at += bytes;
}

static uint64_t take_uleb(struct cursor *c)
{
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint64_t b = take(c, 1);
        v |= (b & 0x7f) << shift;
        if ((b & 0x80) == 0)
            return v;
    }
    c->bad = true;
    return 0;
}

static int64_t take_sleb(struct cursor *c)
{
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 64;) {
        uint64_t b = take(c, 1);
        v |= (b & 0x7f) << shift;
        shift += 7;
        if ((b & 0x80) == 0) {
            if ((b & 0x40) != 0 && shift < 64)
                v |= ~0ull << shift;
            return (int64_t)v;
        }
    }
    c->bad = true;
    return 0;
}

static uintptr_t take_encoded(struct cursor *c, unsigned enc)
{
    uintptr_t base = (enc & 0x70) == ENC_PCREL ? c->at : 0;
    uintptr_t v = 0;
    if ((enc & 0xf0) != 0 && (enc & 0xf0) != ENC_PCREL)
        c->bad = true; /* indirect, aligned, text-relative: not in code of today */
    switch (enc & 0x0f) {
    case ENC_ABS:
    case ENC_UDATA8:
    case ENC_SDATA8:
        v = take(c, 8);
        break;
    case ENC_UDATA4:
        v = take(c, 4);
        break;
    case ENC_SDATA4:
        v = (uintptr_t)(int64_t)(int32_t)take(c, 4);
        break;
    default:
        c->bad = true;
    }
    return base + v;
}

/* --- from pc to its FDE -------------------------------------------------- */

/* The sorted table of .eh_frame_hdr; 0 if it has none or not for this pc. */
static uintptr_t find_fde(uintptr_t hdr, uintptr_t start, uintptr_t end, uintptr_t pc)
{
    struct entry {
        int32_t pc, fde;
    };
    if (hdr < start || end < hdr || end - hdr < 12)
        return 0;
    const uint8_t *h = (const void *)hdr;
    uint32_t count;
    if (h[0] != 1 || (h[1] & 0x0f) != ENC_SDATA4 || h[2] != ENC_UDATA4 ||
        h[3] != (ENC_DATAREL | ENC_SDATA4))
        return 0;
    memcpy(&count, h + 8, sizeof(count));
    if (count == 0 || (end - hdr - 12) / sizeof(struct entry) < count)
        return 0;
    const struct entry *table = (const void *)(hdr + 12);
    int64_t want = (int64_t)(pc - hdr);
    uint32_t lo = 0, hi = count; /* the last entry that begins at or before pc */
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (table[mid].pc <= want)
            lo = mid + 1;
        else
            hi = mid;
    }
    uintptr_t fde = lo == 0 ? 0 : hdr + (uintptr_t)(int64_t)table[lo - 1].fde;
    return fde >= start && fde < end ? fde : 0;
}

struct cie {
    struct cursor program;
    uint64_t code_align;
    int64_t data_align;
    unsigned pointer_enc;
    bool has_augmentation, signal_frame;
};

/* Length word and bounds of a CIE or FDE. */
static struct cursor open_record(uintptr_t at, uintptr_t end)
{
    struct cursor c = {at, end, at >= end};
    uint64_t len = take(&c, 4);
    if (len == 0 || len == 0xffffffffu || len > c.end - c.at)
        c.bad = true;
    else
        c.end = c.at + len;
    return c;
}

static bool read_cie(uintptr_t at, uintptr_t end, struct cie *ret)
{
    char aug[8] = {0};
    struct cursor c = open_record(at, end);
    bool is_cie = take(&c, 4) == 0;
    unsigned version = (unsigned)take(&c, 1);
    for (unsigned i = 0; i < sizeof(aug); i++) {
        aug[i] = (char)take(&c, 1);
        if (aug[i] == '\0')
            break;
    }
    memset(ret, 0, sizeof(*ret));
    ret->code_align = take_uleb(&c);
    ret->data_align = take_sleb(&c);
    uint64_t ra = version == 1 ? take(&c, 1) : take_uleb(&c);
    if (c.bad || !is_cie || (version != 1 && version != 3) || ra != REG_RA ||
        aug[sizeof(aug) - 1] != '\0' || (aug[0] != '\0' && aug[0] != 'z'))
        return false;
    ret->has_augmentation = aug[0] == 'z';
    if (ret->has_augmentation) {
        uint64_t len = take_uleb(&c);
        struct cursor a = c;
        skip(&c, len);
        for (const char *p = aug + 1; *p != '\0'; p++) {
            if (*p == 'R')
                ret->pointer_enc = (unsigned)take(&a, 1);
            else if (*p == 'L')
                (void)take(&a, 1);
            else if (*p == 'S')
                ret->signal_frame = true;
            else if (*p == 'P') {
                unsigned enc = (unsigned)take(&a, 1);
                (void)take_encoded(&a, enc & 0x7f); /* its value is not used */
            } else
                return false;
        }
        if (a.bad)
            return false;
    }
    ret->program = c;
    return !c.bad;
}

/* --- the program ---------------------------------------------------------- */

enum where { SAME, AT_CFA, UNKNOWN, AT_RBP };

struct row {
    unsigned cfa_reg; /* REG_RSP, REG_RBP or something that we cannot follow */
    int64_t cfa_offset;
    bool cfa_deref; /* CFA = *(rbp + cfa_offset): a realigned frame */
    bool cfa_unknown;
    enum where rbp, ra;
    int64_t rbp_offset, ra_offset;
};

#define REMEMBER_MAX 8
struct machine {
    struct row now, initial, stack[REMEMBER_MAX];
    unsigned depth;
    uintptr_t loc;
    bool bad;
};

static void set_rule(struct row *r, uint64_t reg, enum where where, int64_t offset)
{
    if (reg == REG_RBP) {
        r->rbp = where;
        r->rbp_offset = offset;
    } else if (reg == REG_RA) {
        r->ra = where;
        r->ra_offset = offset;
    }
}

static void restore_rule(struct machine *m, uint64_t reg)
{
    if (reg == REG_RBP)
        set_rule(&m->now, reg, m->initial.rbp, m->initial.rbp_offset);
    else if (reg == REG_RA)
        set_rule(&m->now, reg, m->initial.ra, m->initial.ra_offset);
}

enum { OP_DEREF = 0x06, OP_BREG0 = 0x70 };

/* The two expressions that compilers write for realigned frames: the CFA is
 * stored at rbp + n, and the caller's rbp at rbp + 0. */
static void expression(struct cursor *c, struct row *r, bool is_cfa, uint64_t reg)
{
    uint64_t len = take_uleb(c);
    struct cursor e = {c->at, c->at + len, c->bad};
    skip(c, len);
    if (c->bad)
        return;
    bool of_rbp = take(&e, 1) == OP_BREG0 + REG_RBP;
    int64_t offset = take_sleb(&e);
    if (is_cfa) {
        r->cfa_deref = of_rbp && take(&e, 1) == OP_DEREF && !e.bad && e.at == e.end;
        r->cfa_unknown = !r->cfa_deref;
        r->cfa_offset = offset;
    } else {
        bool plain = of_rbp && offset == 0 && !e.bad && e.at == e.end;
        set_rule(r, reg, plain ? AT_RBP : UNKNOWN, 0);
    }
}

static void define_cfa(struct row *r, uint64_t reg, int64_t offset)
{
    r->cfa_reg = (unsigned)HY_MIN(reg, (uint64_t)255);
    r->cfa_offset = offset;
    r->cfa_deref = r->cfa_unknown = false;
}

/* Where it goes on, and what is remembered. false: none of these, or too deep. */
static bool place_op(struct machine *m, struct cursor *c, const struct cie *cie, unsigned op)
{
    switch (op) {
    case 0x00: /* nop */
        return true;
    case 0x02: /* advance_loc1, 2, 4 */
        m->loc += take(c, 1) * cie->code_align;
        return true;
    case 0x03:
        m->loc += take(c, 2) * cie->code_align;
        return true;
    case 0x04:
        m->loc += take(c, 4) * cie->code_align;
        return true;
    case 0x0a: /* remember_state */
        if (m->depth == REMEMBER_MAX)
            return false;
        m->stack[m->depth++] = m->now;
        return true;
    case 0x0b: /* restore_state */
        if (m->depth == 0)
            return false;
        m->now = m->stack[--m->depth];
        return true;
    case 0x2e: /* GNU_args_size */
        (void)take_uleb(c);
        return true;
    default:
        return false;
    }
}

/* The CFA itself. */
static bool cfa_op(struct machine *m, struct cursor *c, const struct cie *cie, unsigned op)
{
    struct row *r = &m->now;
    int64_t d = cie->data_align;
    uint64_t reg;
    switch (op) {
    case 0x0c: /* def_cfa */
        reg = take_uleb(c);
        define_cfa(r, reg, (int64_t)take_uleb(c));
        return true;
    case 0x12: /* def_cfa_sf */
        reg = take_uleb(c);
        define_cfa(r, reg, take_sleb(c) * d);
        return true;
    case 0x0d: /* def_cfa_register */
        define_cfa(r, take_uleb(c), r->cfa_offset);
        return true;
    case 0x0e: /* def_cfa_offset */
        r->cfa_offset = (int64_t)take_uleb(c);
        return true;
    case 0x13: /* def_cfa_offset_sf */
        r->cfa_offset = take_sleb(c) * d;
        return true;
    case 0x0f: /* def_cfa_expression */
        expression(c, r, true, 0);
        return true;
    default:
        return false;
    }
}

/* Where a register was saved. */
static bool rule_op(struct machine *m, struct cursor *c, const struct cie *cie, unsigned op)
{
    struct row *r = &m->now;
    int64_t d = cie->data_align;
    uint64_t reg;
    switch (op) {
    case 0x05: /* offset_extended */
        reg = take_uleb(c);
        set_rule(r, reg, AT_CFA, (int64_t)take_uleb(c) * d);
        return true;
    case 0x11: /* offset_extended_sf */
        reg = take_uleb(c);
        set_rule(r, reg, AT_CFA, take_sleb(c) * d);
        return true;
    case 0x06: /* restore_extended */
        restore_rule(m, take_uleb(c));
        return true;
    case 0x07: /* undefined */
        set_rule(r, take_uleb(c), UNKNOWN, 0);
        return true;
    case 0x08: /* same_value */
        set_rule(r, take_uleb(c), SAME, 0);
        return true;
    case 0x09: /* register */
    case 0x14: /* val_offset */
        reg = take_uleb(c);
        (void)take_uleb(c);
        set_rule(r, reg, UNKNOWN, 0);
        return true;
    case 0x15: /* val_offset_sf */
        reg = take_uleb(c);
        (void)take_sleb(c);
        set_rule(r, reg, UNKNOWN, 0);
        return true;
    case 0x10: /* expression */
        reg = take_uleb(c);
        expression(c, r, false, reg);
        return true;
    case 0x16: /* val_expression */
        reg = take_uleb(c);
        skip(c, take_uleb(c));
        set_rule(r, reg, UNKNOWN, 0);
        return true;
    default:
        return false;
    }
}

static bool extended(struct machine *m, struct cursor *c, const struct cie *cie, unsigned op)
{
    return place_op(m, c, cie, op) || cfa_op(m, c, cie, op) || rule_op(m, c, cie, op);
}

/* Run instructions as long as they are about addresses up to pc. */
static bool run(struct machine *m, struct cursor c, const struct cie *cie, uintptr_t pc)
{
    while (c.at < c.end && m->loc <= pc) {
        unsigned op = (unsigned)take(&c, 1);
        unsigned low = op & 0x3f;
        switch (op & 0xc0) {
        case 0x40: /* advance_loc */
            m->loc += low * cie->code_align;
            break;
        case 0x80: /* offset */
            set_rule(&m->now, low, AT_CFA, (int64_t)take_uleb(&c) * cie->data_align);
            break;
        case 0xc0: /* restore */
            restore_rule(m, low);
            break;
        default:
            if (!extended(m, &c, cie, op))
                return false;
        }
        if (c.bad)
            return false;
    }
    return true;
}

static void to_rule(const struct row *r, struct cfi_rule *ret)
{
    enum { OFFSET_MAX = 1 << 20 };
    struct cfi_rule rule = {CFI_STOP, 0, 0};
    if (r->ra != AT_CFA || r->ra_offset != -8 || r->cfa_unknown)
        return;
    if (r->cfa_deref) {
        if (r->rbp != AT_RBP || r->cfa_offset >= 0)
            return;
        rule.kind = CFI_REALIGNED;
        rule.cfa_offset = (int32_t)HY_MIN(-r->cfa_offset, (int64_t)OFFSET_MAX);
    } else {
        if ((r->cfa_reg != REG_RSP && r->cfa_reg != REG_RBP) || r->rbp == UNKNOWN ||
            r->rbp == AT_RBP || r->cfa_offset < 0)
            return;
        rule.kind = r->cfa_reg == REG_RSP ? CFI_RSP : CFI_RBP;
        rule.cfa_offset = (int32_t)HY_MIN(r->cfa_offset, (int64_t)OFFSET_MAX);
        if (r->rbp == AT_CFA) {
            if (r->rbp_offset >= 0 || r->rbp_offset < -OFFSET_MAX)
                return;
            rule.rbp_distance = (int32_t)-r->rbp_offset;
        }
    }
    if ((rule.cfa_offset & 7) == 0 && (rule.rbp_distance & 7) == 0 && rule.cfa_offset < OFFSET_MAX)
        *ret = rule;
}

void cfi_find(uintptr_t eh_frame_hdr, uintptr_t start, uintptr_t end, uintptr_t pc,
              struct cfi_rule *ret)
{
    struct cie cie;
    struct machine m = {.now = {.cfa_unknown = true}};
    *ret = (struct cfi_rule){CFI_STOP, 0, 0};
    uintptr_t fde = find_fde(eh_frame_hdr, start, end, pc);
    if (fde == 0)
        return;
    struct cursor c = open_record(fde, end);
    uintptr_t id_at = c.at;
    uint32_t back = (uint32_t)take(&c, 4); /* distance to the CIE, from here */
    if (c.bad || back == 0 || id_at - back < start || !read_cie(id_at - back, end, &cie) ||
        cie.signal_frame)
        return;
    uintptr_t first = take_encoded(&c, cie.pointer_enc);
    uintptr_t size = take_encoded(&c, cie.pointer_enc & 0x0f);
    if (cie.has_augmentation)
        skip(&c, take_uleb(&c));
    if (c.bad || pc < first || pc - first >= size)
        return;
    m.loc = first;
    if (!run(&m, cie.program, &cie, UINTPTR_MAX))
        return;
    m.initial = m.now;
    m.loc = first;
    if (run(&m, c, &cie, pc))
        to_rule(&m.now, ret);
}
