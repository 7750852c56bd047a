/* The two-barrier in-place reduce-scatter, twice back to back: what asyncsim judges as reduce_scatter:builtin.
 *
 * Each rank stages P rows, comes to the ready barrier, reads its own row of every window, comes to the second
 * barrier, stores the result in place, gives the credits back, and reads the result. Then the next call.
 * A row holds the number of the call that staged it, and the result of call k is RESULT(k), so that each value
 * read can be asserted to be that of the right call. Sums would only make the state larger.
 *
 * Parameters, all of the preprocessor:
 *   P      how many ranks, 2 to 8
 *   POST   1: with the second barrier; 0: without it (reduce_scatter:no_post_barrier)
 *   GRAIN  what is one step, which decides what the search costs
 *
 * What was done for Spin, and why it is fair:
 *   - No step but those of the protocol: the loops and the calls are unrolled, so no counter and no branch is part
 *     of a state; no process ends; nothing is kept that is not read.
 *   - GRAIN 0: a step is one access to shared memory, as it is on hardware and in asyncsim.
 *   - GRAIN 1: also, the notifies of a barrier are one step, its waits are one step, and giving back is part of the
 *     store before it. This needs no knowledge of the protocol: where only the owner tests and subtracts, and a test
 *     is >=, an addition commutes to the left, a test to the right, an own subtraction both ways (Lipton).
 *   - GRAIN 2: all that follows from the same: a step is any number of tests, one access to a row that others touch,
 *     and any number of additions; subtractions, and the own row of the own window, which nobody else touches, join any.
 *   - GRAIN 3: as GRAIN 1, and the rows of a rank are staged in one step and read in one step. The same violations are found,
 *     because here every row has one reader, who reads it once a call; but that is an argument about this very
 *     protocol. In general accesses to data may be merged only where they do not race, which is what is to be proved.
 *   - No partial-order reduction: Spin knows local variables and exclusive channels, and what is left here is shared,
 *     so it saves no state and costs time. No compression either: it costs time.
 *   - Spin has no symmetry reduction. Bitstate hashing and hash compaction would be no exhaustive search.
 */

#ifndef P
#define P 2
#endif
#ifndef POST
#define POST 1
#endif
#ifndef GRAIN
#define GRAIN 0
#endif

#define STAGED(k) (1 + (k))
#define RESULT(k) (3 + (k))
#define ROW(owner, row) data[(owner) * P + (row)]
#define CELL(owner, source) signal[(owner) * P + (source)]
#define PEER(i) ((i) + ((i) >= _pid)) /* the i-th of the others, ascending */

byte data[P * P];
byte signal[P * P];

/* What one rank does to one row or one cell. */
#define STORE(c, k) ROW(_pid, c) = STAGED(k)
#define LOAD_OWN(k) assert(ROW(_pid, _pid) == STAGED(k))
#define LOAD(i, k) assert(ROW(PEER(i), _pid) == STAGED(k))
#define NOTIFY(i, n) CELL(PEER(i), _pid)++
#define HAS_COME(i, n) CELL(_pid, PEER(i)) >= n
#define SETTLE(i, n) CELL(_pid, PEER(i)) = CELL(_pid, PEER(i)) - (n)
#define STORE_RESULT(k) ROW(_pid, _pid) = RESULT(k)
#define LOAD_RESULT(k) assert(ROW(_pid, _pid) == RESULT(k))

/* The same for every peer: SEPARATOR stands between. Twice, since no macro is expanded within itself. */
#define JOIN(a, b) a##b
#define NAMED(a, b) JOIN(a, b)
#define PEERS NAMED(PEERS_, P)
#define PEERS_2(op, x, SEPARATOR) op(0, x)
#define PEERS_3(op, x, SEPARATOR) PEERS_2(op, x, SEPARATOR) SEPARATOR op(1, x)
#define PEERS_4(op, x, SEPARATOR) PEERS_3(op, x, SEPARATOR) SEPARATOR op(2, x)
#define PEERS_5(op, x, SEPARATOR) PEERS_4(op, x, SEPARATOR) SEPARATOR op(3, x)
#define PEERS_6(op, x, SEPARATOR) PEERS_5(op, x, SEPARATOR) SEPARATOR op(4, x)
#define PEERS_7(op, x, SEPARATOR) PEERS_6(op, x, SEPARATOR) SEPARATOR op(5, x)
#define PEERS_8(op, x, SEPARATOR) PEERS_7(op, x, SEPARATOR) SEPARATOR op(6, x)
#define STEPS NAMED(STEPS_, P)
#define STEPS_2(op, x) op(0, x)
#define STEPS_3(op, x) STEPS_2(op, x); op(1, x)
#define STEPS_4(op, x) STEPS_3(op, x); op(2, x)
#define STEPS_5(op, x) STEPS_4(op, x); op(3, x)
#define STEPS_6(op, x) STEPS_5(op, x); op(4, x)
#define STEPS_7(op, x) STEPS_6(op, x); op(5, x)
#define STEPS_8(op, x) STEPS_7(op, x); op(6, x)
#define ROWS(op, x, SEPARATOR) PEERS(op, x, SEPARATOR) SEPARATOR op(P - 1, x)

/* The steps, by grain. */
#if GRAIN == 0
#define BARRIER(n) PEERS(NOTIFY, n, ;); PEERS(HAS_COME, n, ;)
#define KEEP(k) STORE_RESULT(k); PEERS(SETTLE, 1 + POST, ;)
#else
#define BARRIER(n) d_step { PEERS(NOTIFY, n, ;) }; (PEERS(HAS_COME, n, &&))
#define KEEP(k) d_step { STORE_RESULT(k); PEERS(SETTLE, 1 + POST, ;) }
#endif

#if GRAIN < 2
#define STAGE(k) ROWS(STORE, k, ;)
#define REDUCE(k) LOAD_OWN(k); PEERS(LOAD, k, ;)
#else
#define STAGE(k) d_step { ROWS(STORE, k, ;) }
#define REDUCE(k) d_step { LOAD_OWN(k); PEERS(LOAD, k, ;) }
#endif

#if POST
#define READ_BARRIER BARRIER(2);
#define MAY_STORE (PEERS(HAS_COME, 2, &&))
#define TELL_READ PEERS(NOTIFY, 2, ;)
#else
#define READ_BARRIER
#define MAY_STORE true
#define TELL_READ skip
#endif

#if GRAIN == 2
#define END_OF(k) STORE_RESULT(k); PEERS(SETTLE, 1 + POST, ;); LOAD_RESULT(k)
#define STORE_STEP(i, k) \
    d_step { \
        (i > 0 || k == 0 || MAY_STORE) -> \
        if :: i == 0 && k > 0 -> END_OF(k - 1) :: else -> skip fi; \
        if :: i == 0 -> STORE(_pid, k) :: else -> skip fi; \
        STORE(PEER(i), k); \
        if :: i == P - 2 -> PEERS(NOTIFY, 1, ;) :: else -> skip fi \
    }
#define LOAD_STEP(i, k) \
    d_step { \
        (i > 0 || (PEERS(HAS_COME, 1, &&))) -> \
        if :: i == 0 -> LOAD_OWN(k) :: else -> skip fi; \
        LOAD(i, k); \
        if :: i == P - 2 -> TELL_READ :: else -> skip fi \
    }
#define CALL(k) \
    STEPS(STORE_STEP, k); \
    STEPS(LOAD_STEP, k)
#define LAST_END d_step { MAY_STORE -> END_OF(1) }
#else
#define CALL(k) \
    STAGE(k); \
    BARRIER(1); \
    REDUCE(k); \
    READ_BARRIER \
    KEEP(k); \
    LOAD_RESULT(k)
#endif

active [P] proctype rank()
{
    CALL(0);
    CALL(1);
#if GRAIN == 2
    LAST_END;
#endif
end:
    false /* a process that ended would cost further states */
}
