"""Pictures of things, drawn: one photo-like picture differs from the next as photographs do.

A thing is a drawing. Each picture of it has another angle, size, place, light and background.
"""

import math

import numpy as np
from PIL import Image, ImageDraw, ImageEnhance, ImageFilter

SIDE = 224


def draw_clock(pen):
    pen.ellipse((12, 12, 148, 148), fill="white", outline="black", width=7)
    for hour in range(12):
        x, y = 56 * math.sin(hour * math.pi / 6), 56 * math.cos(hour * math.pi / 6)
        pen.ellipse((77 + x, 77 - y, 83 + x, 83 - y), fill="black")
    pen.line((80, 80, 80, 36), fill="black", width=6)
    pen.line((80, 80, 112, 92), fill="black", width=6)


def draw_house(pen):
    pen.rectangle((30, 70, 130, 145), fill=(190, 90, 60))
    pen.polygon(((18, 72), (80, 15), (142, 72)), fill=(110, 40, 30))
    pen.rectangle((68, 100, 92, 145), fill=(70, 45, 25))
    pen.rectangle((40, 84, 62, 104), fill=(170, 210, 250))
    pen.rectangle((98, 84, 120, 104), fill=(170, 210, 250))


def draw_tree(pen):
    pen.rectangle((70, 95, 90, 150), fill=(100, 65, 30))
    for x, y, r in ((80, 45, 35), (50, 70, 30), (110, 70, 30), (80, 78, 30)):
        pen.ellipse((x - r, y - r, x + r, y + r), fill=(40, 130, 45))


def draw_car(pen):
    pen.rounded_rectangle((8, 75, 152, 118), 12, fill=(200, 30, 35))
    pen.polygon(((35, 78), (55, 45), (110, 45), (130, 78)), fill=(200, 30, 35))
    pen.polygon(((50, 74), (61, 53), (80, 53), (80, 74)), fill=(190, 225, 250))
    pen.polygon(((86, 74), (86, 53), (104, 53), (117, 74)), fill=(190, 225, 250))
    for x in (42, 118):
        pen.ellipse((x - 18, 100, x + 18, 136), fill="black")
        pen.ellipse((x - 8, 110, x + 8, 126), fill=(170, 170, 170))


def draw_chessboard(pen):
    for row in range(8):
        for column in range(8):
            colour = "black" if (row + column) % 2 else "white"
            at = (8 + 18 * column, 8 + 18 * row)
            pen.rectangle((*at, at[0] + 17, at[1] + 17), fill=colour)


def draw_fish(pen):
    pen.ellipse((15, 50, 115, 112), fill=(240, 140, 30))
    pen.polygon(((105, 81), (150, 45), (150, 117)), fill=(240, 140, 30))
    pen.ellipse((32, 66, 46, 80), fill="white")
    pen.ellipse((37, 70, 43, 76), fill="black")
    for x in (62, 82):
        pen.arc((x - 20, 55, x + 10, 107), -70, 70, fill="white", width=6)


def draw_bottle(pen):
    pen.rounded_rectangle((55, 60, 105, 152), 10, fill=(25, 95, 45))
    pen.polygon(((55, 66), (70, 35), (90, 35), (105, 66)), fill=(25, 95, 45))
    pen.rectangle((70, 10, 90, 40), fill=(25, 95, 45))
    pen.rectangle((55, 85, 105, 125), fill=(235, 225, 190))


def draw_sunflower(pen):
    for turn in range(14):
        x, y = 50 * math.sin(turn * math.pi / 7), 50 * math.cos(turn * math.pi / 7)
        pen.ellipse((62 + x, 62 - y, 98 + x, 98 - y), fill=(250, 205, 20))
    pen.ellipse((45, 45, 115, 115), fill=(85, 50, 20))


def draw_keyboard(pen):
    pen.rounded_rectangle((4, 40, 156, 120), 6, fill=(60, 60, 65))
    for row in range(4):
        for column in range(10):
            x, y = 9 + 14.6 * column, 47 + 17 * row
            pen.rounded_rectangle((x, y, x + 11, y + 13), 2, fill=(225, 225, 225))


def draw_ladybird(pen):
    pen.ellipse((55, 15, 105, 55), fill="black")
    pen.ellipse((20, 35, 140, 145), fill=(215, 25, 25))
    pen.line((80, 36, 80, 145), fill="black", width=5)
    for x, y in ((50, 65), (110, 65), (45, 100), (115, 100), (62, 125), (98, 125)):
        pen.ellipse((x - 10, y - 10, x + 10, y + 10), fill="black")


def draw_stop_sign(pen):
    corners = [
        (80 + 72 * math.cos(math.pi / 8 + turn * math.pi / 4),
         80 + 72 * math.sin(math.pi / 8 + turn * math.pi / 4))
        for turn in range(8)
    ]  # fmt: skip
    pen.polygon(corners, fill=(200, 15, 25), outline="white", width=6)
    pen.rectangle((32, 68, 128, 92), fill="white")


def draw_ruler(pen):
    pen.rectangle((2, 58, 158, 102), fill=(245, 215, 130), outline=(120, 90, 30), width=2)
    for mark in range(30):
        x = 8 + 5 * mark
        pen.line((x, 58, x, 80 if mark % 5 == 0 else 69), fill="black", width=2)


def draw_moon(pen):
    pen.ellipse((12, 12, 148, 148), fill=(165, 165, 160))
    for x, y, r in ((55, 50, 16), (100, 70, 22), (60, 105, 20), (110, 115, 10), (85, 30, 8)):
        pen.ellipse((x - r, y - r, x + r, y + r), fill=(110, 110, 105), outline=(200, 200, 195))


def draw_envelope(pen):
    pen.rectangle((10, 35, 150, 125), fill=(240, 235, 225), outline=(90, 70, 50), width=4)
    pen.line(((10, 35), (80, 88), (150, 35)), fill=(90, 70, 50), width=4)


def draw_rainbow(pen):
    colours = ("red", "orange", "yellow", "green", "blue", "indigo", "violet")
    for ring, colour in enumerate(colours):
        r = 75 - 9 * ring
        pen.pieslice((80 - r, 110 - r, 80 + r, 110 + r), 180, 360, fill=colour)
    pen.pieslice((68, 98, 92, 122), 180, 360, fill="white")


def draw_football(pen):
    pen.ellipse((10, 10, 150, 150), fill="white", outline="black", width=4)
    for cx, cy in ((80, 80), (80, 24), (132, 66), (112, 126), (48, 126), (28, 66)):
        corners = [
            (cx + 19 * math.sin(turn * 0.4 * math.pi), cy - 19 * math.cos(turn * 0.4 * math.pi))
            for turn in range(5)
        ]
        pen.polygon(corners, fill="black")


def draw_cactus(pen):
    pen.rounded_rectangle((65, 20, 95, 120), 15, fill=(60, 140, 70))
    pen.rounded_rectangle((28, 45, 48, 85), 10, fill=(60, 140, 70))
    pen.rectangle((38, 72, 70, 88), fill=(60, 140, 70))
    pen.rounded_rectangle((112, 35, 132, 75), 10, fill=(60, 140, 70))
    pen.rectangle((90, 62, 122, 78), fill=(60, 140, 70))
    pen.polygon(((48, 112), (112, 112), (102, 152), (58, 152)), fill=(190, 95, 50))


def draw_screen(pen):
    pen.rounded_rectangle((8, 20, 152, 112), 6, fill=(20, 20, 22))
    pen.rectangle((16, 28, 144, 104), fill=(40, 110, 200))
    pen.rectangle((70, 112, 90, 135), fill=(60, 60, 62))
    pen.rectangle((45, 133, 115, 142), fill=(60, 60, 62))


def draw_cards(pen):
    for shift in (0, 22, 44):
        box = (12 + shift, 18 + shift // 2, 92 + shift, 128 + shift // 2)
        pen.rounded_rectangle(box, 7, fill="white", outline="black", width=2)
    pen.polygon(((96, 70), (110, 92), (96, 114), (82, 92)), fill=(205, 20, 30))


def draw_melon(pen):
    pen.pieslice((8, -50, 152, 140), 0, 180, fill=(30, 120, 50))
    pen.pieslice((18, -40, 142, 130), 0, 180, fill=(235, 250, 220))
    pen.pieslice((24, -34, 136, 124), 0, 180, fill=(230, 50, 70))
    for x, y in ((50, 65), (80, 60), (110, 65), (65, 90), (95, 90), (80, 112)):
        pen.ellipse((x - 4, y - 6, x + 4, y + 6), fill="black")


THINGS = {
    name.removeprefix("draw_"): draw
    for name, draw in list(globals().items())
    if name.startswith("draw_")
}


def make_picture(name, rng):
    """One picture of a thing, as an image of 224 x 224."""
    drawing = Image.new("RGBA", (160, 160), (0, 0, 0, 0))
    THINGS[name](ImageDraw.Draw(drawing))
    side = int(rng.integers(130, 190))
    turned = drawing.rotate(float(rng.uniform(-20, 20)), Image.Resampling.BICUBIC)
    turned = turned.resize((side, side), Image.Resampling.LANCZOS)
    picture = make_background(rng)
    picture.paste(turned, tuple(map(int, rng.integers(0, SIDE - side + 1, 2))), turned)
    if rng.random() < 0.3:
        picture = picture.filter(ImageFilter.GaussianBlur(float(rng.uniform(0.3, 1.0))))
    return ImageEnhance.Brightness(picture).enhance(float(rng.uniform(0.75, 1.2)))


def make_background(rng):
    """A surface of one colour, with a fall of light and grain."""
    base = rng.integers(140, 230) + rng.integers(-12, 13, 3)
    fall = np.linspace(0, float(rng.uniform(-30, 30)), SIDE)[:, None, None]
    grain = rng.normal(0, 5, (SIDE, SIDE, 1))
    return Image.fromarray(np.clip(base + fall + grain, 0, 255).astype(np.uint8))


def write_things(folder, n_each=15, names=None, seed=0):
    """Write pictures of things to a folder, and give the thing of each file."""
    rng = np.random.default_rng(seed)
    things = {}
    for name in names or THINGS:
        for number in range(n_each):
            path = folder / f"{seed}-{len(things):04d}.jpg"
            make_picture(name, rng).save(path, quality=88)
            things[path.name] = name
            del number
    return things
