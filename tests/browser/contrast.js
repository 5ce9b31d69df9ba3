(least) => {
  const parse = (colour) => (colour.match(/[\d.]+/g) || [0, 0, 0, 0]).map(Number);
  const light = ([r, g, b]) => {
    const f = (v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b);
  };
  const ground = (one) => {
    for (let at = one; at; at = at.parentElement) {
      const found = parse(getComputedStyle(at).backgroundColor);
      if (found.length < 4 || found[3] > 0.99) return found;
    }
    return [255, 255, 255];
  };
  const low = new Set();
  for (const one of document.querySelectorAll("body *")) {
    const own = [...one.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!own || !one.getClientRects().length || one.closest("option, script, style, title")) continue;
    const style = getComputedStyle(one), ink = parse(one instanceof SVGElement ? style.fill : style.color);
    const [a, b] = [light(ink), light(ground(one))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < least) low.add(`${one.tagName} ${one.getAttribute("class")} ${((a + 0.05) / (b + 0.05)).toFixed(2)}`);
  }
  return [...low];
}
