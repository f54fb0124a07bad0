"""PNG and JPEG images, made and understood without any library: what tests compare decoders with."""
import struct
import zlib

import numpy as np


# ---- PNG: all filters, all colour types that the decoder takes
def png(pixels, depth=8, palette=None, filters=True, cut=None):
    """pixels: H x W (gray), H x W x 2 (gray and alpha), 3 or 4; or indices with a palette of N x 3."""
    pixels = np.asarray(pixels)
    if pixels.ndim == 2:
        pixels = pixels[:, :, None]
    height, width, channels = pixels.shape
    colour = 3 if palette is not None else {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    if depth == 16:
        rows = pixels.astype(">u2").reshape(height, -1).view(np.uint8)
    elif depth == 8:
        rows = pixels.astype(np.uint8).reshape(height, -1)
    else:
        bits = (pixels.reshape(height, width, 1) >> np.arange(depth - 1, -1, -1)) & 1
        rows = np.packbits(bits.reshape(height, -1).astype(np.uint8), axis=1)
    step = max(1, channels * depth // 8)
    data, before = b"", np.zeros(rows.shape[1], np.int64)
    for y in range(height):
        row = rows[y].astype(np.int64)
        left = np.concatenate([np.zeros(step, np.int64), row[:-step]]) if len(row) > step else np.zeros(len(row), np.int64)
        corner = np.concatenate([np.zeros(step, np.int64), before[:-step]]) if len(row) > step else np.zeros(len(row), np.int64)
        p = left + before - corner
        a, b, c = abs(p - left), abs(p - before), abs(p - corner)
        paeth = np.where((a <= b) & (a <= c), left, np.where(b <= c, before, corner))
        kind = y % 5 if filters else 0
        guess = [0 * row, left, before, (left + before) // 2, paeth][kind]
        data += bytes([kind]) + ((row - guess) % 256).astype(np.uint8).tobytes()
        before = row

    def chunk(name, body):
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    out = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0))
    if palette is not None:
        out += chunk(b"PLTE", np.asarray(palette, np.uint8).tobytes())
    out += chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b"")
    return out[:cut]


# ---- JPEG: baseline, blocks of one value each, so that the transform is no question
def jpeg(blocks, adobe=None):
    """blocks: H x W (gray), H x W x 3 (Y, Cb, Cr) or x 4 (inks) values of 8 x 8 blocks. adobe: the transform in an Adobe marker."""
    blocks = np.asarray(blocks)
    if blocks.ndim == 2:
        blocks = blocks[:, :, None]
    rows, cols, n = blocks.shape

    def segment(marker, body):
        return struct.pack(">BBH", 255, marker, len(body) + 2) + body

    # codes of 4 bits for the 12 sizes of a difference, and of 1 bit for the end of a block
    dc = bytes([0, 0, 0, 12] + [0] * 12) + bytes(range(12))
    ac = bytes([1] + [0] * 15) + b"\0"
    bits = []

    def put(value, count):
        bits.extend((value >> k) & 1 for k in range(count - 1, -1, -1))

    last = [0] * n
    for y in range(rows):
        for x in range(cols):
            for c in range(n):
                value = (int(blocks[y, x, c]) - 128) * 8  # quantiser 1, the transform of a constant
                diff, last[c] = value - last[c], value
                size = abs(diff).bit_length()
                put(size, 4)
                put(diff if diff > 0 else diff + (1 << size) - 1, size)
                put(0, 1)
    bits += [1] * (-len(bits) % 8)
    scan = np.packbits(np.array(bits, np.uint8)).tobytes().replace(b"\xff", b"\xff\0")
    head = struct.pack(">BHHB", 8, rows * 8, cols * 8, n) + b"".join(bytes([c + 1, 0x11, 0]) for c in range(n))
    order = bytes([n]) + b"".join(bytes([c + 1, 0]) for c in range(n)) + bytes([0, 63, 0])
    marker = b"" if adobe is None else segment(0xEE, b"Adobe" + struct.pack(">HHHB", 100, 0, 0, adobe))
    return (b"\xff\xd8" + (marker or segment(0xE0, b"JFIF\0\1\1\0\0\1\0\1\0\0")) + segment(0xDB, b"\0" + bytes([1] * 64)) + segment(0xC0, head) +
            segment(0xC4, b"\0" + dc) + segment(0xC4, b"\x10" + ac) + segment(0xDA, order) + scan + b"\xff\xd9")


def jpeg_pixels(blocks):
    """Blue, green, red of the same (or gray), by JFIF's definition."""
    y = np.asarray(blocks, float)
    if y.ndim == 3:
        y, b, r = y[:, :, 0], y[:, :, 1] - 128, y[:, :, 2] - 128
        y = np.stack([y + 1.772 * b, y - 0.344136286 * b - 0.714136286 * r, y + 1.402 * r], -1)
    return np.repeat(np.repeat(np.clip(np.round(y), 0, 255), 8, 0), 8, 1)


def resize(image, height, width):
    """Bilinear, loops."""
    image = np.asarray(image, float)
    rows, cols = image.shape[:2]
    out = np.zeros((height, width) + image.shape[2:])
    for y in range(height):
        for x in range(width):
            sy, sx = (y + 0.5) * rows / height - 0.5, (x + 0.5) * cols / width - 0.5
            y0, x0 = int(np.floor(sy)), int(np.floor(sx))
            fy, fx = sy - y0, sx - x0
            for dy, wy in ((0, 1 - fy), (1, fy)):
                for dx, wx in ((0, 1 - fx), (1, fx)):
                    out[y, x] += wy * wx * image[min(max(y0 + dy, 0), rows - 1), min(max(x0 + dx, 0), cols - 1)]
    return out
