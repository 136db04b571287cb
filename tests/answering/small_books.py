"""Two small books whose structure readers ask about: an mdBook with parts, and a Docusaurus site with units."""

from __future__ import annotations

from pathlib import Path

GARDEN = {
    "book.toml": '[book]\ntitle = "The Kitchen Garden"\nauthors = ["Ada Field"]\nsrc = "src"\n',
    "src/SUMMARY.md": """# Summary

[Introduction](intro.md)

# Part I: Growing

- [Soil](soil.md)
  - [Compost](compost.md)
  - [Mulch](mulch.md)
- [Water](water.md)

# Part II: Eating

- [Picking](picking.md)
- [Storing the Harvest](storing.md)
""",
    "src/intro.md": """# Introduction

This book shows how to feed a family from a small garden, one bed at a time.

## Who is it for?

It is written for people who have never grown a vegetable and have an hour on Sundays.

## Who made it?

The book was written by Ada Field and is maintained by the garden club of Lower Marsh.

## Reading order

Start with the chapter on soil; everything else grows out of it.
""",
    "src/soil.md": """# Soil

Good soil is half the work in any garden. It holds water, air and food for the roots.

## Testing the soil

Take a handful of damp earth and press it into a ball.
""",
    "src/compost.md": """# Compost

Compost is rotted plant matter that feeds the soil for a whole year.

## Building a heap

Layer green and brown matter in turn, and keep the heap as damp as a wrung sponge.

## Turning

Turn the heap every two weeks, so that air reaches the middle.
""",
    "src/mulch.md": "# Mulch\n\nA layer of straw keeps the ground cool and stops weeds from sprouting in summer.\n",
    "src/water.md": "# Water\n\nWater early in the morning, and water the roots rather than the leaves of a plant.\n",
    "src/picking.md": "# Picking\n\nPick beans before the seeds swell, because old pods are tough and stringy.\n",
    "src/storing.md": "# Storing the Harvest\n\nA cool, dark cellar keeps carrots fresh in damp sand until spring.\n",
}
LIGHT = {
    "docusaurus.config.js": (
        "module.exports = { title: 'Light and Lenses', tagline: 'A first course in optics', url: 'https://example.org',"
        " baseUrl: '/' };\n"
    ),
    "docs/intro.md": """---
sidebar_position: 1
---

# Welcome

This course explains how light travels and how lenses bend it, with experiments for a kitchen table.

Anyone who is comfortable with school algebra can follow it, and no laboratory is needed.
""",
    "docs/unit-1-rays/_category_.json": '{"label": "Unit 1: Rays", "position": 2}',
    "docs/unit-1-rays/01-shadows.md": """# Shadows

A shadow has a soft edge because the lamp that casts it is not a point.

## Umbra and penumbra

The umbra is the part of a shadow from which the whole lamp is hidden.
""",
    "docs/unit-1-rays/02-mirrors.md": "# Mirrors\n\nA flat mirror turns a ray back at the angle at which it came.\n",
    "docs/unit-2-lenses/_category_.json": '{"label": "Unit 2: Lenses", "position": 3}',
    "docs/unit-2-lenses/01-refraction.md": """# Refraction

Light slows down in glass, and a ray that enters at a slant is bent towards the normal.
""",
    "docs/unit-2-lenses/02-focal-length.md": """# Focal Length

The focal length of a lens is the distance at which parallel rays meet behind it.
""",
    "docs/unit-3-instruments/_category_.json": '{"label": "Unit 3: Instruments", "position": 4}',
    "docs/unit-3-instruments/01-telescopes.md": """# Telescopes

A telescope gathers light with a large lens and magnifies the image with a small one.
""",
    "docs/unit-3-instruments/02-cameras.md": """# Cameras

A camera throws an upside-down image on a sensor that counts the light of each point.
""",
}


def write_files(folder: Path, files: dict[str, str]) -> Path:
    """The files of a book in a folder."""
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return folder
