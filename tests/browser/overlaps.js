() => {
  const found = [];
  for (const chart of document.querySelectorAll("svg.chart")) {
    const frame = chart.getBoundingClientRect();
    const texts = [...chart.querySelectorAll("text")].map((one) => [one.textContent, one.getBoundingClientRect()]);
    texts.forEach(([words, box], place) => {
      if (box.left < frame.left - 2 || box.right > frame.right + 2 || box.bottom > frame.bottom + 2 || box.top < frame.top - 2)
        found.push(`${chart.getAttribute("aria-label")}: "${words}" leaves the picture`);
      for (const [other, its] of texts.slice(place + 1)) {
        const across = Math.min(box.right, its.right) - Math.max(box.left, its.left);
        const down = Math.min(box.bottom, its.bottom) - Math.max(box.top, its.top);
        if (across > 1 && down > 4) found.push(`${chart.getAttribute("aria-label")}: "${words}" covers "${other}"`);
      }
    });
  }
  return found;
}
