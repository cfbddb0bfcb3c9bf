"""Compare pictures as a reader would: shrunk, so that layout counts and fonts do not."""

from __future__ import annotations

import base64
from pathlib import Path

from playwright.sync_api import Browser

WIDTH = 120
MOST_DIFFERENCE = 0.03
MOST_HEIGHT = 0.06

_COMPARE = """
async ([one, two, width]) => {
  const pixels = async (url, height) => {
    const image = new Image();
    image.src = url;
    await image.decode();
    const canvas = document.createElement('canvas');
    canvas.width = width;
    canvas.height = height || Math.round(image.height * width / image.width);
    const context = canvas.getContext('2d');
    context.drawImage(image, 0, 0, canvas.width, canvas.height);
    return [image.height, canvas.height,
      context.getImageData(0, 0, canvas.width, canvas.height).data];
  };
  const [tall, height, a] = await pixels(one);
  const [other, , b] = await pixels(two, height);
  let sum = 0;
  for (let i = 0; i < a.length; i += 1) sum += Math.abs(a[i] - b[i]);
  return [sum / a.length / 255, Math.abs(tall - other) / tall];
}
"""


def _url(data: bytes) -> str:
    return "data:image/jpeg;base64," + base64.b64encode(data).decode()


def compare(browser: Browser, taken: bytes, approved: Path, *, rewrite: bool) -> None:
    """Hold a picture to the approved one, or approve it."""
    if rewrite:
        approved.parent.mkdir(exist_ok=True)
        approved.write_bytes(taken)
    page = browser.new_page()
    try:
        pair = [_url(approved.read_bytes()), _url(taken), WIDTH]
        difference, height = page.evaluate(_COMPARE, pair)
    finally:
        page.close()
    assert height <= MOST_HEIGHT, f"{approved.name}: {height:.1%} taller or shorter"
    assert difference <= MOST_DIFFERENCE, f"{approved.name}: {difference:.1%} different"
