"""Photographs with a face, from one in the public domain that scikit-image ships."""

from PIL import Image, ImageEnhance, ImageOps

# The face of the astronaut in the picture at full size: left, top, right, bottom.
FACE = (176, 70, 268, 170)


def astronaut():
    """The photograph: 512 x 512."""
    from skimage import data

    return Image.fromarray(data.astronaut())


def write_photographs(folder):
    """Crops, flips and other light of the photograph, and two pictures without a face."""
    from skimage import data

    image = astronaut()
    photos = {"whole": image, "mirrored": ImageOps.mirror(image), "grey": image.convert("L")}
    for number, box in enumerate([(100, 0, 350, 250), (60, 0, 420, 360), (0, 0, 400, 300)]):
        photos[f"crop-{number}"] = image.crop(box)
        photos[f"crop-{number}-mirrored"] = ImageOps.mirror(image.crop(box))
    for light in (0.5, 0.7, 1.3, 1.6):
        photos[f"light-{light}"] = ImageEnhance.Brightness(image).enhance(light)
    for contrast in (0.6, 1.5):
        photos[f"contrast-{contrast}"] = ImageEnhance.Contrast(image).enhance(contrast)
    for angle in (-6, 6):
        photos[f"turned-{angle}"] = image.rotate(angle, Image.Resampling.BICUBIC)
    photos["large"] = image.resize((1024, 1024))
    photos["small"] = image.resize((300, 300))
    for name, photo in photos.items():
        photo.save(folder / f"{name}.jpg", quality=92)
    Image.fromarray(data.cat()).save(folder / "cat.jpg")
    Image.fromarray(data.coffee()).save(folder / "coffee.jpg")
    return sorted(f"{name}.jpg" for name in photos)
