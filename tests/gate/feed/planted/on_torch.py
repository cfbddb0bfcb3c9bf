"""Faults planted in what torch is fed: its DataLoader, and batches of any loader."""

from __future__ import annotations

from tests.gate.feed.planted.feed_fault import BLOWN_UP, ENCODED, FeedFault, instead, known

BATCHES = "harness/worker/adapters/torch/input/loading.py"
PICTURES = "harness/worker/adapters/torch/input/pictures.py"
READ = "return values.to(torch.float32).div_(self._scale)"
GIVEN = "targets = self._targets[torch.tensor(batch.samples)]"
TAKEN = "self.batch = self._trainer.place(inputs), targets.to(self._trainer.settings.device)"
FIRST = "if not self.epochs._number and self.epochs.left() == 2:\n            "
SAMPLE = "self._container.read(sample, memoryview(kept))"
DECODED = "torch.from_numpy(numpy.array(sized))"
BROUGHT = ".to(torch.float32).div_(MIDDLE).sub_(1.0)"
SIZE = "self._size = (width, height)"
RESIZED = ".resize(self._size, image.Resampling.BILINEAR)"


def read(how: str) -> str:
    """Do something to stored numbers before they are cast and scaled."""
    return READ.replace("values.", f"values{how}.")


def decoded(how: str) -> str:
    """Do something to a decoded picture."""
    return DECODED.replace("sized)", f"sized){how}.copy()")


DOUBLED = ".repeat_interleave(2, 2).repeat_interleave(2, 3)"
MEANS = ".sub_(torch.tensor([0.2, 0.3, 0.4]).reshape(1, 3, 1, 1))"
LAST = ".permute(0, 2, 3, 1).reshape(values.shape)"
FAULTS: dict[str, FeedFault] = {
    **known(
        BATCHES,
        READ,
        {
            "channels in reverse order": read(".flip(1)"),
            "no scaling": READ.replace(".div_(self._scale)", ""),
            "samples mirrored": read(".flip(3)"),
            "samples of half the size": read("[..., ::2, ::2]"),
            "samples blown up": read(f"[..., ::2, ::2]{DOUBLED}"),
        },
    ),
    **instead(
        BATCHES,
        READ,
        {
            "two channels exchanged": (read("[:, [1, 0, 2]]"), "channels are exchanged: 1, 0, 2"),
            "channels last taken for channels first": (read(LAST), "channels-last numbers are"),
            "another scale": (READ.replace("self._scale", "255.0"), "0.502 times what they"),
            "a mean taken away": (f"{READ}.sub_(0.5)", "the numbers are 0.5 too small"),
            "a mean of each channel": (f"{READ}{MEANS}", "those of channel 0 are 0.2 too small"),
            "samples upside down": (read(".flip(2)"), "samples stand upside down"),
            "rows for columns": (read(".transpose(2, 3)"), "rows and columns are exchanged"),
            "samples that are all 0": (f"{READ}.mul_(0)", "every number is 0"),
            "half the batch": (read("[::2]"), "a batch has 2 samples, and 4 are asked for"),
        },
    ),
    **known(
        BATCHES,
        GIVEN,
        {
            "labels that are all 0": f"{GIVEN} * 0",
            "labels one too high": f"{GIVEN} + 1",
            "labels one too high, of ten": f"{GIVEN}.add(1).remainder(10)",
            "labels of neighbours": f"{GIVEN}.roll(1)",
        },
    ),
    **known(BATCHES, TAKEN, {"the first batch for ever": FIRST + TAKEN}),
    **instead(
        BATCHES,
        TAKEN,
        {"the synthetic batch for ever": ("del targets", "the same batch is fed again and")},
    ),
    **instead(
        BATCHES,
        SAMPLE,
        {"other samples' bytes": (SAMPLE.replace("sample", "0", 1), "every sample .* is sample 0")},
    ),
    **known(
        PICTURES,
        DECODED,
        {
            "pictures in BGR": decoded("[:, :, ::-1]"),
            "pictures mirrored": decoded("[:, ::-1]"),
        },
        "alexnet-chien",
        ENCODED,
    ),
    **instead(
        PICTURES,
        BROUGHT,
        {
            "pictures from 0 to 255": (
                ".to(torch.float32)",
                "127.5 times what they should be, plus 12",
            ),
            "pictures from 0 to 1": (
                ".to(torch.float32).div_(255.0)",
                "0.5 times what they should be, plus 0.5",
            ),
        },
        "alexnet-chien",
        ENCODED,
    ),
    **instead(
        PICTURES,
        SIZE,
        {
            "pictures of half the size": (
                SIZE.replace("width,", "width // 2,"),
                "samples have shape",
            )
        },
        "alexnet-chien",
        ENCODED,
    ),
    **instead(
        PICTURES,
        RESIZED,
        {
            "pictures blown up": (f".resize((112, 112)){RESIZED}", f"{BLOWN_UP}|near those of"),
            "the nearest pixel for an average": (
                RESIZED.replace("BILINEAR", "NEAREST"),
                "near those of sample 0, not the same",
            ),
        },
        "alexnet-chien",
        ENCODED,
    ),
}
