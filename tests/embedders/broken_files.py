"""Files that a folder of pictures may hold: odd ones that are pictures, and ones that are not."""

import io
import os
import struct
import zlib
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

EMBEDDED, SKIPPED, READ_ONCE = "embedded", "skipped", "read once"


def picture(width=64, height=48):
    """A picture whose left side is red and whose right side is blue."""
    pixels = np.zeros((height, width, 3), np.uint8)
    pixels[:, : width // 2, 0] = 220
    pixels[:, width // 2 :, 2] = 220
    return Image.fromarray(pixels)


def encode(image, kind, **options):
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return stream.getvalue()


def jpeg(**options):
    return encode(picture(), "JPEG", quality=95, **options)


def rotated():
    """A picture that lies on its side, with the EXIF tag that says so."""
    exif = Image.Exif()
    exif[0x0112] = 6
    return encode(picture().rotate(90, expand=True), "JPEG", quality=95, exif=exif)


def grey_16_bit(kind):
    values = np.linspace(0, 65535, 64 * 48).reshape(48, 64).astype(np.uint16)
    return encode(Image.fromarray(values), kind)


def grey_float():
    values = np.linspace(0, 1, 64 * 48, dtype=np.float32).reshape(48, 64)
    return encode(Image.fromarray(values), "TIFF")


def png_of(width, height, depth, colour, rows):
    """A PNG written by hand: Pillow cannot write all kinds that it reads."""

    def chunk(name, body):
        return (
            struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
        )

    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    packed = zlib.compress(rows)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", packed) + chunk(b"IEND", b"")
    )


def colour_16_bit():
    row = b"\0" + struct.pack(">192H", *range(0, 19200, 100))
    return png_of(64, 48, 16, 2, row * 48)


def frames(kind):
    return encode(
        picture(), kind, save_all=True, append_images=[picture().rotate(180)], duration=100
    )


def transparent(mode):
    image = picture().convert(mode)
    image.putalpha(Image.linear_gradient("L").resize(image.size))
    return encode(image, "PNG")


def palette():
    return encode(picture().convert("P"), "PNG", transparency=0)


def large(kind, side=10_000):
    return encode(Image.new("L", (side, side), 120), kind)


def heic():
    from hilander.embedders.decoding import can_read_heif

    return encode(picture(), "HEIF", quality=95) if can_read_heif() else b""


def broken_header():
    """A JPEG whose EXIF is noise."""
    body = b"Exif\0\0" + bytes(range(60))
    content = jpeg()
    return content[:2] + b"\xff\xe1" + struct.pack(">H", len(body) + 2) + body + content[2:]


def noise():
    return np.random.default_rng(0).integers(0, 256, 5000, dtype=np.uint8).tobytes()


def wrong_data():
    content = bytearray(encode(picture(), "PNG"))
    middle = content.index(b"IDAT") + 10
    content[middle : middle + 30] = bytes(30)
    return bytes(content)


# Name, what it is, how it is made, and what becomes of it.
FILES = (
    ("plain.jpg", "a JPEG", jpeg, EMBEDDED),
    ("progressive.jpg", "a progressive JPEG", lambda: jpeg(progressive=True), EMBEDDED),
    ("rotated.jpg", "a photo that EXIF rotates", rotated, EMBEDDED),
    ("cmyk.jpg", "a JPEG of four inks",
     lambda: encode(picture().convert("CMYK"), "JPEG"), EMBEDDED),
    ("grey.jpg", "a grey JPEG", lambda: encode(picture().convert("L"), "JPEG"), EMBEDDED),
    ("broken-exif.jpg", "a JPEG whose EXIF is noise", broken_header, EMBEDDED),
    ("more-after.jpg", "a JPEG with 1,000 bytes after its end",
     lambda: jpeg() + bytes(1000), EMBEDDED),
    ("png-named.jpg", "a PNG named .jpg", lambda: encode(picture(), "PNG"), EMBEDDED),
    ("UPPER.JPEG", "a name in capitals", jpeg, EMBEDDED),
    ("grey-16-bit.png", "16-bit greys in a PNG", lambda: grey_16_bit("PNG"), EMBEDDED),
    ("grey-16-bit.tif", "16-bit greys in a TIFF", lambda: grey_16_bit("TIFF"), EMBEDDED),
    ("colour-16-bit.png", "16-bit colours in a PNG", colour_16_bit, EMBEDDED),
    ("float.tif", "floating-point greys", grey_float, EMBEDDED),
    ("bits.png", "black and white, 1 bit", lambda: encode(picture().convert("1"), "PNG"), EMBEDDED),
    ("palette.png", "a palette with a transparent colour", palette, EMBEDDED),
    ("transparent.png", "colours with transparency", lambda: transparent("RGB"), EMBEDDED),
    ("grey-transparent.png", "greys with transparency", lambda: transparent("L"), EMBEDDED),
    ("animated.gif", "an animated GIF", lambda: frames("GIF"), EMBEDDED),
    ("animated.png", "an animated PNG", lambda: frames("PNG"), EMBEDDED),
    ("animated.webp", "an animated WebP", lambda: frames("WEBP"), EMBEDDED),
    ("photo.heic", "a HEIC photo", heic, EMBEDDED),
    ("photo.avif", "an AVIF photo", lambda: encode(picture(), "AVIF"), EMBEDDED),
    ("photo.jp2", "JPEG 2000", lambda: encode(picture(), "JPEG2000"), EMBEDDED),
    ("pixel.png", "1 x 1 pixel", lambda: encode(picture(1, 1), "PNG"), EMBEDDED),
    ("line.png", "20,000 x 1 pixels", lambda: encode(picture(20_000, 1), "PNG"), EMBEDDED),
    ("100-megapixels.jpg", "a JPEG of 100 megapixels", lambda: large("JPEG"), EMBEDDED),
    ("100-megapixels.png", "a PNG of 100 megapixels", lambda: large("PNG"), EMBEDDED),
    ("two\nlines.jpg", "a name with a newline", jpeg, EMBEDDED),
    ("a, \"b\" 'c'.jpg", "a name with commas and quotes", jpeg, EMBEDDED),
    (os.fsdecode(b"caf\xe9.jpg"), "a name that is not UTF-8", jpeg, EMBEDDED),
    ("n" * 240 + ".jpg", "a name of 244 letters", jpeg, EMBEDDED),
    ("900-megapixels.png", "a PNG that says it has 900 megapixels",
     lambda: png_of(30_000, 30_000, 1, 0, b"\0"), SKIPPED),
    ("empty.jpg", "no bytes at all", lambda: b"", SKIPPED),
    ("half.jpg", "the first half of a JPEG",
     lambda: encode(picture(640, 480), "JPEG")[:2000], SKIPPED),
    ("half.png", "the first half of a PNG", lambda: encode(picture(), "PNG")[:90], SKIPPED),
    ("half.heic", "the first half of a HEIC photo", lambda: heic()[:300], SKIPPED),
    ("begin.jpg", "the first two bytes of a JPEG", lambda: jpeg()[:2], SKIPPED),
    ("begin.gif", "the header of a GIF alone", lambda: b"GIF89a" + bytes(7), SKIPPED),
    ("wrong-data.png", "a PNG with 30 bytes overwritten", wrong_data, SKIPPED),
    ("text.jpg", "a text named .jpg", lambda: b"not a picture\n" * 9, SKIPPED),
    ("page.jpg", "an error page named .jpg", lambda: b"<!DOCTYPE html><title>404</title>", SKIPPED),
    ("drawing.png", "an SVG named .png", lambda: b'<svg xmlns="a"><g/></svg>', SKIPPED),
    ("paper.jpg", "a PDF named .jpg", lambda: b"%PDF-1.7\n" + bytes(200), SKIPPED),
    ("script.jpg", "a PostScript program named .jpg",
     lambda: b"%!PS-Adobe-3.0 EPSF-3.0\n", SKIPPED),
    ("archive.png", "a ZIP named .png", lambda: b"PK\x03\x04" + bytes(200), SKIPPED),
    ("film.jpg", "a film named .jpg", lambda: b"\0\0\0\x18ftypmp42" + bytes(200), SKIPPED),
    ("noise.jpg", "5,000 random bytes", noise, SKIPPED),
    ("offsets.tif", "a TIFF that points behind its end", lambda: b"II*\0\xff\xff\xff\x7f", SKIPPED),
)  # fmt: skip
# Made by the operating system, not written.
OTHERS = (
    ("link.jpg", "a link to a picture", EMBEDDED),
    ("broken-link.jpg", "a link to nothing", SKIPPED),
    ("own-link.jpg", "a link to itself", SKIPPED),
    ("pipe.jpg", "a named pipe", SKIPPED),
    ("folder.jpg", "a folder named .jpg, with a picture in it", READ_ONCE),
    ("loop", "a link to the folder above", READ_ONCE),
)


def write_broken_files(folder: Path) -> None:
    """Write every file to a folder."""
    for name, _, make, _ in FILES:
        (folder / name).write_bytes(make())
    (folder / "link.jpg").symlink_to("plain.jpg")
    (folder / "broken-link.jpg").symlink_to("missing.jpg")
    (folder / "own-link.jpg").symlink_to("own-link.jpg")
    os.mkfifo(folder / "pipe.jpg")
    (folder / "folder.jpg").mkdir()
    ImageOps.mirror(picture()).save(folder / "folder.jpg" / "inside.jpg")
    (folder / "loop").symlink_to(folder, target_is_directory=True)
