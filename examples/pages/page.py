"""The page of a document, by another reader of XML: what handlers/pages.c must answer.

    python3 page.py DOCUMENT
"""

import sys
from xml.etree import ElementTree

RULES = {
    "catalogue": "main", "section": "section", "heading": "h2", "book": "article", "title": "h3",
    "author": "address", "price": "data", "note": "p", "em": "em", "list": "ul", "item": "li",
}


def escaped(text):
    for mark, name in ("&", "amp"), ("<", "lt"), (">", "gt"), ('"', "quot"):
        text = text.replace(mark, f"&{name};")
    return text


def html(element):
    rule = RULES.get(element.tag)
    page = f"<{rule}" if rule else f'<span class="{escaped(element.tag)}"'
    for name, value in element.attrib.items():
        page += f' data-{name}="{escaped(value)}"'
    page += ">" + escaped(element.text or "")
    for child in element:
        page += html(child) + escaped(child.tail or "")
    return page + f"</{rule or 'span'}>"


root = ElementTree.parse(sys.argv[1]).getroot()
page = f'<!DOCTYPE html>\n<meta charset="utf-8">\n{html(root)}\n'
sys.stdout.buffer.write(page.encode())
