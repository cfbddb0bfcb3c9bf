"""Faults planted in the order in which samples are read, and in the plain readers."""

from __future__ import annotations

from tests.gate.feed.planted.feed_fault import OF_OTHERS, FeedFault, instead

ORDER = "harness/worker/input/order.py"
ASYNCHRONOUS = "harness/worker/input/loaders/asynchronous.py"
DATASET = "harness/worker/input/dataset.py"
PLAIN = "harness/worker/input/loaders/plain.py"
DRAWN = 'drawn = Random("{}/{}".format(seed, epoch))'
EACH = "everything = list(range(sum(held)))"
SHUFFLED = "        drawn.shuffle(everything)\n"
STORED = "return list(range(rank, sum(held), size))"
GLOBAL = {"format": "npy", "shuffle": "global"}
PLAIN_ORDER = {"format": "npy", "shuffle": "none"}
ASKED = "read(work.samples[slot], work.buffers[slot])"
FILLED = "for place in range(within, within + len(samples))"
LOADED = "file, offset, length = self.index()[3 * sample : 3 * sample + 3]"

FAULTS: dict[str, FeedFault] = {
    **instead(
        ORDER,
        DRAWN,
        {
            "one order for every epoch": (
                DRAWN.replace("seed, epoch", "seed, 0"),
                "every epoch has the same order",
            ),
            "an order without a seed": (
                "drawn = Random()",
                "samples do not come in the order that the seed gives|is left out of epoch",
            ),
        },
        factors=GLOBAL,
    ),
    **instead(
        ORDER,
        SHUFFLED,
        {"no shuffle": ("", "samples come in the order of the files, where shuffle = global")},
        factors=GLOBAL,
    ),
    **instead(
        ORDER,
        EACH,
        {
            "a sample dropped": (
                f"{EACH}\n        everything.remove(5)",
                "sample 5 is left out of epoch",
            ),
            "a sample doubled": (
                f"{EACH}\n        everything[5] = 6",
                "sample 6 is fed twice in epoch|sample 5 is left out",
            ),
        },
        factors=GLOBAL,
    ),
    **instead(
        ORDER,
        STORED,
        {
            "files read backwards": (
                STORED.replace("return list(", "return list(reversed(") + ")",
                "samples do not come in the order of the files|is left out of epoch",
            ),
            "the first sample skipped": (
                STORED.replace("rank,", "rank + 1,"),
                "sample 0 is left out of epoch 0",
            ),
        },
        factors=PLAIN_ORDER,
    ),
    **instead(
        PLAIN,
        ASKED,
        {"bytes of a neighbour": (ASKED.replace("[slot]", "[slot - 1]", 1), OF_OTHERS)},
        factors={**GLOBAL, "reader": "threads"},
    ),
    **instead(
        ASYNCHRONOUS,
        FILLED,
        {
            "the beginning of a buffer again": (
                "for place in range(len(samples))",
                "is fed twice in epoch 0",
            )
        },
        factors={"format": "npy", "shuffle": "file", "reader": "async-thread"},
    ),
    **instead(
        DATASET,
        LOADED,
        {"bytes shifted by one": (f"{LOADED}; offset -= 1", "the numbers are those of no sample")},
        factors={**GLOBAL, "reader": "pread"},
    ),
}
