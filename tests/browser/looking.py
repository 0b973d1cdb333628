"""What is asked of a page as a whole, in the browser."""

NAMELESS = """() =>
  [...document.querySelectorAll("a, button, input, select, summary, [role=region], svg[role=img]")]
    .filter((element) => !(element.getAttribute("aria-label") || element.textContent.trim()
      || element.labels?.[0]?.textContent.trim()))
    .map((element) => element.outerHTML)"""
"""Things to use or look at that a screen reader could not name."""

SKIPPED_HEADINGS = """() => {
  const headings = [...document.querySelectorAll("h1, h2, h3, h4, h5, h6")].filter((one) => one.offsetParent);
  const level = (heading) => Number(heading.tagName[1]);
  return headings.filter((one, i) => level(one) > (i ? level(headings[i - 1]) : 0) + 1)
    .map((one) => one.textContent);
}"""
"""Headings more than one level below the heading before."""

FAINT = """() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgb = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = (colour) => {
    const [r, g, b] = rgb(colour).slice(0, 3).map((part) => part / 255)
      .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if (rgb(colour)[3] === 255) return colour;
    }
    return "white";
  };
  const written = [...document.querySelectorAll("body *:not(svg *)")].filter((element) => element.offsetParent
    && [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.nodeValue.trim()));
  const faint = written.map((element) => {
    const [ink, paper] = [light(getComputedStyle(element).color), light(ground(element))];
    const contrast = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
    return [contrast, `${element.className}: ${element.textContent.trim().slice(0, 40)}: ${contrast}`];
  }).filter(([contrast]) => contrast < 4.5).map(([, words]) => words);
  return { looked: written.length, faint };
}"""
"""Text whose contrast to its ground is below 4.5, and how many pieces of text there are."""
